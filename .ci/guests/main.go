// Command guests builds every folder of guests/ into tools-wasm/, the same bytes
// each time from the same sources, and every folder of guests/examples/ into
// bin/examples/. It runs at the module's root, after bin/hutch was built.
//
// What a language needs that is not on this machine is named, and skipped.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

const (
	hutch    = "bin/hutch"
	shipped  = "tools-wasm"
	index    = shipped + "/index.json"
	examples = "bin/examples"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "\nerror: %s\n", err)
		os.Exit(1)
	}
}

// run writes the index last and removes it first: without one, a build that was
// interrupted counts as none.
func run() error {
	if err := os.Remove(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	guests, err := filepath.Glob("guests/*")
	if err != nil {
		return err
	}
	apart, err := filepath.Glob("guests/examples/*")
	if err != nil {
		return err
	}
	with, err := builder()
	if err != nil {
		return err
	}
	if err := buildAll(guests, shipped, with); err != nil {
		return err
	}
	if err := buildAll(apart, examples, with); err != nil {
		return err
	}
	return writeIndex()
}

// buildAll builds the modules in folders into to, and removes from to what has no
// folder any more: it would be shipped for ever.
func buildAll(folders []string, to, with string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	var kept []string
	for _, dir := range folders {
		out := filepath.Join(to, filepath.Base(dir)+".wasm")
		built, err := build(dir, out, with)
		if err != nil {
			return err
		}
		if built {
			kept = append(kept, out)
		}
	}
	old, err := filepath.Glob(filepath.Join(to, "*.wasm"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if !slices.Contains(kept, file) {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// build makes out from the folder dir, in whatever language it is written in,
// and reports whether there is a module now. One in Go that was built from the same
// with the same is left as it is.
func build(dir, out, with string) (bool, error) {
	sources, err := filepath.Glob(filepath.Join(dir, "*.c"))
	if err != nil {
		return false, err
	}
	compile := func() error { return stamp(dir, out) }
	from := ""
	switch {
	case exists(filepath.Join(dir, "main.go")):
		if from, err = madeOf(dir, with); err != nil {
			return false, fmt.Errorf("%s: %w", dir, err)
		}
		if fresh(out, from) {
			return true, nil
		}
	case len(sources) > 0:
		if missing := lookFor("clang", "wasm-ld"); missing != "" {
			fmt.Fprintf(os.Stderr, "skipped %s: no %s on this machine\n", dir, missing)
			return false, nil
		}
		compile = func() error { return buildC(sources, out) }
	default:
		return false, nil // the SDK, the folder of examples, a text
	}
	start := time.Now()
	fmt.Fprintf(os.Stderr, "building %s ... ", out)
	if err := compile(); err != nil {
		return false, fmt.Errorf("%s: %w", dir, err)
	}
	fmt.Fprintln(os.Stderr, time.Since(start).Round(100*time.Millisecond))
	if from == "" {
		return true, nil
	}
	return true, keep(out, from)
}

// stamp has hutch compile source, check it, and write its description into it.
func stamp(source, out string) error {
	return command(hutch, "build", source, "-o", out)
}

// buildC compiles sources that need no library.
func buildC(sources []string, out string) error {
	flags := []string{"--target=wasm32", "-O2", "-nostdlib", "-Wall", "-Wextra", "-Werror",
		"-Wl,--no-entry", "-Wl,--strip-all", "-o", out}
	if err := command("clang", append(flags, sources...)...); err != nil {
		return err
	}
	return stamp(out, out)
}

// command runs quietly; if it fails, what it said is part of the error.
func command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "HUTCH_STATE="+filepath.Join("bin", "state"))
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, said)
	}
	return nil
}

func lookFor(names ...string) (missing string) {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func writeIndex() error {
	text, err := toolswasm.Index(os.DirFS(shipped))
	if err != nil {
		return err
	}
	return os.WriteFile(index, text, 0o644)
}
