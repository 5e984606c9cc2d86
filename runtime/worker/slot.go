package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/hutch-run/hutch/protocol/abi"
)

// slot is a digest's place in a pool: its worker, if one is alive, and who uses it.
type slot struct {
	pool   *Pool
	module Module
	calls  *turnstile    // who runs, and who waits
	rate   *rate.Limiter // how often calls may begin

	mu sync.Mutex
	// code names the compiled code, once a start has found out. Starts come one
	// after another, and nothing else writes it.
	code     string
	proc     *process
	starting *start
	// users are callers inside Call or Describe; idleSince is when there was none.
	users     int
	idleSince time.Time
	retired   bool
	// anew is why each call starts the module anew, empty if none does or it is not
	// known.
	anew string
	// fails counts what went wrong in a row, failure is the last of it, and until
	// then it is the answer to everyone.
	fails   int
	failure *abi.Failure
	until   time.Time
}

// start is a worker on its way, which any number of callers wait for. proc and
// failure are set before done is closed.
type start struct {
	done    chan struct{}
	proc    *process
	failure *abi.Failure
}

func newSlot(p *Pool, m Module) *slot {
	m.Limits = m.Limits.WithDefaults()
	return &slot{
		pool: p, module: m, calls: newTurnstile(p.o.Calls, p.o.Queue),
		rate: rate.NewLimiter(rate.Limit(p.o.Rate), p.o.Rate),
	}
}

// startsAnew keeps why each call starts the module anew, and says it once.
func (s *slot) startsAnew(why string) {
	s.mu.Lock()
	known := s.anew == why
	s.anew = why
	s.mu.Unlock()
	if why != "" && !known {
		s.pool.o.Logger.Info("each call starts the module anew, which is slower", "module", s.module.Name, "why", why)
	}
}

func (s *slot) use() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

func (s *slot) release() {
	s.mu.Lock()
	s.users--
	s.idleSince = time.Now()
	s.mu.Unlock()
	s.endRetired()
}

func (s *slot) retire() {
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.endRetired()
}

func (s *slot) endRetired() {
	if p := s.surrender(func() bool { return s.retired }); p != nil {
		p.end(endRetired)
	}
}

// surrender gives up the worker if nobody uses it and when, asked under the lock,
// agrees. The caller ends it.
func (s *slot) surrender(when func() bool) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.users > 0 || !when() {
		return nil
	}
	p := s.proc
	s.proc = nil
	return p
}

// call runs r within its wall limit, and once more if it is lost blamelessly.
func (s *slot) call(ctx context.Context, r request) ([]byte, abi.Usage, error) {
	wall := r.inv.Limits.Wall
	ctx, cancel := context.WithTimeoutCause(ctx, wall, &wallError{wall})
	defer cancel()
	s.pool.count.calls.Add(1)
	s.pool.count.running.Add(1)
	defer s.pool.count.running.Add(-1)
	o := s.attempt(ctx, r, false)
	if o.lost && !o.gated && s.pool.ctx.Err() == nil {
		s.pool.count.reruns.Add(1)
		o = s.attempt(ctx, r, true)
	}
	return o.result()
}

// admit refuses a call, at once, if too many of the module came this second.
func (s *slot) admit() *abi.Failure {
	soon := s.rate.Reserve()
	wait := soon.Delay()
	if wait == 0 {
		return nil
	}
	soon.Cancel()
	return abi.Exceeded(abi.ClassBusy, abi.LimitRate, "more than %d calls of its module in a second, try again in %v",
		s.pool.o.Rate, max(wait, time.Millisecond).Round(time.Millisecond))
}

// attempt waits for a turn and a worker, and gives it r. again says that r was
// given to a worker before.
func (s *slot) attempt(ctx context.Context, r request, again bool) outcome {
	if ctx.Err() != nil { // before anything is started for nobody
		failure, _ := overdue(ctx, "")
		return outcome{failure: failure}
	}
	switch in, full := s.calls.enter(ctx, r.inv.Line, again); {
	case full:
		return outcome{failure: abi.Exceeded(abi.ClassBusy, abi.LimitQueue,
			"%d calls of its module run and %d wait already, try again in a moment", s.pool.o.Calls, s.pool.o.Queue)}
	case !in:
		failure, _ := overdue(ctx, "other calls of the tool were running")
		return outcome{failure: failure}
	}
	p, failure := s.process(ctx)
	if failure != nil {
		s.calls.leave()
		return outcome{failure: failure}
	}
	c := &call{request: r, ctx: ctx, free: s.calls.leave}
	return p.do(c, func(ctx context.Context) (*abi.Failure, reason) { return overdue(ctx, "") })
}

// overdue says why a call's context ended, and what that makes of its worker.
func overdue(ctx context.Context, during string) (*abi.Failure, reason) {
	if during != "" {
		during = ": " + during
	}
	cause := context.Cause(ctx)
	if limit := (*wallError)(nil); errors.As(cause, &limit) {
		return abi.Exceeded(abi.ClassTimeout, abi.LimitWall, "%v%s", limit, during), endTimeout
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return abi.Failf(abi.ClassTimeout, "the caller's own deadline passed%s", during), endCancelled
	}
	return abi.Failf(abi.ClassCancelled, "the call was cancelled%s", during), endCancelled
}

// process returns the slot's worker, starting one if there is none. Whoever
// gives up waiting leaves the start to the others.
func (s *slot) process(ctx context.Context) (*process, *abi.Failure) {
	s.mu.Lock()
	if p := s.proc; p != nil && p.reason() == "" { // else forget is about to be told
		s.mu.Unlock()
		return p, nil
	}
	st := s.starting
	if st == nil {
		if wait := time.Until(s.until); wait > 0 {
			defer s.mu.Unlock()
			return nil, s.resting(wait)
		}
		if !s.pool.busy.enter() {
			s.mu.Unlock()
			return nil, closedFailure()
		}
		st = &start{done: make(chan struct{})}
		s.starting = st
		go s.start(st)
	}
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.proc, st.failure
	case <-ctx.Done():
		failure, _ := overdue(ctx, "the module is still being loaded")
		return nil, failure
	}
}

// resting is the answer while a module that failed is left alone.
func (s *slot) resting(wait time.Duration) *abi.Failure {
	if s.fails < 2 {
		return s.failure
	}
	return abi.Failf(s.failure.Class, "%s (failed %d times in a row, next try in %v)",
		s.failure.Text, s.fails, wait.Round(time.Second/10))
}

func (s *slot) start(st *start) {
	defer s.pool.busy.Done()
	p, failure := s.load()
	s.mu.Lock()
	s.starting = nil
	st.proc, st.failure = p, failure
	switch {
	case failure != nil:
		s.rest(failure, 0)
	case p.reason() == "": // else forget has been told, or will be
		s.proc = p
		s.idleSince = time.Now()
	}
	s.mu.Unlock()
	close(st.done)
	s.endRetired() // if everyone who wanted it has gone
}

// load starts a worker and has it load the module, in turn with others.
func (s *slot) load() (*process, *abi.Failure) {
	pool := s.pool
	entry, err := s.entry()
	if err != nil {
		return nil, s.unreadable(err)
	}
	defer entry.discard()
	if !entry.finished() {
		select {
		case pool.compile <- struct{}{}:
			defer func() { <-pool.compile }()
		case <-pool.ctx.Done():
			return nil, closedFailure()
		}
	}
	head, wasm, err := s.image(entry)
	if err != nil {
		return nil, s.unreadable(err)
	}
	if n := len(head) + len(wasm); n > maxModule {
		return nil, abi.Failf(abi.ClassModule, "module of %d bytes, at most %d", n, maxModule)
	}
	pool.evict()
	p, err := pool.spawn(s)
	if err != nil {
		pool.o.Logger.Error("worker cannot be started", "module", s.module.Name, "err", err)
		return nil, abi.Failf(abi.ClassInternal, "the tool's process cannot be started; hutch's log has details")
	}
	report, failure := p.load(pool.ctx, head, wasm, s.module.Limits.Compile)
	if failure != nil {
		return nil, failure
	}
	pool.observe(report.Jail)
	if pool.o.RequireJail && report.Jail.Err() != nil {
		p.end(endStart)
		return nil, report.Jail.failure()
	}
	entry.finish(report.CacheStale)
	return p, nil
}

func (s *slot) unreadable(err error) *abi.Failure {
	s.pool.o.Logger.Error("module cannot be loaded", "module", s.module.Name, "err", err)
	return abi.Failf(abi.ClassInternal, "the module's bytes cannot be read; hutch's log has details")
}

// entry returns where the module's compiled code is kept. The bytes are read for
// its name the first time, and let go: the turn to compile may be far away. Only
// one start runs at a time, so reading code needs no lock.
func (s *slot) entry() (cacheEntry, error) {
	if s.code == "" {
		wasm, err := s.bytes()
		if err != nil {
			return cacheEntry{}, err
		}
		code := CodeDigest(wasm)
		s.mu.Lock()
		s.code = code
		s.mu.Unlock()
	}
	return s.pool.cache.open(s.code), nil
}

// bytes recovers, since where modules come from is not this package's business.
func (s *slot) bytes() (wasm []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return s.module.Bytes()
}

// image returns the body of the load frame.
func (s *slot) image(entry cacheEntry) (head, wasm []byte, err error) {
	o := s.pool.o
	head, err = encodeHead(loadHead{
		CacheDir: entry.path, CacheReadOnly: !entry.fresh, RequireJail: o.RequireJail,
		Limits: s.module.Limits, Calls: o.Calls, MemoryBytes: s.pool.ceiling(s.module.Limits),
	})
	if err != nil {
		return nil, nil, err
	}
	wasm, err = s.bytes()
	return head, wasm, err
}

// How long a module whose worker fails is left alone: twice as long each time.
const (
	restFirst = 250 * time.Millisecond
	restMost  = 30 * time.Second
)

// rest notes a failure in a row, of which the first free ones cost no pause.
// s.mu is held.
func (s *slot) rest(failure *abi.Failure, free int) {
	s.fails++
	s.failure = failure
	if n := s.fails - 1 - free; n >= 0 {
		s.until = time.Now().Add(min(restFirst<<min(n, 10), restMost))
	}
}

// forget is told when a worker takes no more calls. One that loaded its module
// but broke before it answered anything counts as a failure, the first of which
// is free: the calls it took along may be run again at once.
func (s *slot) forget(p *process, why reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == p {
		s.proc = nil
	}
	switch {
	case p.served.Load():
		s.fails = 0
	case p.loaded.Load() && why.broken():
		s.rest(abi.Failf(abi.ClassWorkerLost, "the tool's process ended before it answered anything"), 1)
	}
}
