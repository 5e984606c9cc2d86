package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// goFlags are what makes a build the same bytes on every machine: no paths, no
// symbols, no build id, and a reactor, which is what a host calls.
var goFlags = []string{"-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid="}

// goEnv replaces variables of the environment that would change the result.
// GOFLAGS is not left empty, because then the go command would look for it in
// its own configuration file; version control is not stamped, because a module
// is the same whether it was committed or not.
var goEnv = []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT=", "GOWASM="}

// findGo returns the go command, or what to do without one.
func findGo() (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", hinted(errors.New("no go command on this machine's PATH"),
			"install Go 1.26 or later from https://go.dev/dl, or check an existing module with \"hutch build FILE.wasm\"")
	}
	return path, nil
}

// goTarget is what is to be compiled: a folder, or a package named from the
// current one.
type goTarget struct {
	dir     string // where the go command runs; empty means here
	pattern string
}

// targetOf takes an argument of build or test. Folders are entered, so that the
// module they belong to decides about versions.
func targetOf(arg string) (goTarget, error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return goTarget{dir: arg, pattern: "."}, nil
	case err == nil:
		return goTarget{}, usagef("%s is neither a folder nor a .wasm file", quoted(arg))
	case filepath.IsAbs(arg) || strings.HasPrefix(arg, "."):
		var bad *fs.PathError
		if errors.As(err, &bad) {
			err = bad.Err
		}
		return goTarget{}, usagef("%s: %w", quoted(arg), err).withHint("make a module to start from with \"hutch new NAME\"")
	}
	return goTarget{pattern: arg}, nil
}

// name is what the module is called if nobody says otherwise: the folder's
// name, or the last part of the package's.
func (t goTarget) name() (string, error) {
	if t.dir == "" {
		return lastPart(t.pattern), nil
	}
	abs, err := filepath.Abs(t.dir)
	if err != nil {
		return "", err
	}
	return filepath.Base(abs), nil
}

func lastPart(pattern string) string {
	return pattern[strings.LastIndex(pattern, "/")+1:]
}

// goCommand returns a go command for t in an environment with vars in place of
// its own. What the command says goes to standard error.
func goCommand(ctx context.Context, p program, t goTarget, vars []string, args ...string) (*exec.Cmd, error) {
	path, err := findGo()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = t.dir
	cmd.Env = withEnv(os.Environ(), vars)
	cmd.Stdout, cmd.Stderr = p.stderr, p.stderr
	return cmd, nil
}

// withEnv returns env with vars set, and those of vars that are empty unset.
func withEnv(env, vars []string) []string {
	var out []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !setsVar(vars, name) {
			out = append(out, entry)
		}
	}
	for _, entry := range vars {
		if !strings.HasSuffix(entry, "=") {
			out = append(out, entry)
		}
	}
	return out
}

func setsVar(vars []string, name string) bool {
	for _, entry := range vars {
		if strings.HasPrefix(entry, name+"=") {
			return true
		}
	}
	return false
}

// compile builds t into the file out.
func compile(ctx context.Context, p program, t goTarget, out string) error {
	args := append(append([]string{"build"}, goFlags...), "-o", out, t.pattern)
	cmd, err := goCommand(ctx, p, t, goEnv, args...)
	if err != nil {
		return err
	}
	return runGo(ctx, cmd, "the compiler's messages stand above")
}

func runGo(ctx context.Context, cmd *exec.Cmd, hint string) error {
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return hinted(fmt.Errorf("go %s: %w", cmd.Args[1], err), "%s", hint)
	}
	if err != nil {
		return fmt.Errorf("go %s: %w", cmd.Args[1], err)
	}
	return nil
}
