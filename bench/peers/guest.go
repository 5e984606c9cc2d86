package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Languages that something depends on.
const (
	langC      = "C"
	langGo     = "Go"
	javaScript = "JavaScript"
)

// Guests that native code stands beside.
const (
	goGuest     = "Go"
	goJSONGuest = "Go, JSON"
)

// A guest is a module that all engines run, the same bytes in each. It imports
// WASI at most, and JavaScript one function more; its exports take nothing and
// return 0 for a right result, so that every answer is looked at.
type guest struct {
	name, language string
	source         string // its folder
	workloads      []string
	build          func(ctx context.Context, g *guest, out string) error
	wasm           []byte // once it is built
	script         []byte // of JavaScript, which the module interprets
}

// echo is the trivial call that every guest has.
const echo = "echo"

// guests returns what there is to run, from the folder of this program's sources.
func guests(source string) []*guest {
	in := func(folder string) string { return filepath.Join(source, "guests", folder) }
	arithmetic := []string{"sha256", "sieve", "fib", "matmul"}
	words := []string{"json", "regexp"}
	return []*guest{
		{name: "C", language: langC, source: in("c"), workloads: arithmetic, build: buildC},
		{name: goGuest, language: langGo, source: in("go"), workloads: arithmetic, build: buildGo},
		{name: goJSONGuest, language: langGo, source: in("gojson"), workloads: words, build: buildGo},
		{name: "AssemblyScript", language: "AssemblyScript", source: in("as"), workloads: arithmetic, build: buildAssemblyScript},
		{name: javaScript, language: javaScript, source: in("js"), workloads: append([]string{"sieve", "fib"}, words...), build: buildJavaScript},
	}
}

// errMissing is in the error of what this machine lacks something for.
var errMissing = errors.New("not on this machine")

func missing(what string) error { return fmt.Errorf("%w: %s", errMissing, what) }

// make builds the guest.
func (g *guest) make(ctx context.Context, scratch string) error {
	out := filepath.Join(scratch, filepath.Base(g.source)+".wasm")
	if err := g.build(ctx, g, out); err != nil {
		return err
	}
	if g.wasm != nil {
		return nil
	}
	var err error
	g.wasm, err = os.ReadFile(out)
	return err
}

// boot brings a new instance to where its calls start. What it returns is for run.
func (g *guest) boot(ctx context.Context, in instance) (handle uint64, err error) {
	switch g.language {
	case langGo:
		_, err = in.Call(ctx, "_initialize")
	case javaScript:
		handle, err = bootQuickJS(ctx, in, g.script)
	}
	return handle, err
}

// run calls a workload and looks at its result.
func (g *guest) run(ctx context.Context, in instance, handle uint64, workload string) error {
	var code uint64
	var err error
	if g.language == javaScript && handle != 0 {
		code, err = evalQuickJS(ctx, in, handle, []byte(workload+"()"))
	} else {
		code, err = in.Call(ctx, workload)
	}
	if err == nil && code != 0 {
		err = fmt.Errorf("wrong result: code %d", code)
	}
	return err
}

func buildC(ctx context.Context, g *guest, out string) error {
	compiler, err := findTool("clang")
	if err != nil {
		return err
	}
	linker, err := findTool("wasm-ld")
	if err != nil {
		return err
	}
	// Compiled and linked one by one: clang alone would run whatever wasm-opt there is.
	object := out + ".o"
	if err := command(ctx, "", nil, compiler, "--target=wasm32", "-O2", "-mbulk-memory", "-msign-ext", "-mnontrapping-fptoint",
		"-Wall", "-Wextra", "-Werror", "-c", "-o", object, filepath.Join(g.source, "kernels.c")); err != nil {
		return err
	}
	return command(ctx, "", nil, linker, "--no-entry", "--strip-all", "-o", out, object)
}

func buildGo(ctx context.Context, g *guest, out string) error {
	return command(ctx, g.source, []string{"GOOS=wasip1", "GOARCH=wasm"}, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
}

// buildAssemblyScript has npm fetch the compiler that package.json names, once.
func buildAssemblyScript(ctx context.Context, g *guest, out string) error {
	npm, err := findTool("npm")
	if err != nil {
		return err
	}
	compiler := filepath.Join("node_modules", "assemblyscript", "bin", "asc.js")
	if _, err := os.Stat(filepath.Join(g.source, compiler)); err != nil {
		if err := command(ctx, g.source, nil, npm, "install", "--ignore-scripts", "--loglevel=error"); err != nil {
			return missing("the AssemblyScript compiler, which npm did not get: " + err.Error())
		}
	}
	return command(ctx, g.source, nil, "node", compiler, "kernels.ts", "-O3", "--runtime", "incremental", "--use", "abort=", "-o", out)
}

// buildJavaScript reads the script, and the interpreter from the module that go.mod
// names; nothing is compiled.
func buildJavaScript(ctx context.Context, g *guest, _ string) (err error) {
	find := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/fastschema/qjs")
	find.Dir = g.source
	said, err := find.Output()
	if err != nil {
		return fmt.Errorf("go mod download github.com/fastschema/qjs: %w", err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(said, &found); err != nil {
		return err
	}
	if g.script, err = os.ReadFile(filepath.Join(g.source, "kernels.js")); err != nil {
		return err
	}
	g.wasm, err = os.ReadFile(filepath.Join(found.Dir, "qjs.wasm"))
	return err
}

// findTool returns the first of the commands that is there.
func findTool(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", missing(strings.Join(names, " or "))
}

// command runs quietly; if it fails, what it said is part of the error.
func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, said)
	}
	return nil
}
