package worker

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// asEcho makes the test program a worker whose guest is a line of Go, so that
// the pipe is measured and not the engine.
const asEcho = "__echo"

func echoMain() int {
	tune(loadHead{Calls: 4 * runtime.NumCPU(), MemoryBytes: 1 << 30})
	load := func(context.Context, []byte, loadHead) (guest, loadReport, error) {
		return &fakeGuest{tools: usual}, loadReport{}, nil
	}
	if err := run(load, slog.New(slog.DiscardHandler)); err != nil {
		return 1
	}
	return 0
}

// asMirror makes the test program send back what it reads, in frames of
// mirrored bytes: what any worker would cost that does nothing.
const (
	asMirror = "__mirror"
	mirrored = 1024
)

func mirrorMain() int {
	in, err := standardPipe(os.Stdin)
	if err != nil {
		return 1
	}
	out, err := standardPipe(os.Stdout)
	if err != nil {
		return 1
	}
	for b := make([]byte, mirrored); ; {
		if _, err := io.ReadFull(in, b); err != nil {
			return 0
		}
		if _, err := out.Write(b); err != nil {
			return 1
		}
	}
}

// timed runs op b.N times and reports the median and the 99th of a hundred.
func timed(b *testing.B, op func()) {
	b.Helper()
	took := make([]time.Duration, 0, 1<<16)
	for b.Loop() {
		began := time.Now()
		op()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

// BenchmarkRoundTrip is a call of 1 KiB there and back, to a guest that takes no
// time, and to a real one.
func BenchmarkRoundTrip(b *testing.B) {
	argument := `{"text":"` + strings.Repeat("x", 1013) + `"}`
	for name, command := range map[string][]string{"pipe": {os.Args[0], asEcho}, "guest": workertest.Command(b)} {
		b.Run(name, func(b *testing.B) { benchCall(b, newReal(b, Options{Command: command, Rate: 1 << 30}), argument) })
	}
}

// BenchmarkMirror is 1 KiB there and back to a process that does nothing with it,
// read by a goroutine that hands it on: the least that this machine takes.
func BenchmarkMirror(b *testing.B) {
	c, err := startChild([]string{os.Args[0], asMirror})
	if err != nil {
		b.Fatal(err)
	}
	back := make(chan struct{}, 1)
	go func() {
		defer close(back)
		for buf := make([]byte, mirrored); ; back <- struct{}{} {
			if _, err := io.ReadFull(c.out, buf); err != nil {
				return
			}
		}
	}()
	line := make([]byte, mirrored)
	timed(b, func() {
		if _, err := c.in.Write(line); err != nil {
			b.Fatal(err)
		}
		<-back
	})
	c.kill()
	for range back { // until its output has ended
	}
	// How it ends is not what is measured.
	_ = c.wait()
	_, _ = c.in.Close(), c.out.Close()
}

// BenchmarkLargeCall is a call of 1 MB there and back.
func BenchmarkLargeCall(b *testing.B) {
	argument := `{"text":"` + strings.Repeat("x", 1_000_000-11) + `"}`
	for name, command := range map[string][]string{"pipe": {os.Args[0], asEcho}, "guest": workertest.Command(b)} {
		b.Run(name, func(b *testing.B) { benchCall(b, newReal(b, Options{Command: command, Rate: 1 << 30}), argument) })
	}
}

func benchCall(b *testing.B, p *Pool, argument string) {
	m := doing()
	in := tool("echo", argument)
	in.Limits.OutputBytes = 2 << 20
	call := func() {
		if _, _, err := p.Call(b.Context(), m, in); err != nil {
			b.Fatal(err)
		}
	}
	for range 20 {
		call()
	}
	timed(b, call)
}

// BenchmarkSpawn is from nothing to the hello, and with a small module loaded and
// described.
func BenchmarkSpawn(b *testing.B) {
	b.Run("hello", func(b *testing.B) {
		command := workertest.Command(b)
		timed(b, func() {
			c, err := startChild(command)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := readHeader(bufio.NewReader(c.out)); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			c.kill()
			// How it ends is not what is measured.
			_, _ = io.Copy(io.Discard, c.out)
			_ = c.wait()
			_, _ = c.in.Close(), c.out.Close()
			b.StartTimer()
		})
	})
	b.Run("described", func(b *testing.B) {
		p := newReal(b, Options{Rate: 1 << 30})
		m := asModule("echo.wasm", dialecttest.Module{}.Bytes())
		timed(b, func() {
			if _, err := p.Describe(b.Context(), m); err != nil {
				b.Fatal(err)
			}
			p.Retire(m.Digest)
		})
	})
}

// BenchmarkKill is from a call's deadline, past its grace, to the next answer.
func BenchmarkKill(b *testing.B) {
	p := newReal(b, Options{Grace: time.Millisecond})
	m := doing(dialecttest.Loop())
	in := tool("echo", `{}`)
	in.Limits.Wall = time.Millisecond
	timed(b, func() {
		if _, _, err := p.Call(b.Context(), m, in); err == nil {
			b.Fatal("an endless guest answered")
		}
		if _, err := p.Describe(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	})
}
