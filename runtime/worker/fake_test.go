package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case Arg:
			os.Exit(Main())
		case asGreedy:
			os.Exit(greedyMain(os.Args[2]))
		case asMirror:
			os.Exit(mirrorMain())
		case asEcho:
			os.Exit(echoMain())
		case asStubborn:
			os.Exit(stubbornMain())
		case asParent:
			os.Exit(parentMain(os.Args[2:]))
		case asProbe:
			os.Exit(probeMain(os.Args[2:]))
		}
	}
	code := workertest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// fakeWorker is a worker in memory: the real server with a guest written in Go.
type fakeWorker struct {
	pid    int
	killed chan struct{}
	kill   func()
	// greeted is for workers that are played by hand.
	greeted bool
	// words are what it says when it ends.
	words string
}

// behaviour is what the guest does for a tool of that name.
type behaviour map[string]func(ctx context.Context, w *fakeWorker, in abi.Invocation) ([]byte, error)

// Call makes behaviour's worker a guest.
type fakeGuest struct {
	w     *fakeWorker
	tools behaviour
}

func (g *fakeGuest) Anew() string { return "" }

func (g *fakeGuest) Describe(context.Context) ([]byte, error) { return []byte(`{"tools":[]}`), nil }

func (g *fakeGuest) Call(ctx context.Context, _ uint64, in abi.Invocation) ([]byte, abi.Usage, error) {
	tool := g.tools[in.Tool]
	if tool == nil {
		return nil, abi.Usage{}, abi.Failf(abi.ClassGuest, "no tool %q", in.Tool)
	}
	body, err := tool(ctx, g.w, in)
	return body, abi.Usage{LogLines: 7}, err
}

// usual is what most tests need of a guest.
var usual = behaviour{
	"echo": func(_ context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) { return in.Arguments, nil },
	// polite ends when it is told to, stuck never does.
	"polite": func(ctx context.Context, _ *fakeWorker, _ abi.Invocation) ([]byte, error) {
		<-ctx.Done()
		return nil, abi.Failf(abi.ClassCancelled, "told to stop")
	},
	"stuck": func(_ context.Context, w *fakeWorker, _ abi.Invocation) ([]byte, error) {
		<-w.killed
		return nil, nil
	},
	"slow": func(ctx context.Context, w *fakeWorker, in abi.Invocation) ([]byte, error) {
		select {
		case <-time.After(2 * time.Second):
			return in.Arguments, nil
		case <-w.killed:
			return nil, nil
		}
	},
	"crash": func(_ context.Context, w *fakeWorker, _ abi.Invocation) ([]byte, error) {
		w.kill()
		return nil, nil
	},
	"panic": func(context.Context, *fakeWorker, abi.Invocation) ([]byte, error) { panic("secret") },
	"ask": func(ctx context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) {
		r := in.Host(ctx, abi.Request{Op: abi.OpKVGet, Body: []byte(`{"key":"a"}`)})
		return fmt.Appendf(nil, "%v %s", r.Code, r.Body), nil
	},
	// asked makes a gated operation and then takes its time.
	"asked": func(ctx context.Context, w *fakeWorker, in abi.Invocation) ([]byte, error) {
		in.Host(ctx, abi.Request{Op: abi.OpKVSet, Body: []byte(`{}`)})
		<-w.killed
		return nil, nil
	},
	"fail":  func(context.Context, *fakeWorker, abi.Invocation) ([]byte, error) { return nil, errors.New("secret") },
	"large": func(context.Context, *fakeWorker, abi.Invocation) ([]byte, error) { return make([]byte, 2<<20), nil },
}

// fake is a pool whose workers live in this process.
type fake struct {
	*Pool
	logged *logBuffer

	mu      sync.Mutex
	workers []*fakeWorker
	sizes   map[int]int64 // resident bytes by pid; 10 MiB if not set
}

// newFake returns a pool of fake workers that is closed when the test ends. load
// is called for each worker's module, and may block until w is killed.
func newFake(t *testing.T, o Options, load func(ctx context.Context, w *fakeWorker, wasm []byte) (guest, error)) *fake {
	t.Helper()
	f := &fake{logged: &logBuffer{}, sizes: map[int]int64{}}
	o.Logger = slog.New(slog.NewTextHandler(f.logged, nil))
	f.Pool = newPool(o.withDefaults(), func() (*child, error) { return f.launch(load), nil }, f.measure, func() {})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// newUsual returns a pool whose guests have the usual tools.
func newUsual(t *testing.T, o Options) *fake {
	return newFake(t, o, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
		return &fakeGuest{w, usual}, nil
	})
}

func (f *fake) launch(load func(context.Context, *fakeWorker, []byte) (guest, error)) *child {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &fakeWorker{pid: len(f.workers) + 1, killed: make(chan struct{})}
	f.workers = append(f.workers, w)
	return inMemory(w, func(in io.Reader, out io.Writer) error {
		return serve(in, out, func(ctx context.Context, wasm []byte, _ loadHead) (guest, loadReport, error) {
			g, err := load(ctx, w, wasm)
			return g, loadReport{}, err
		},
			slog.New(slog.DiscardHandler))
	})
}

// inMemory makes main a child. Killing it closes its pipes.
func inMemory(w *fakeWorker, main func(io.Reader, io.Writer) error) *child {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	w.kill = sync.OnceFunc(func() {
		_ = inRead.CloseWithError(io.ErrClosedPipe)
		_ = outWrite.Close()
		close(w.killed) // last, so that a dead worker says nothing more
	})
	ended := make(chan error, 1)
	go func() {
		err := main(inRead, outWrite)
		w.kill()
		ended <- err
	}()
	return &child{
		in: inWrite, out: outRead, pid: w.pid, kill: w.kill,
		wait: func() error { return <-ended },
		said: func() string { return cmp.Or(w.words, "its last words") },
	}
}

func (f *fake) measure(pids []int) map[int]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	sizes := map[int]int64{}
	for _, pid := range pids {
		if sizes[pid] = f.sizes[pid]; sizes[pid] == 0 {
			sizes[pid] = 10 << 20
		}
	}
	return sizes
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// numbered returns a module whose digest ends in n.
func numbered(n int) Module {
	return Module{
		Name:   fmt.Sprintf("m%d.wasm", n),
		Digest: fmt.Sprintf("%064x", n),
		Bytes:  func() ([]byte, error) { return []byte("\x00asm\x01\x00\x00\x00"), nil },
	}
}

func tool(name, arguments string) abi.Invocation {
	return abi.Invocation{Tool: name, Arguments: []byte(arguments)}
}

// bubble runs test in a synctest bubble: time passes only when all wait.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// later runs call in a goroutine and returns what waits for its outcome.
func later(f *fake, ctx context.Context, m Module, in abi.Invocation) func() (string, error) {
	type answer struct {
		body []byte
		err  error
	}
	c := make(chan answer, 1)
	go func() {
		body, _, err := f.Call(ctx, m, in)
		c <- answer{body, err}
	}()
	return func() (string, error) {
		a := <-c
		return string(a.body), a.err
	}
}

// wantClass checks the class of an error, and what its text says.
func wantClass(t *testing.T, err error, class abi.Class, text string) {
	t.Helper()
	var f *abi.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got error %v, want a failure of class %s", err, class)
	}
	if f.Class != class || !strings.Contains(f.Text, text) {
		t.Fatalf("got %v, want class %s and a text with %q", f, class, text)
	}
}

func wantAnswer(t *testing.T, body string, err error, want string) {
	t.Helper()
	if err != nil || body != want {
		t.Fatalf("got %q, %v, want %q", body, err, want)
	}
}

// gauge counts how many are inside at once.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() { g.raise(g.now.Add(1)) }
func (g *gauge) leave() { g.now.Add(-1) }
func (g *gauge) raise(n int64) {
	for {
		m := g.most.Load()
		if n <= m || g.most.CompareAndSwap(m, n) {
			return
		}
	}
}
