package session

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hutch-run/hutch/protocol/event"
)

// schedule says which run is next. A run that was submitted is in waiting until it is
// active, and in byID until it has ended.
type schedule struct {
	smu      sync.Mutex
	shutting bool
	waiting  []*Run // in the order of their submission
	active   map[*live]*Run
	byID     map[runKey]*Run
	perAgent map[string]int
	quiet    chan struct{} // closed when no run is left; nil if nobody waits for that
}

type runKey struct {
	Ref
	id string
}

func (s *schedule) init() {
	s.active, s.byID, s.perAgent = map[*live]*Run{}, map[runKey]*Run{}, map[string]int{}
}

// admit takes a run in and reports whether it is active at once: then its caller
// begins it. If a run of its id has not ended, it returns that one.
func (k *Keeper) admit(r *Run) (active bool, same *Run, err error) {
	k.smu.Lock()
	defer k.smu.Unlock()
	if k.shutting {
		return false, nil, ErrClosed
	}
	if same := k.byID[r.key()]; same != nil {
		return false, same, nil
	}
	k.waiting = append(k.waiting, r)
	k.byID[r.key()] = r
	if active = k.dispatch(r); active {
		return true, nil, nil
	}
	inThread := 0
	for _, w := range k.waiting {
		if w.th == r.th {
			inThread++
		}
	}
	switch {
	case inThread > k.o.QueuePerThread:
		err = fmt.Errorf("%w: %d runs wait in the thread, at most %d: wait for one to end", ErrBusy, inThread-1, k.o.QueuePerThread)
	case len(k.waiting) > k.o.Queue:
		err = fmt.Errorf("%w: %d runs wait, at most %d: try again later", ErrBusy, len(k.waiting)-1, k.o.Queue)
	}
	if err != nil {
		k.withdraw(r)
		k.forget(r)
	}
	return false, nil, err
}

// withdraw takes a run that waits out, and reports whether it did wait. It is found by its
// id until it has ended: who asks for it meanwhile is told how. The caller has the lock.
func (k *Keeper) withdraw(r *Run) bool {
	i := slices.Index(k.waiting, r)
	if i < 0 {
		return false
	}
	k.waiting = slices.Delete(k.waiting, i, i+1)
	return true
}

// dispatch makes runs active as far as the limits let them, and begins all but mine,
// for which it reports that. The caller has the lock.
func (k *Keeper) dispatch(mine *Run) (active bool) {
	if k.shutting {
		return false
	}
	behind := map[*live]bool{} // threads of which an earlier run waits
	k.waiting = slices.DeleteFunc(k.waiting, func(r *Run) bool {
		free := k.active[r.th] == nil && !behind[r.th] && len(k.active) < k.o.PerProcess && k.perAgent[r.in.Agent] < k.o.PerAgent
		if !free {
			behind[r.th] = true
			return false
		}
		k.active[r.th] = r
		k.perAgent[r.in.Agent]++
		k.all.Add(1)
		if r == mine {
			active = true
		} else {
			go r.alone(r.waited)
		}
		return true
	})
	return active
}

// free forgets a run that has ended, and lets the next one take its place if it was
// active. It comes just before the last event is sent: who has read that finds the thread
// free.
func (k *Keeper) free(r *Run) {
	k.smu.Lock()
	defer k.smu.Unlock()
	k.forget(r)
	if k.active[r.th] != r {
		return
	}
	delete(k.active, r.th)
	if k.perAgent[r.in.Agent]--; k.perAgent[r.in.Agent] == 0 {
		delete(k.perAgent, r.in.Agent)
	}
	k.dispatch(nil)
}

// forget lets a run be found no more by its id. The caller has the lock.
func (k *Keeper) forget(r *Run) {
	if k.byID[r.key()] == r {
		delete(k.byID, r.key())
	}
	if len(k.byID) == 0 && k.quiet != nil {
		close(k.quiet)
		k.quiet = nil
	}
}

// Quiet returns when no run waits or runs, or with the error of ctx. It does not keep new
// ones away.
func (k *Keeper) Quiet(ctx context.Context) error {
	k.smu.Lock()
	if len(k.byID) == 0 {
		k.smu.Unlock()
		return nil
	}
	if k.quiet == nil {
		k.quiet = make(chan struct{})
	}
	quiet := k.quiet
	k.smu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shut takes no more runs, and returns those that wait.
func (k *Keeper) shut() []*Run {
	k.smu.Lock()
	defer k.smu.Unlock()
	k.shutting = true
	waiting := k.waiting
	k.waiting = nil
	return waiting
}

// occupied reports whether a run waits or runs in the thread.
func (k *Keeper) occupied(th *live) bool {
	k.smu.Lock()
	defer k.smu.Unlock()
	return k.active[th] != nil || slices.ContainsFunc(k.waiting, func(r *Run) bool { return r.th == th })
}

// Active returns the run that is in progress in a thread; false if there is none.
func (k *Keeper) Active(p Principal, ref Ref) (Record, bool) {
	r := k.activeIn(ref)
	if r == nil || p.mayRead(ref) != nil {
		return Record{}, false
	}
	return r.Record(), true
}

func (k *Keeper) activeIn(ref Ref) *Run {
	k.smu.Lock()
	defer k.smu.Unlock()
	for th, r := range k.active { // a few, at most
		if th.ref == ref {
			return r
		}
	}
	return nil
}

// Cancel ends a run, whether it waits or runs; without an id, the one that runs. It
// returns [event.ErrNotRunning] if it has ended, or if none runs.
func (k *Keeper) Cancel(ctx context.Context, p Principal, ref Ref, runID string) error {
	if err := p.mayChange(ref); err != nil {
		return err
	}
	if runID == "" {
		if _, err := k.store.Thread(ctx, ref); err != nil && !k.stateless {
			return err
		}
		r := k.activeIn(ref)
		if r == nil {
			return event.ErrNotRunning
		}
		r.cancel(errCancelled)
		return nil
	}
	k.smu.Lock()
	r := k.byID[runKey{ref, runID}]
	waited := r != nil && k.withdraw(r)
	k.smu.Unlock()
	switch {
	case waited:
		r.endWaiting(errCancelled)
	case r != nil:
		r.cancel(errCancelled)
	default:
		found, err := k.store.ThreadRuns(ctx, ref, runID, 1)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return fmt.Errorf("run %s: %w", quoted(runID), ErrNotFound)
		}
		return event.ErrNotRunning
	}
	return nil
}
