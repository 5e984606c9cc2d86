package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// newReal returns a pool of real workers, closed when the test ends.
func newReal(t testing.TB, o Options) *Pool {
	t.Helper()
	if o.Command == nil {
		o.Command = workertest.Command(t)
	}
	p, err := NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func asModule(name string, wasm []byte) Module {
	sum := sha256.Sum256(wasm)
	return Module{
		Name: name, Digest: hex.EncodeToString(sum[:]),
		Bytes: func() ([]byte, error) { return wasm, nil },
	}
}

// doing returns a module whose calls do these steps.
func doing(steps ...dialecttest.Step) Module {
	return asModule("built.wasm", dialecttest.Module{Do: steps}.Bytes())
}

func TestRealWorker(t *testing.T) {
	p := newReal(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	echo := asModule("echo.wasm", dialecttest.Module{}.Bytes())
	text, err := p.Describe(t.Context(), echo)
	wantAnswer(t, string(text), err, string(dialecttest.Module{}.Description()))
	body, _, err := p.Call(t.Context(), echo, tool("echo", `{"n":9007199254740993}`))
	if err != nil || !strings.Contains(string(body), `{"n":9007199254740993}`) {
		t.Errorf("got %q, %v", body, err)
	}

	var lines []string
	in := tool("echo", `{}`)
	in.Log = func(l abi.LogLevel, s string) { lines = append(lines, fmt.Sprint(l, s)) }
	in.Host = func(_ context.Context, r abi.Request) abi.Response { return abi.Response{Body: r.Body} }
	var steps []string
	in.Progress = func(step json.RawMessage) { steps = append(steps, string(step)) }
	busy := doing(dialecttest.Log(abi.Warn, 2, "working"), dialecttest.Progress(1, `{"progress":1}`),
		dialecttest.Op(abi.OpKVGet, 2, `{"key":"a"}`))
	body, usage, err := p.Call(t.Context(), busy, in)
	if err != nil || !strings.Contains(string(body), `{"key":"a"}`) {
		t.Errorf("got %q, %v", body, err)
	}
	if !slices.Equal(lines, []string{"3working", "3working"}) || !slices.Equal(steps, []string{`{"progress":1}`}) {
		t.Errorf("lines %q, progress %q", lines, steps)
	}
	if usage.LogLines != 2 || usage.HostCalls != 2 || usage.Fuel <= 0 {
		t.Errorf("usage %+v", usage)
	}
}

// Why calls start a module anew comes back with each of them, and is said once.
func TestWhyCallsStartAnew(t *testing.T) {
	var said strings.Builder
	p := newReal(t, Options{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	asks := asModule("asks.wasm", dialecttest.Module{Initialize: []dialecttest.Step{dialecttest.Config("key")}}.Bytes())
	const why = "it asks for what belongs to a call while it starts"
	for m, want := range map[*Module]string{{}: "", &asks: why} {
		if m.Bytes == nil {
			*m = asModule("echo.wasm", dialecttest.Module{}.Bytes())
		}
		for range 2 {
			if _, err := p.Describe(t.Context(), *m); err != nil {
				t.Fatal(err)
			}
		}
		_, usage, err := p.Call(t.Context(), *m, tool("echo", `{}`))
		if got := p.Anew(m.Digest); err != nil || got != want || usage.Anew != want {
			t.Errorf("%s: %v, anew %q, and %q for a call", m.Name, err, got, usage.Anew)
		}
		in := tool("echo", `{}`)
		in.Limits.Fresh = true
		if _, usage, err := p.Call(t.Context(), *m, in); err != nil || usage.Anew != "" {
			t.Errorf("%s: %v, %q for a call that wants it so", m.Name, err, usage.Anew)
		}
	}
	if n := strings.Count(said.String(), why); n != 1 {
		t.Errorf("said %d times: %s", n, said.String())
	}
	if got := p.Anew(strings.Repeat("0", 64)); got != "" {
		t.Errorf("of a module that is not there: %q", got)
	}
}

func TestReasonsAreBounded(t *testing.T) {
	whole := encodeUsage(abi.Usage{Fuel: 7, Anew: strings.Repeat("x", 1000)})
	answer, usage, err := decodeDone(append(whole, "answer"...))
	if err != nil || string(answer) != "answer" || usage.Fuel != 7 || len(usage.Anew) == 0 || len(usage.Anew) > maxAnew {
		t.Errorf("%q, %+v, %v", answer, usage, err)
	}
	// What a reason could have taken is not the answer's to take.
	long := append(encodeUsage(abi.Usage{}), "four"...)
	if err := (&process{}).accept(header{kind: kindDone}, &call{request: request{max: 3}}, long); err == nil {
		t.Error("an answer over its limit")
	}
	for _, n := range []byte{1, maxAnew + 1, 255} {
		body := encodeUsage(abi.Usage{})
		body[usageBytes-1] = n
		if n > 1 {
			body = append(body, make([]byte, 300)...)
		}
		if _, _, err := decodeDone(body); err == nil {
			t.Errorf("a reason of %d bytes", n)
		}
	}
}

func TestRealFailures(t *testing.T) {
	p := newReal(t, Options{})
	for _, test := range []struct {
		name  string
		m     Module
		class abi.Class
	}{
		{"not wasm", asModule("a.wasm", []byte("hello")), abi.ClassModule},
		{"trap", doing(dialecttest.Trap()), abi.ClassTrap},
		{"exit", doing(dialecttest.Exit(3)), abi.ClassTrap},
		{"own error", doing(dialecttest.Fail(1, "no such city")), abi.ClassGuest},
		{"endless recursion", doing(dialecttest.Recurse()), abi.ClassLimit},
		{"output over the limit", doing(dialecttest.Output(2 << 20)), abi.ClassLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := p.Call(t.Context(), test.m, tool("echo", `{}`))
			wantClass(t, err, test.class, "")
		})
	}
	if s := p.Stats(); s.Reruns != 0 || s.Ends["crash"] != 0 {
		t.Errorf("stats %+v, want no worker lost over these", s)
	}
}

// E01, E02: guests that never end stop at a slice of their fuel once their time is
// over. Their worker goes on.
func TestE01_E02_EndlessGuests(t *testing.T) {
	canary := asModule("canary.wasm", dialecttest.Module{}.Bytes())
	for name, endless := range map[string]dialecttest.Step{"loop": dialecttest.Loop(), "exponential calls": dialecttest.Exponential()} {
		t.Run(name, func(t *testing.T) {
			p := newReal(t, Options{})
			if _, err := p.Describe(t.Context(), canary); err != nil {
				t.Fatal(err)
			}
			m := doing(endless)
			if _, err := p.Describe(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			in := tool("echo", `{}`)
			in.Limits.Wall = 300 * time.Millisecond
			var watch sync.WaitGroup
			watch.Go(func() {
				began := time.Now()
				runtime.GC()
				if _, _, err := p.Call(t.Context(), canary, tool("echo", `{}`)); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("collector and canary took %v meanwhile", took)
				}
			})
			began := time.Now()
			_, _, err := p.Call(t.Context(), m, in)
			wantClass(t, err, abi.ClassTimeout, "longer than 300ms, its limit")
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("took %v", took)
			}
			watch.Wait()
			waitUntil(t, func() bool { return pending(p) == 0 })
			if _, err := p.Describe(t.Context(), m); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if s := p.Stats(); s.Starts != 2 || len(s.Ends) != 0 {
				t.Errorf("stats %+v, want both workers alive", s)
			}
		})
	}
}

// A guest that computes, with or without loops,
// keeps its worker from nothing: while it does, the calls beside it make the worker
// collect, and it answers pings.
func TestComputingWorkersAnswerPings(t *testing.T) {
	for name, busy := range map[string]dialecttest.Step{"loop": dialecttest.Loop(), "exponential calls": dialecttest.Exponential()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, m := newReal(t, Options{Heartbeat: 3 * time.Second, Grace: time.Minute}), doing(busy)
			call := func(wall time.Duration, arguments string) {
				in := tool("echo", arguments)
				in.Limits.Wall = wall
				_, _, err := p.Call(t.Context(), m, in)
				wantClass(t, err, abi.ClassTimeout, "")
			}
			if _, err := p.Describe(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			calls.Go(func() { call(7*time.Second, `{}`) })
			for range 8 {
				call(300*time.Millisecond, `{"text":"`+strings.Repeat("x", 3<<20)+`"}`)
			}
			calls.Wait()
			if s := p.Stats(); s.Starts != 1 || s.Reruns != 0 || len(s.Ends) != 0 {
				t.Errorf("stats %+v, want the worker alive", s)
			}
		})
	}
}

// The neighbours' rule in both directions, with a worker killed from outside.
func TestKill9InTheMiddleOfCalls(t *testing.T) {
	p := newReal(t, Options{})
	m := doing(dialecttest.Op(abi.OpKVSet, 1, "{}"), dialecttest.Sleep(time.Second))
	if _, err := p.Describe(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	entered := make(chan struct{})
	gated := tool("echo", `{}`)
	gated.Host = func(context.Context, abi.Request) abi.Response {
		close(entered)
		return abi.Response{Body: []byte("{}")}
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		_, usage, err := p.Call(t.Context(), m, gated)
		wantClass(t, err, abi.ClassWorkerLost, "ended during the call")
		if usage.HostCalls != 1 {
			t.Errorf("usage %+v of the lost call, want its one operation", usage)
		}
	})
	calls.Go(func() {
		// Without a host the operation is refused inside, so nothing was done.
		if _, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err != nil {
			t.Errorf("call without a gated operation: %v", err)
		}
	})
	<-entered
	waitUntil(t, func() bool { return pending(p) == 2 })
	killAll(t, p)
	calls.Wait()
	if _, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err != nil {
		t.Errorf("call afterwards: %v", err)
	}
	if s := p.Stats(); s.Starts != 2 || s.Reruns != 1 || s.Ends["crash"] != 1 {
		t.Errorf("stats %+v", s)
	}
}

// killAll kills every worker of p as a stranger would.
func killAll(t testing.TB, p *Pool) {
	t.Helper()
	for _, proc := range p.processes() {
		worker, err := os.FindProcess(proc.child.pid)
		if err == nil {
			err = worker.Kill()
		}
		if err != nil {
			t.Log(err) // it has ended by itself
		}
	}
}

// pending counts calls given to workers.
func pending(p *Pool) (n int) {
	for _, proc := range p.processes() {
		proc.mu.Lock()
		n += len(proc.calls)
		proc.mu.Unlock()
	}
	return n
}

// waitUntil polls for what another process does; the bound is for liveness only.
func waitUntil(t testing.TB, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still not so after 20 s")
		}
	}
}

func TestRealCancel(t *testing.T) {
	for _, test := range []struct {
		name string
		step dialecttest.Step
	}{
		{"guest that sleeps", dialecttest.Sleep(time.Minute)},
		{"guest that spins", dialecttest.Loop()},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newReal(t, Options{Grace: 2 * time.Second})
			m := doing(dialecttest.Log(abi.Info, 1, "here"), test.step)
			ctx, cancel := context.WithCancel(t.Context())
			entered, done := make(chan struct{}), make(chan error)
			in := tool("echo", `{}`)
			in.Log = func(abi.LogLevel, string) { close(entered) }
			go func() {
				_, _, err := p.Call(ctx, m, in)
				done <- err
			}()
			<-entered
			cancel()
			wantClass(t, <-done, abi.ClassCancelled, "")
			waitUntil(t, func() bool { return pending(p) == 0 })
			if _, err := p.Describe(t.Context(), m); err != nil {
				t.Error(err)
			}
			if s := p.Stats(); s.Starts != 1 {
				t.Errorf("stats %+v, want the worker to go on", s)
			}
		})
	}
}

func loaded(p *Pool) bool {
	for _, proc := range p.processes() {
		if !proc.loaded.Load() {
			return false
		}
	}
	return true
}

func TestRealCompileLimit(t *testing.T) {
	p := newReal(t, Options{})
	m := asModule("slow.wasm", slowToCompile(1700, 64))
	m.Limits.Compile = 100 * time.Millisecond
	began := time.Now()
	_, err := p.Describe(t.Context(), m)
	wantClass(t, err, abi.ClassTimeout, "compiling the module took longer than 100ms, the limit")
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	waitUntil(t, func() bool { return p.Stats().Workers == 0 })
}

// slowToCompile is a module of a few KB with nested loops, all of whose locals
// are alive in each: compilers take time with the square of that.
func slowToCompile(locals, loops int) []byte {
	var body []byte
	op := func(b ...byte) { body = append(body, b...) }
	number := func(n int) []byte {
		if n < 128 {
			return []byte{byte(n)}
		}
		return []byte{byte(n&127 | 128), byte(n >> 7)}
	}
	op(1)
	op(number(locals)...)
	op(0x7f)
	for range loops {
		op(0x03, 0x40) // loop
	}
	for i := range locals { // local = local + 1
		for _, part := range [][]byte{{0x20}, number(i), {0x41, 1, 0x6a, 0x21}, number(i)} {
			op(part...)
		}
	}
	for range loops {
		op(0x20, 0, 0x0d, 0, 0x0b) // local.get 0; br_if 0; end
	}
	op(0x41, 0, 0x0b)
	section := func(id byte, content []byte) []byte {
		return slices.Concat([]byte{id}, number(len(content)), content)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, []byte("\x01\x60\x00\x01\x7f")),
		section(2, []byte("\x01\x0ahutch:host\x09input_len\x00\x00")),
		section(3, []byte("\x01\x00")),
		section(5, []byte("\x01\x00\x01")),
		section(7, []byte("\x03\x06memory\x02\x00\x08describe\x00\x01\x04call\x00\x01")),
		section(10, slices.Concat([]byte{1}, number(len(body)), body)))
}

func TestE17_TwoHundredParallelCalls(t *testing.T) {
	p := newReal(t, Options{Calls: 8})
	echo := asModule("echo.wasm", dialecttest.Module{}.Bytes())
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			want := fmt.Sprintf(`{"i":%d}`, i)
			body, _, err := p.Call(t.Context(), echo, tool("echo", want))
			if err != nil || !strings.Contains(string(body), want) {
				t.Errorf("call %d: %q, %v", i, body, err)
			}
		})
	}
	calls.Wait()
	if s := p.Stats(); s.Starts != 1 || s.Calls != 200 || s.Running != 0 {
		t.Errorf("stats %+v, want all on one worker", s)
	}
}

func TestRetireWhileCallsRun(t *testing.T) {
	p := newReal(t, Options{})
	m := doing(dialecttest.Sleep(300*time.Millisecond), dialecttest.Text("done"))
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			if _, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	waitUntil(t, func() bool { return pending(p) == 4 })
	p.Retire(m.Digest)
	calls.Wait()
	waitUntil(t, func() bool { return p.Stats().Workers == 0 })
	if s := p.Stats(); s.Ends["retired"] != 1 {
		t.Errorf("stats %+v", s)
	}
}

// The module's own limit of linear memory reaches the engine.
func TestE05_MemoryLimitReachesTheGuest(t *testing.T) {
	p := newReal(t, Options{Calls: 1})
	m := doing(dialecttest.Grow(2000), dialecttest.Text("grown"))
	_, _, err := p.Call(t.Context(), m, tool("echo", `{}`))
	wantClass(t, err, abi.ClassGuest, "no memory")
	large := m
	large.Limits.MemoryBytes = 256 << 20
	large.Digest = strings.Repeat("0", 64)
	body, _, err := p.Call(t.Context(), large, tool("echo", `{}`))
	if err != nil || !strings.Contains(string(body), "grown") {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestBadCommand(t *testing.T) {
	if _, err := NewPool(Options{Command: []string{"/nonexistent/worker"}}); err == nil || !strings.Contains(err.Error(), "worker command: ") {
		t.Errorf("a command that does not exist: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewPool(Options{Command: []string{os.Args[0], Arg}, CacheDir: filepath.Join(file, "cache")}); err == nil || !strings.Contains(err.Error(), "worker cache: ") {
		t.Errorf("a cache folder that cannot be: %v", err)
	}
	// Something that is no program: it passes for a command until it is started.
	file += ".program"
	if err := os.WriteFile(file, []byte{0}, 0o700); err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	p := newReal(t, Options{Command: []string{file}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	_, err := p.Describe(t.Context(), doing())
	wantClass(t, err, abi.ClassInternal, "cannot be started; hutch's log has details")
	if strings.Contains(err.Error(), "/") || !strings.Contains(log.String(), "worker cannot be started") {
		t.Errorf("error %q, log %q: want paths in the log only", err, log)
	}
}

// A program that is no worker is found out, and what it said is in the log.
func TestCommandThatIsNoWorker(t *testing.T) {
	log := &logBuffer{}
	p := newReal(t, Options{Command: []string{os.Args[0], asGreedy, "nonsense"}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	_, err := p.Describe(t.Context(), doing())
	wantClass(t, err, abi.ClassWorkerLost, "as soon as it started")
	waitUntil(t, func() bool { return strings.Contains(log.String(), "worker ended") })
	if !strings.Contains(log.String(), "exit status 1") {
		t.Errorf("log %q, want how it ended", log)
	}
}

// The default command is this program with Arg.
func TestDefaultCommand(t *testing.T) {
	command, err := resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(command) != 2 || command[1] != Arg {
		t.Fatalf("command %q", command)
	}
	c, err := startChild(command)
	if err != nil {
		t.Fatal(err)
	}
	h, err := readHeader(c.out)
	if err != nil || h.kind != kindHello {
		t.Errorf("first frame %+v, %v, want a hello", h, err)
	}
	if _, err := io.CopyN(io.Discard, c.out, int64(h.size)); err != nil {
		t.Error(err)
	}
	// Without a parent it ends by itself.
	if err := c.in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.wait(); err != nil {
		t.Errorf("it ended with %v, want 0", err)
	}
	if err := c.out.Close(); err != nil {
		t.Error(err)
	}
}
