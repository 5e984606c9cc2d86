package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hutch-run/hutch/bench/peers/kernels/compute"
	"github.com/hutch-run/hutch/bench/peers/kernels/text"
)

// nativeGo calls what the Go guests call, without a sandbox.
type nativeGo struct{}

func (nativeGo) Load(_ context.Context, g *guest) (program, error) {
	switch g.name {
	case goGuest:
		return goFunctions{"sha256": compute.SHA256, "sieve": compute.Sieve, "fib": compute.Fib, "matmul": compute.Matmul}, nil
	case goJSONGuest:
		return goFunctions{"json": text.JSON, "regexp": text.Regexp}, nil
	}
	return nil, notForError("")
}

type goFunctions map[string]func() bool

func (f goFunctions) Fresh(context.Context) (instance, uint64, error) { return f, 0, nil }

func (goFunctions) Close(context.Context) error { return nil }

func (goFunctions) Write(uint32, []byte) error {
	return errors.New("native code has no memory of its own")
}

func (f goFunctions) Call(_ context.Context, export string, _ ...uint64) (uint64, error) {
	run := f[export]
	if run == nil {
		return 0, noExport(export)
	}
	if !run() {
		return 1, nil
	}
	return 0, nil
}

// nativeCEngine runs the C guest's source as a program of its own, which does one
// kernel for each line it reads: some microseconds of what is measured are the
// pipe's.
type nativeCEngine struct {
	scratch string
	clock   *clock
}

func (e nativeCEngine) Load(ctx context.Context, g *guest) (program, error) {
	if g.language != langC {
		return nil, notForError("")
	}
	compiler, err := findTool("cc", "clang", "gcc")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(e.scratch, "native")
	sources := []string{filepath.Join(g.source, "kernels.c"), filepath.Join(g.source, "native.c")}
	if err := command(ctx, "", nil, compiler, append([]string{"-O2", "-o", path}, sources...)...); err != nil {
		return nil, err
	}
	return nativeProgram{path, e.clock}, nil
}

type nativeProgram struct {
	path  string
	clock *clock
}

func (p nativeProgram) Fresh(ctx context.Context) (instance, uint64, error) {
	in := &process{cmd: exec.CommandContext(ctx, p.path), clock: p.clock}
	in.cmd.Stderr = os.Stderr
	var err error
	if in.stdin, err = in.cmd.StdinPipe(); err != nil {
		return nil, 0, err
	}
	out, err := in.cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	in.stdout = bufio.NewReader(out)
	return in, 0, in.cmd.Start()
}

func (nativeProgram) Close(context.Context) error { return nil }

type process struct {
	clock  *clock
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

func (p *process) Call(_ context.Context, export string, _ ...uint64) (uint64, error) {
	if _, err := fmt.Fprintln(p.stdin, export); err != nil {
		return 0, err
	}
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var code uint64
	var took time.Duration
	if _, err := fmt.Sscan(line, &code, &took); err != nil {
		return 0, fmt.Errorf("answer %q: %w", line, err)
	}
	p.clock.add(took)
	return code, nil
}

func (*process) Write(uint32, []byte) error { return errors.New("a process's memory is its own") }

func (p *process) Close(context.Context) error {
	return errors.Join(p.stdin.Close(), p.cmd.Wait())
}
