package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// stamps is where a file for each module says what it was built from.
const stamps = "bin/guests"

// goEnv decides which files belong to a build, as hutch build sets it.
var goEnv = []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GO111MODULE=on", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT="}

// builder is what all modules are built with: the Go version, and hutch itself by its
// sources, for it compiles, describes and stamps them.
func builder() (string, error) {
	sum := sha256.New()
	version, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	sum.Write(version)
	if err := addPackages(sum, os.Environ(), ".", "./cmd/hutch", "./cmd/hutch-worker"); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// madeOf identifies what a Go module is built from: every file that is compiled into
// it or embedded, of whatever package, and what it is built with.
func madeOf(dir, with string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, with)
	if err := addPackages(sum, append(os.Environ(), goEnv...), dir, "."); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// addPackages adds what the packages and all they import consist of, but for what
// belongs to the Go version, and the module files that choose versions.
func addPackages(sum hash.Hash, env []string, dir string, patterns ...string) error {
	list := exec.Command("go", append([]string{"list", "-deps", "-json"}, patterns...)...)
	list.Dir, list.Env = dir, env
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	var files []string
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir                                            string
			Standard                                       bool
			GoFiles, SFiles, HFiles, SysoFiles, EmbedFiles []string
			Module                                         *struct{ GoMod string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Standard {
			continue
		}
		for _, name := range slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.SysoFiles, p.EmbedFiles) {
			files = append(files, filepath.Join(p.Dir, name))
		}
		if p.Module != nil {
			files = append(files, p.Module.GoMod, strings.TrimSuffix(p.Module.GoMod, ".mod")+".sum")
		}
	}
	return addFiles(sum, files)
}

// addFiles adds files by name and content. Those that are made here are results, and
// no sources.
func addFiles(sum hash.Hash, files []string) error {
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if made(file) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil && (!errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(file, ".sum")) {
			return err
		}
		fmt.Fprintf(sum, "%s %x\n", file, sha256.Sum256(text))
	}
	return nil
}

// made reports whether hutch embeds a file that was built.
func made(file string) bool {
	dir := filepath.Base(filepath.Dir(file))
	switch filepath.Base(file) {
	case "index.json":
		return dir == shipped
	case "built", "hutch-worker":
		return dir == "slim"
	}
	return dir == shipped && filepath.Ext(file) == ".wasm"
}

// stampOf is where it stands what out was built from.
func stampOf(out string) string {
	return filepath.Join(stamps, filepath.Base(filepath.Dir(out))+"-"+filepath.Base(out)+".sum")
}

// fresh reports whether out is what was built from the same.
func fresh(out, from string) bool {
	stamp, err := os.ReadFile(stampOf(out))
	if err != nil {
		return false
	}
	text, err := os.ReadFile(out)
	return err == nil && string(stamp) == stampText(from, text)
}

// keep notes what out was built from.
func keep(out, from string) error {
	text, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(stamps, 0o755); err != nil {
		return err
	}
	return os.WriteFile(stampOf(out), []byte(stampText(from, text)), 0o644)
}

func stampText(from string, built []byte) string {
	return fmt.Sprintf("%s %x\n", from, sha256.Sum256(built))
}
