// Command javascript puts the engine of JavaScript tools where cmd/hutch embeds it.
// It takes one file of a Go module, which the go command fetches and verifies, and
// holds it to a digest of its own. It runs at the module's root.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hutch-run/hutch/runtime/dialect"
)

const (
	source = "github.com/fastschema/qjs"
	file   = "qjs.wasm"
	out    = "cmd/hutch/javascript/" + file
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "\nerror: %s\n", err)
		os.Exit(1)
	}
}

func run() error {
	old, err := os.ReadFile(out)
	if err == nil && dialect.CheckEngine(old) == nil {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := fetch()
	if err != nil {
		return err
	}
	engine, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	if err := dialect.CheckEngine(engine); err != nil {
		return fmt.Errorf("%s of %s: %w", file, source, err)
	}
	// What is there is whole, even if this is interrupted.
	part := out + ".part"
	if err := os.WriteFile(part, engine, 0o644); err != nil {
		return err
	}
	return os.Rename(part, out)
}

// fetch returns the folder of the module whose version and checksum stand in
// .ci/javascript.mod and .ci/javascript.sum.
func fetch() (string, error) {
	cmd := exec.Command("go", "mod", "download", "-modfile=.ci/javascript.mod", "-json", source)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GO111MODULE=on", "GOFLAGS=")
	said, err := cmd.Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(said, &found) == nil && found.Error != "" {
		return "", fmt.Errorf("fetch %s: %s", source, found.Error)
	}
	if err != nil || found.Dir == "" {
		return "", fmt.Errorf("fetch %s: %w", source, errors.Join(err, errors.New("the go command names no folder")))
	}
	return found.Dir, nil
}
