package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// Arguments that make the test program something else.
const (
	asStubborn = "__stubborn" // a worker that loads, and then ignores everything
	asParent   = "__parent"   // a parent, with the worker command as arguments
	asGreedy   = "__greedy"   // a worker that takes 1 GiB, with its limit as argument
)

// stubbornMain is a worker that does not even notice the end of its input.
func stubbornMain() int {
	if err := step(os.Stdin, os.Stdout, &fakeWorker{}); err != nil {
		return 1
	}
	if err := step(os.Stdin, os.Stdout, &fakeWorker{greeted: true}); err != nil {
		return 1
	}
	select {}
}

// parentMain runs a guest that never ends, says which process it is in, and waits
// for its own end.
func parentMain(command []string) int {
	p, err := NewPool(Options{Command: command})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_, _, err := p.Call(context.Background(), doing(dialecttest.Exponential()), tool("echo", `{}`))
		fmt.Fprintln(os.Stderr, err)
	}()
	for pending(p) == 0 || !loaded(p) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(p.processes()[0].child.pid)
	_, err = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A parent that is killed leaves no worker behind, be the guest spinning or the
// worker deaf to its input's end.
func TestWorkersDieWithTheirParent(t *testing.T) {
	if !diesWithParent {
		t.Skip("this platform has no death signal: a worker ends when it sees its input end")
	}
	for name, worker := range map[string][]string{
		"guest that spins": workertest.Command(t),
		"deaf worker":      {os.Args[0], asStubborn},
	} {
		t.Run(name, func(t *testing.T) {
			parent := exec.Command(os.Args[0], append([]string{asParent}, worker...)...)
			parent.Stderr = os.Stderr
			in, err := parent.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
				t.Fatal(err)
			}
			if !isRunning(pid) {
				t.Fatalf("worker %d does not run", pid)
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := parent.Wait(); err == nil {
				t.Error("the parent was not killed")
			}
			waitUntil(t, func() bool { return !isRunning(pid) })
			_ = in.Close() // the parent's end of it is gone anyway
		})
	}
}

func TestCloseLeavesNoProcess(t *testing.T) {
	p := newReal(t, Options{})
	for _, m := range []Module{doing(), doing(dialecttest.Trap()), doing(dialecttest.Loop())} {
		if _, err := p.Describe(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var pids []int
	for _, proc := range p.processes() {
		pids = append(pids, proc.child.pid)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		// A zombie would still have a size.
		if found := residentBytes([]int{pid}); len(found) > 0 {
			t.Errorf("process %d is still there", pid)
		}
	}
	if len(pids) != 3 {
		t.Errorf("%d workers, want 3", len(pids))
	}
}

func TestResidentBytes(t *testing.T) {
	found := residentBytes([]int{os.Getpid(), 1 << 30})
	if n := found[os.Getpid()]; n < 1<<20 || n > 1<<40 || len(found) != 1 {
		t.Errorf("found %v, want this process with a few MiB", found)
	}
}

// What a worker says on standard error reaches the log, and nobody else.
func TestLastWords(t *testing.T) {
	c, err := startChild([]string{os.Args[0], "-test.run=NoSuchTest", "-nosuchflag"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c.out); err != nil {
		t.Error(err)
	}
	if err := c.wait(); err == nil {
		t.Error("no error for an unknown flag")
	}
	if !strings.Contains(c.said(), "nosuchflag") {
		t.Errorf("it said %q", c.said())
	}
	if err := c.in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.out.Close(); err != nil {
		t.Error(err)
	}
}
