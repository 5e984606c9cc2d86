package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// What one group may hold: so many changes, begun within so long. More wait for
// the next one.
const (
	groupMost = 256
	groupTime = 20 * time.Millisecond
)

// A committer makes changes durable, many at once.
type committer struct {
	s       *session
	now     func() time.Time
	logger  *slog.Logger
	queue   chan *request
	closing chan struct{} // closed to end it
	ended   chan struct{} // closed when it has
	once    sync.Once
	lost    error // why it may write nothing more
}

func newCommitter(s *session, o Options) *committer {
	return &committer{
		s: s, now: o.Now, logger: o.Logger,
		queue: make(chan *request), closing: make(chan struct{}), ended: make(chan struct{}),
	}
}

// stop ends the committer, once it has been started, and waits for it.
func (c *committer) stop() {
	c.once.Do(func() { close(c.closing) })
	<-c.ended
}

// A request is one change that waits for its turn, runs, and waits for its end.
type request struct {
	ctx  context.Context
	turn chan *transaction // to the caller: run
	gone chan struct{}     // closed by a caller who no longer waits for its turn
	ran  chan error        // from the caller: what came of it
	done chan error        // to the caller: whether it is kept
}

func newRequest(ctx context.Context) *request {
	return &request{
		ctx: ctx, turn: make(chan *transaction), gone: make(chan struct{}),
		ran: make(chan error, 1), done: make(chan error, 1),
	}
}

// update has fn run in the next group and returns when that is durable.
func (c *committer) update(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := newRequest(ctx)
	select {
	case c.queue <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return ErrClosed
	}
	select {
	case t := <-r.turn:
		r.run(t, fn)
	case err := <-r.done:
		return err
	case <-ctx.Done():
		close(r.gone)
		return ctx.Err()
	case <-c.ended:
		return r.outcome()
	}
	select {
	case err := <-r.done:
		return err
	case <-c.ended:
		return r.outcome()
	}
}

// outcome is what became of the request when the committer has ended.
func (r *request) outcome() error {
	select {
	case err := <-r.done:
		return err
	default:
		return ErrClosed
	}
}

var errUnfinished = errors.New("the change did not come to its end")

// run calls fn in the goroutine of its caller. If fn panics, or ends the
// goroutine, the change is undone first.
func (r *request) run(t *transaction, fn func(Tx) error) {
	failure := errUnfinished
	defer func() {
		t.end()
		r.ran <- failure
	}()
	if failure = fn(Tx{t}); failure == nil {
		failure = t.ready()
	}
}

// loop is the committer's goroutine. One that panicked writes nothing more: what
// the connection would hold then, nobody knows.
func (c *committer) loop() {
	defer close(c.ended)
	defer func() {
		if p := recover(); p != nil {
			c.logger.Error("the store's writer panicked and writes no more", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	for {
		select {
		case <-c.closing:
			return
		case r := <-c.queue:
			c.group(r)
		}
	}
}

// group runs first and those who wait by then, and commits them together.
func (c *committer) group(first *request) {
	if err := c.begin(); err != nil {
		first.done <- c.s.classify(err)
		return
	}
	start := time.Now()
	var kept []*request
	for r := first; r != nil; r = c.next(start, len(kept)) {
		keep, err := c.member(r)
		if keep {
			kept = append(kept, r)
		}
		if err != nil {
			c.lose(kept, err)
			return
		}
	}
	if err := c.commit(); err != nil {
		c.lose(kept, err)
		return
	}
	for _, r := range kept {
		r.done <- nil
	}
}

// next returns one more request for the group, nil if none waits. Those answered a
// moment ago often have their next change ready: looking away once before the sync
// lets 15 of 16 busy writers in, and 10 without.
func (c *committer) next(start time.Time, kept int) *request {
	if kept >= groupMost || time.Since(start) > groupTime {
		return nil
	}
	select {
	case r := <-c.queue:
		return r
	default:
		runtime.Gosched()
	}
	select {
	case r := <-c.queue:
		return r
	default:
		return nil
	}
}

// member runs r in a savepoint. It reports whether r is to be answered with the
// group. An error is one of the engine that the whole group is lost to.
func (c *committer) member(r *request) (keep bool, err error) {
	if _, err := c.s.exec(savepoint); err != nil {
		return true, err
	}
	t := &transaction{ctx: r.ctx, s: c.s, now: c.now(), write: true}
	select {
	case r.turn <- t:
	case <-r.gone:
		_, err := c.s.exec(release)
		return false, err
	}
	failure := <-r.ran
	if failure != nil {
		_, err = c.s.exec(undo)
	}
	if err == nil {
		_, err = c.s.exec(release)
	}
	if err != nil && failure != nil { // such as a full disk: it is why the savepoint is gone
		err = failure
	}
	if failure != nil && err == nil {
		r.done <- failure
		return false, nil
	}
	return true, err
}

// lose undoes a group. The engine may have done so already.
func (c *committer) lose(lost []*request, cause error) {
	if _, err := c.s.exec(rollback); err != nil {
		c.logger.Debug("a group was undone by the database itself", "err", err)
	}
	err := c.s.classify(cause)
	if !errors.Is(err, ErrUnknown) {
		err = fmt.Errorf("nothing was kept: %w", err)
	}
	for _, r := range lost {
		r.done <- err
	}
}
