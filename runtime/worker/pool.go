package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Options configure a pool; the zero value works.
type Options struct {
	// Command starts a worker: a program that calls [Main], and its arguments.
	// Default: this program with [Arg].
	Command []string
	// Image opens a program that calls [Main]. On Linux it is kept in memory and
	// started instead of this program where there is no Command: a smaller program
	// starts faster and needs less memory. Optional.
	Image func() (io.ReadCloser, error)
	// CacheDir is where workers keep compiled code, in a folder for each SHA-256 of
	// what Module.Bytes returns.
	// Empty: nothing is kept, and each start compiles anew.
	CacheDir string
	// CacheBytes is how much compiled code Tidy leaves in CacheDir. Default 1 GiB:
	// what some 50 modules written in Go come to.
	CacheBytes int64
	// IdleTTL is how long a worker without calls is kept. Default 60 s.
	IdleTTL time.Duration
	// MemoryBudget is the resident memory of all workers, in bytes, above which
	// idle ones are ended, the least recently used first. Default 1 GiB.
	MemoryBudget int64
	// Compilations is how many modules may compile at once. Waiting for a turn
	// does not count against Limits.Compile. Default: 1 on up to two cores, else
	// half the cores.
	Compilations int
	// Calls is how many calls of one worker run at once; more wait in line, within
	// their own wall limit. Default: four for each core.
	Calls int
	// Queue is how many calls of one module may wait in line; one more is refused
	// at once. Default 256.
	Queue int
	// Rate is how many calls of one module may begin in a second; one more is
	// refused at once. Unused ones of the last second count. Default 1,000.
	Rate int
	// Heartbeat is how long a worker may answer nothing, in whole seconds, before
	// it is killed. Default 5 s.
	Heartbeat time.Duration
	// Died is told of each worker that a module took down, and how: "crash",
	// "timeout", "memory", "protocol" or "frozen". It is called from any goroutine,
	// before the calls of the worker end, and should be quick. Default: nobody is.
	Died func(m Module, how string)
	// Grace is how long a call whose caller has left, or whose time is up, may take
	// to end by itself before its worker is killed. Default 100 ms.
	Grace time.Duration
	// RequireJail refuses to run a module in a worker that both layers of the jail
	// do not hold. Without it, what is missing is a warning.
	RequireJail bool
	// Logger gets what operators should know. Default: nothing is logged.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	cores := runtime.NumCPU()
	o.IdleTTL = cmp.Or(o.IdleTTL, time.Minute)
	o.CacheBytes = cmp.Or(o.CacheBytes, 1<<30)
	o.MemoryBudget = cmp.Or(o.MemoryBudget, 1<<30)
	o.Compilations = cmp.Or(o.Compilations, max(1, cores/2))
	o.Calls = cmp.Or(o.Calls, 4*cores)
	o.Queue = cmp.Or(o.Queue, 256)
	o.Rate = cmp.Or(o.Rate, 1000)
	o.Heartbeat = cmp.Or(o.Heartbeat, 5*time.Second)
	o.Grace = cmp.Or(o.Grace, 100*time.Millisecond)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// image returns Image where it counts.
func (o Options) image() func() (io.ReadCloser, error) {
	if len(o.Command) > 0 || runtime.GOOS != "linux" {
		return nil
	}
	return o.Image
}

// Module is what a worker runs.
type Module struct {
	// Name is for logs only.
	Name string
	// Digest identifies the module: SHA-256 as 64 lower-case hex digits.
	Digest string
	// Bytes returns the module, checked and stripped already. It is called for
	// each start of a worker, never twice at once for one module.
	Bytes func() ([]byte, error)
	// Limits bound loading and describing, and calls that set none themselves.
	Limits abi.Limits
}

// Pool runs modules in workers: one for each digest, started on first use.
// It is safe for concurrent use.
type Pool struct {
	o       Options
	launch  func() (*child, error)
	measure func(pids []int) map[int]int64
	cache   *cacheFolder
	compile chan struct{} // one place for each compilation at once
	count   counters
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	stop    func() // ends the spawner
	wake    chan struct{}
	busy    group // starts, processes and the sweeper

	mu    sync.Mutex
	slots map[string]*slot
	procs map[*process]*slot
	jail  *Jail // as the last worker found it; nil before the first
}

// group counts what Close waits for. Its lock is taken last and alone.
type group struct {
	sync.WaitGroup
	mu     sync.Mutex
	closed bool
}

// enter counts one more, to be taken back with Done, unless the group is closed.
func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.Add(1)
	}
	return !g.closed
}

// close lets nothing more in and reports whether it was open.
func (g *group) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	wasOpen := !g.closed
	g.closed = true
	return wasOpen
}

// ErrCgo says that this program was built in a way that lets it run no worker.
var ErrCgo = errors.New("this program was built with cgo, whose threads the jail of a worker forbids")

// NewPool returns a pool. It checks that the command exists and the cache folder
// can be made, but starts nothing.
func NewPool(o Options) (*Pool, error) {
	o = o.withDefaults()
	command, err := resolve(o.Command)
	if err == nil && withCgo && len(o.Command) == 0 && o.Image == nil {
		err = ErrCgo
	}
	if err != nil {
		return nil, err
	}
	if o.CacheDir != "" {
		if o.CacheDir, err = filepath.Abs(o.CacheDir); err != nil {
			return nil, fmt.Errorf("worker cache: %w", err)
		}
		if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
			return nil, fmt.Errorf("worker cache: %w", err)
		}
		(&cacheFolder{dir: o.CacheDir, log: o.Logger}).sweep()
	}
	s := newSpawner(starter{command: command, image: o.image(), log: o.Logger})
	go s.run()
	return newPool(o, s.start, residentBytes, s.stop), nil
}

func newPool(o Options, launch func() (*child, error), measure func([]int) map[int]int64, stop func()) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pool{
		o: o, launch: launch, measure: measure, stop: stop,
		cache: &cacheFolder{dir: o.CacheDir, log: o.Logger}, compile: make(chan struct{}, o.Compilations),
		ctx: ctx, cancel: cancel, wake: make(chan struct{}, 1),
		slots: map[string]*slot{}, procs: map[*process]*slot{},
	}
	p.busy.Go(p.sweep)
	return p
}

// resolve returns command with an absolute path, since workers start elsewhere.
func resolve(command []string) ([]string, error) {
	if len(command) == 0 {
		self, err := selfCommand()
		if err != nil {
			return nil, fmt.Errorf("worker command: %w", err)
		}
		return []string{self, Arg}, nil
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("worker command: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("worker command: %w", err)
	}
	return append([]string{path}, command[1:]...), nil
}

// Describe returns what the module says about itself: JSON as it wrote it, at
// most 256 KiB. Starting the worker is bounded by Limits.Compile and waiting for
// others to compile by ctx alone; then Limits.Wall counts. Errors are
// *[abi.Failure].
func (p *Pool) Describe(ctx context.Context, m Module) ([]byte, error) {
	limits := m.Limits.WithDefaults()
	s, failure := p.slot(m)
	if failure != nil {
		return nil, failure
	}
	defer s.release()
	if _, failure := s.process(ctx); failure != nil {
		return nil, failure
	}
	body, usage, err := s.call(ctx, request{kind: kindDescribe, max: maxDescription, inv: abi.Invocation{Limits: limits}})
	s.startsAnew(usage.Anew)
	return body, err
}

// Anew says why each call starts a module anew, as its worker found when it was last
// described; it is empty if that was not since it was last retired.
func (p *Pool) Anew(digest string) string {
	p.mu.Lock()
	s := p.slots[digest]
	p.mu.Unlock()
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.anew
}

// Call runs one call of one tool and returns the result's JSON as the module
// wrote it, at most Limits.OutputBytes long and not checked otherwise. All of it
// happens within Limits.Wall: waiting for a turn and for a start as well. A start
// goes on when its callers have given up, so that a later call finds it done.
//
// If the worker is lost through no fault of this call, the call is run once more
// on the next worker with what is left of its time, provided it had made no gated
// operation; its log lines and progress then begin again. No callback of in runs
// after Call has returned, and a gated operation's context has ended then.
//
// Errors are *[abi.Failure]: ClassBusy, at once, if more calls of the module wait
// or came than may; ClassTimeout and ClassCancelled as soon as the time is up or
// ctx ends; ClassWorkerLost if the worker ended first; what the worker
// found otherwise.
func (p *Pool) Call(ctx context.Context, m Module, in abi.Invocation) ([]byte, abi.Usage, error) {
	in.Limits = in.Limits.Or(m.Limits).WithDefaults()
	if n := len(in.Arguments); n > in.Limits.InputBytes {
		return nil, abi.Usage{}, abi.Exceeded(abi.ClassLimit, abi.LimitInput, "arguments of %d bytes, at most %d", n, in.Limits.InputBytes)
	}
	head, err := encodeHead(callHead{
		Tool: in.Tool, Config: in.Config, AskConfig: in.AskConfig, Limits: in.Limits,
		Host: in.Host != nil, Log: in.Log != nil, Progress: in.Progress != nil,
	})
	if err != nil {
		return nil, abi.Usage{}, abi.Failf(abi.ClassInternal, "the call cannot be encoded")
	}
	if n := len(head) + len(in.Arguments); n > maxCall {
		return nil, abi.Usage{}, abi.Failf(abi.ClassLimit, "call of %d bytes, at most %d", n, maxCall)
	}
	s, failure := p.slot(m)
	if failure != nil {
		return nil, abi.Usage{}, failure
	}
	defer s.release()
	if failure := s.admit(); failure != nil {
		return nil, abi.Usage{}, failure
	}
	return s.call(ctx, request{kind: kindCall, head: head, tail: in.Arguments, max: in.Limits.OutputBytes, inv: in})
}

// slot returns the digest's slot with one use counted.
func (p *Pool) slot(m Module) (*slot, *abi.Failure) {
	if !abi.IsDigest(m.Digest) {
		return nil, abi.Failf(abi.ClassInternal, "module digest %q is not 64 lower-case hex digits", abi.Cut(m.Digest, 80))
	}
	if p.ctx.Err() != nil {
		return nil, closedFailure()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[m.Digest]
	if s == nil {
		s = newSlot(p, m)
		p.slots[m.Digest] = s
	}
	s.use()
	return s, nil
}

// Retire gives up the digest's worker: it takes no new calls and ends when the
// running ones are done. Retire returns at once. A later call of the same digest
// gets a new worker.
func (p *Pool) Retire(digest string) {
	p.mu.Lock()
	s := p.slots[digest]
	delete(p.slots, digest)
	p.mu.Unlock()
	if s != nil {
		s.retire()
	}
}

// Close ends every worker, whatever it is doing, and waits until all are reaped
// and no goroutine is left. Running calls get ClassWorkerLost. Only the first
// Close does anything; the error is always nil.
func (p *Pool) Close() error {
	if !p.busy.close() {
		return nil
	}
	p.cancel()
	for _, proc := range p.processes() {
		proc.end(endClosed)
	}
	p.busy.Wait()
	p.stop()
	return nil
}

func (p *Pool) processes() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*process, 0, len(p.procs))
	for proc := range p.procs {
		all = append(all, proc)
	}
	return all
}

// spawn starts a worker for s. The start has entered busy.
func (p *Pool) spawn(s *slot) (*process, error) {
	c, err := p.launch()
	if err != nil {
		return nil, err
	}
	p.count.starts.Add(1)
	proc := adopt(c, processOptions{
		log:   p.o.Logger.With("module", s.module.Name, "digest", s.module.Digest[:12]),
		calls: p.o.Calls, grace: p.o.Grace, count: &p.count,
		onEnd: func(proc *process, why reason) {
			p.count.ended(why)
			s.forget(proc, why)
			if why.deadly() && p.o.Died != nil {
				p.o.Died(s.module, string(why))
			}
		},
	})
	p.mu.Lock()
	p.procs[proc] = s
	p.mu.Unlock()
	p.busy.Go(func() {
		<-proc.gone
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.procs, proc)
	})
	if p.ctx.Err() != nil { // Close may have looked before it was listed
		proc.end(endClosed)
	}
	p.nudge()
	return proc, nil
}

// stackBytes is the most a call's stack takes in the engine (wazero v1.12.0): it
// doubles up to 84 MB, while the half of that is still there.
const stackBytes = 128 << 20

// ceiling is the most memory the worker of a module may use: its own, room to
// compile, and for each call a stack and an instance twice over, since memory that
// grows is copied. No instance can have more than 4 GiB.
func (p *Pool) ceiling(l abi.Limits) int64 {
	return 768<<20 + int64(p.o.Calls)*(stackBytes+2*min(l.MemoryBytes, 4<<30))
}
