// Command hutch turns a folder of untrusted .wasm files into tools that any
// agent can use.
//
// One file holds one command. [Config] is what hutch was told, [App] is what
// runs because of it, and the only place that knows every package.
package main

import (
	"context"
	"io"
	"os"

	"github.com/hutch-run/hutch/host/fetch"
	"github.com/hutch-run/hutch/runtime/worker"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

func main() {
	// A worker is this same program. It must not parse flags, read the
	// environment or touch a file before it has the module it is for.
	if len(os.Args) > 1 && os.Args[1] == worker.Arg {
		os.Exit(worker.Main())
	}
	os.Exit(run(os.Args, program{
		name: os.Args[0], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.Getenv, environ: os.Environ,
	}))
}

// program is what commands may touch besides their flags, so that a test can
// run one with its own.
type program struct {
	// name is how the program was called: a bare name or a path.
	name           string
	stdin          io.ReadCloser
	stdout, stderr io.WriteCloser
	env            func(string) string
	environ        func() []string
	// typesAhead has an answer count that was typed before its question was shown.
	typesAhead bool
	// worker is the command that starts a worker process; nil means this
	// program's own file with [worker.Arg].
	worker []string
	// shipped are the modules that came with the binary; nil means the embedded
	// ones.
	shipped *toolswasm.Set
	// interrupts has Ctrl-C end a part of the command; nil is never.
	interrupts *interrupts
	// web is how requests of tools are made; the zero value is as usual.
	web fetch.Options
}

// secretEnviron is the environment, for who looks for secrets in it.
func (p program) secretEnviron() []string {
	if p.environ == nil {
		return nil
	}
	return p.environ()
}

// run runs the command named by args and returns the exit code.
func run(args []string, p program) int {
	p.interrupts = &interrupts{}
	ctx, stop := p.interrupts.notify(context.Background())
	defer stop()
	ended := make(chan struct{})
	defer close(ended)
	go enforce(ctx, stop, ended, func() { giveUp(p.stderr) })
	return report(p.stderr, runCommand(ctx, args, p))
}
