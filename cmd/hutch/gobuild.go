package main

import (
	"context"
	"errors"
	"fmt"
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
var goEnv = []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GO111MODULE=on", "GOFLAGS=-buildvcs=false", "GOEXPERIMENT=", "GOWASM="}

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
	t := goTarget{pattern: arg}
	switch {
	case err == nil && info.IsDir():
		t = goTarget{dir: arg, pattern: "."}
	case err == nil:
		return t, usagef("%s is neither a folder nor a .wasm or .js file", quoted(arg))
	case !isPackage(arg):
		return t, usagef("no folder %s", quoted(arg)).withHint("make a module to start from with \"hutch new NAME\"")
	}
	in, err := inGoModule(t.dir)
	if err == nil && !in {
		where := "here"
		if t.dir != "" && t.dir != "." {
			where = "in " + quoted(t.dir)
		}
		err = hinted(fmt.Errorf("no Go module and no %s %s", scriptMain, where), "cd into the tool's folder, or hutch new NAME")
	}
	return t, err
}

// isPackage reports whether arg can be the path of a package rather than of a
// folder that is not there: such paths begin with the name of a host.
func isPackage(arg string) bool {
	first, _, nested := strings.Cut(arg, "/")
	return nested && strings.Contains(first, ".") && !strings.HasPrefix(first, ".")
}

// inGoModule reports whether dir or a folder above it has a go.mod.
func inGoModule(dir string) (bool, error) {
	at, err := filepath.Abs(dir)
	for err == nil {
		if info, err := os.Stat(filepath.Join(at, "go.mod")); err == nil && info.Mode().IsRegular() {
			return true, nil
		}
		above := filepath.Dir(at)
		if above == at {
			break
		}
		at = above
	}
	return false, err
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
// its own. What the command says goes to say's stream.
func goCommand(ctx context.Context, say *voice, t goTarget, vars []string, args ...string) (*exec.Cmd, error) {
	path, err := findGo()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = t.dir
	cmd.Env = withEnv(os.Environ(), vars)
	cmd.Stdout, cmd.Stderr = say, say
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

// compile builds the sources into the file out.
func (s source) compile(ctx context.Context, say *voice, out string) error {
	args := append(append([]string{"build"}, goFlags...), "-o", out, s.target.pattern)
	cmd, err := goCommand(ctx, say, *s.target, goEnv, args...)
	if err != nil {
		return err
	}
	defer say.eventually("building " + s.name + "; the first time takes a while")()
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit):
		return fmt.Errorf("%s cannot be built: the go command says why above", s.name)
	case err != nil:
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}
