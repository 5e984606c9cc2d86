package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
)

// Options say how threads are kept. The zero value works.
type Options struct {
	// PerAgent is how many runs of one agent there are at once, and PerProcess how many
	// of all. Default 4 and 16.
	PerAgent, PerProcess int
	// QueuePerThread is how many runs may wait in one thread, and Queue in all. Default
	// 16 and 256.
	QueuePerThread, Queue int
	// RunTime is the longest a run may take once it has begun. Default 15 minutes.
	RunTime time.Duration
	// Window bounds what a model is shown. Default 200 messages and 512 KiB.
	Window Bounds
	// Thread bounds what is kept of one thread: messages, and bytes of them. Default
	// 20,000 and 64 MiB.
	Thread Bounds
	// EventBytes bounds what is kept of one thread's events. Default 64 MiB.
	EventBytes int64
	// MessageBytes is the longest that one message may be, as JSON. Default 4 MiB.
	MessageBytes int
	// StateBytes is the longest that the state of a thread may be. Default 256 KiB.
	StateBytes int
	// TailBytes bounds the events of a run between two commits. Default 16 MiB.
	TailBytes int
	// Threads is how many threads one principal may have. Default 10,000.
	Threads int
	// KeepThreads is how long a thread is kept that nobody uses, and what is known of a run
	// that has ended; KeepEvents is how long a run's events are. Default 90 and 30 days.
	KeepThreads, KeepEvents time.Duration
	// SweepEvery is how often what is older is removed. Default 10 minutes.
	SweepEvery time.Duration
	// Buffer is how many events a stream may lag behind, and BufferBytes how many bytes
	// of them. Default 1,024 and 8 MiB.
	Buffer, BufferBytes int
	// LagBytes is how many bytes all streams may lag behind together; beyond that, those
	// are cut off that lag behind by more than a little. Default 64 MiB.
	LagBytes int64
	// Cache bounds what is held in memory of threads in which nothing happens: how many,
	// and the bytes of their windows. Default 256 and 32 MiB.
	Cache Bounds
	// Jobs says what the end of a run causes; it is kept with the end. It must be quick.
	// nil is nothing.
	Jobs func(Ref, Record) []event.Job
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger takes what no caller can be told; nil drops it.
	Logger *slog.Logger
}

// Bounds are those of a number of things: how many, and the bytes of all.
type Bounds struct {
	Messages int
	Bytes    int64
}

// or sets what is not set.
func or[N int | int64 | time.Duration](n *N, otherwise N) {
	if *n <= 0 {
		*n = otherwise
	}
}

func (o Options) withDefaults() Options {
	const day = 24 * time.Hour
	or(&o.PerAgent, 4)
	or(&o.PerProcess, 16)
	or(&o.QueuePerThread, 16)
	or(&o.Queue, 256)
	or(&o.RunTime, 15*time.Minute)
	or(&o.Window.Messages, 200)
	or(&o.Window.Bytes, 512<<10)
	or(&o.Thread.Messages, 20_000)
	or(&o.Thread.Bytes, 64<<20)
	or(&o.EventBytes, 64<<20)
	or(&o.MessageBytes, 4<<20)
	or(&o.StateBytes, 256<<10)
	or(&o.TailBytes, 16<<20)
	or(&o.Threads, 10_000)
	or(&o.KeepThreads, 90*day)
	or(&o.KeepEvents, 30*day)
	or(&o.SweepEvery, 10*time.Minute)
	or(&o.Buffer, 1024)
	or(&o.BufferBytes, 8<<20)
	or(&o.LagBytes, 64<<20)
	or(&o.Cache.Messages, 256)
	or(&o.Cache.Bytes, 32<<20)
	if o.Jobs == nil {
		o.Jobs = func(Ref, Record) []event.Job { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Keeper keeps threads and runs their turns. Its methods may be called from any
// goroutine.
type Keeper struct {
	store Store
	// stateless: nothing is kept, and what clients say of the past is all there is.
	stateless bool
	o         Options
	ctx       context.Context // of all runs
	stop      context.CancelCauseFunc
	all       sync.WaitGroup
	ended     chan struct{} // closed when all have
	lag       atomic.Int64  // bytes that streams hold for their readers
	closing   sync.Once
	schedule
	cache
}

// Open returns a keeper of the threads in a store, after it has failed the runs that
// the process before left behind. A nil store is none: then the history of a thread is
// what the input says, and nothing is left after a run (history mode stateless).
func Open(ctx context.Context, store Store, o Options) (*Keeper, error) {
	k := &Keeper{store: store, o: o.withDefaults(), ended: make(chan struct{})}
	if store == nil {
		k.store, k.stateless = nowhere{}, true
	}
	k.ctx, k.stop = context.WithCancelCause(context.Background())
	k.schedule.init()
	k.cache.init()
	if err := k.recover(ctx); err != nil {
		return nil, fmt.Errorf("end the runs of the process before: %w", err)
	}
	if !k.stateless {
		k.all.Go(k.sweep)
	}
	return k, nil
}

// Close ends all runs, those that wait too, with the code shutdown, and returns when
// they have ended.
func (k *Keeper) Close() error {
	k.closing.Do(func() {
		waiting := k.shut()
		k.stop(errShutdown)
		for _, r := range waiting {
			r.endWaiting(errShutdown)
		}
		k.all.Wait()
		close(k.ended)
	})
	return nil
}

func (k *Keeper) closed() <-chan struct{} { return k.ended }

// Why the context of a run ends.
var (
	errShutdown  = errors.New("the program ends")
	errCancelled = errors.New("the run was cancelled")
	errTooLong   = errors.New("the run took too long")
)

// recoverMost is how many runs are looked at at once.
const recoverMost = 100

// recover fails what had begun or waited when the process before ended. What it was
// about to do is not known, so nothing of it is done again.
func (k *Keeper) recover(ctx context.Context) error {
	for {
		left, err := k.store.UnfinishedRuns(ctx, recoverMost)
		if err != nil || len(left) == 0 {
			return err
		}
		heads := map[Ref]int64{}
		for _, u := range left {
			if head, ok := heads[u.Ref]; ok {
				u.Head = head
			}
			c, err := k.failing(u, CodeInterrupted, "the program ended while this run was under way; what it had done is kept")
			if err != nil {
				return err
			}
			done, err := k.store.CommitThread(ctx, c, k.o.Jobs(u.Ref, c.Runs[0])...)
			if err != nil {
				return fmt.Errorf("run %s: %w", quoted(u.Record.ID), err)
			}
			heads[u.Ref] = done.Thread.Head
		}
	}
}

// failing is the change that fails a run which nobody runs.
func (k *Keeper) failing(u Unfinished, code, message string) (Change, error) {
	c := Change{Ref: u.Ref, Head: u.Head, At: k.o.Now()}
	rec := u.Record
	rec.Status, rec.Code, rec.Message, rec.Ended = Failed, code, message, c.At
	if rec.First > 0 {
		last, err := event.Encode(k.runError(rec))
		if err != nil {
			return c, err
		}
		rec.Last = u.Head + 1
		c.Events = []Kept{{Run: rec.ID, Body: last}}
	}
	c.Runs = []Record{rec}
	return c, nil
}

func (k *Keeper) runError(rec Record) event.RunError {
	return event.RunError{Message: rec.Message, Code: rec.Code, Usage: rec.Usage, Base: k.stamp()}
}

func (k *Keeper) stamp() event.Base { return event.Base{Timestamp: k.o.Now().UnixMilli()} }

// A Principal is who asks.
type Principal struct {
	Name string
	// ReadAll is the scope threads:read: all threads may be read, and the own ones used.
	ReadAll bool
}

// mayRead says whether p knows of a thread.
func (p Principal) mayRead(ref Ref) error {
	if ref.Owner != p.Name && !p.ReadAll {
		return fmt.Errorf("thread %s: %w", quoted(ref.ID), ErrNotFound)
	}
	return nil
}

// mayChange says whether p may do something to a thread.
func (p Principal) mayChange(ref Ref) error {
	if err := p.mayRead(ref); err != nil || ref.Owner == p.Name {
		return err
	}
	return fmt.Errorf("thread %s: %w", quoted(ref.ID), ErrReadOnly)
}

// Find returns the thread of that id: the principal's own or, if it may read all, the
// one that was used last.
func (k *Keeper) Find(ctx context.Context, p Principal, id string) (Thread, error) {
	t, err := k.store.Thread(ctx, Ref{p.Name, id})
	if !errors.Is(err, ErrNotFound) || !p.ReadAll {
		return t, err
	}
	all, err := k.store.Threads(ctx, ThreadQuery{ID: id, Limit: 1})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("thread %s: %w", quoted(id), ErrNotFound)
	}
	if err != nil {
		return Thread{}, err
	}
	return k.store.Thread(ctx, all[0].Ref)
}

// Thread returns a thread.
func (k *Keeper) Thread(ctx context.Context, p Principal, ref Ref) (Thread, error) {
	if err := p.mayRead(ref); err != nil {
		return Thread{}, err
	}
	return k.store.Thread(ctx, ref)
}

// pageMost is how many of anything one question is answered with.
const pageMost = 1000

// Threads returns threads that the principal may read, without their states, those used
// last first: its own, or with all those of everybody; behind the thread before, unless
// that is the zero one.
func (k *Keeper) Threads(ctx context.Context, p Principal, all bool, before Thread, limit int) ([]Thread, error) {
	q := ThreadQuery{Owner: p.Name, Before: before, Limit: max(0, min(limit, pageMost))}
	if all && p.ReadAll {
		q.Owner = ""
	} else if all {
		return nil, fmt.Errorf("the threads of others: %w", ErrReadOnly)
	}
	return k.store.Threads(ctx, q)
}

// Messages returns messages of a thread in their order: the last ones before the one
// with the id before, or the very last if that is "".
func (k *Keeper) Messages(ctx context.Context, p Principal, ref Ref, before string, limit int) ([]Stored, error) {
	if _, err := k.Thread(ctx, p, ref); err != nil {
		return nil, err
	}
	q := MessageQuery{Last: true, Limit: max(0, min(limit, pageMost))}
	if before != "" {
		found, err := k.store.ThreadKnows(ctx, ref, []string{before})
		if err != nil {
			return nil, err
		}
		if q.Before = found[before]; q.Before == 0 {
			return nil, fmt.Errorf("message %s: %w", quoted(before), ErrNotFound)
		}
	}
	return k.store.ThreadMessages(ctx, ref, q)
}

// Runs returns runs of a thread, those submitted last first.
func (k *Keeper) Runs(ctx context.Context, p Principal, ref Ref, limit int) ([]Record, error) {
	if _, err := k.Thread(ctx, p, ref); err != nil {
		return nil, err
	}
	return k.store.ThreadRuns(ctx, ref, "", max(0, min(limit, pageMost)))
}

// Delete removes a thread in which no run waits or runs.
func (k *Keeper) Delete(ctx context.Context, p Principal, ref Ref) error {
	if err := p.mayChange(ref); err != nil {
		return err
	}
	th := k.hold(ref)
	defer k.release(th)
	if err := th.lock(ctx); err != nil {
		return err
	}
	defer th.unlock()
	if k.occupied(th) {
		return fmt.Errorf("thread %s: %w: a run waits or runs in it: cancel it first", quoted(ref.ID), ErrBusy)
	}
	if err := k.store.DeleteThread(ctx, ref); err != nil {
		return err
	}
	k.gone([]Ref{ref})
	return nil
}

// encoded makes what is kept of events.
func encoded(run string, events []event.Event) ([]Kept, error) {
	all := make([]Kept, 0, len(events))
	for _, e := range events {
		body, err := event.Encode(e)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		all = append(all, Kept{Run: run, Body: body})
	}
	return all, nil
}
