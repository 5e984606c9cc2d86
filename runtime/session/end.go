package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/history"
)

// execute runs what is to be run, and ends the run with what came of it.
func (r *Run) execute() {
	ctx, stop := context.WithTimeoutCause(r.ctx, r.k.o.RunTime, errTooLong)
	outcome, err := r.call(ctx)
	cause := context.Cause(ctx)
	stop()
	r.end(outcome, err, cause)
	if err := contained(func() error { return r.k.trim(r.th) }); err != nil {
		r.k.o.Logger.Error("a thread that is too large was not trimmed", "thread", r.th.ref.ID, "err", err)
	}
}

func (r *Run) call(ctx context.Context) (o Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.k.o.Logger.Error("a run panicked", "thread", r.th.ref.ID, "run", r.in.RunID, "panic", p, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return r.do(ctx, r)
}

var errPanic = errors.New("the run panicked")

// endTime is how long the end of a run may take to be kept.
const endTime = 30 * time.Second

// settled is what the record says of a run that ended with err, whose context ended
// with cause if it did.
func (r *Run) settled(rec Record, o Outcome, err, cause error) Record {
	rec.Ended = r.k.o.Now()
	rec.Status = Failed
	switch {
	case err == nil && len(o.Interrupts) > 0:
		rec.Status = Asking
		return rec
	case err == nil:
		rec.Status = Finished
		return rec
	case errors.Is(cause, errCancelled):
		rec.Status = Cancelled
		return rec
	case errors.Is(cause, errShutdown):
		rec.Code, rec.Message = event.CodeShutdown, "the program ends; what this run had done is kept"
	case errors.Is(cause, errTooLong):
		rec.Code, rec.Message = event.CodeTimeout, fmt.Sprintf("the run took longer than %s", r.k.o.RunTime)
	case errors.Is(err, ErrLimit):
		rec.Code, rec.Message = event.CodeLimit, err.Error()
	default:
		told := event.ErrorOf(err)
		rec.Code, rec.Message = told.Code, told.Message
	}
	if !errors.Is(err, errPanic) {
		r.k.o.Logger.Warn("a run failed", "thread", r.th.ref.ID, "run", r.in.RunID, "code", rec.Code, "err", err)
	}
	return rec
}

// end closes what is open, keeps the rest and the end, and sends the last event: once,
// and once it is durable. If it cannot be kept, it says so instead.
func (r *Run) end(o Outcome, err, cause error) {
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	if err := r.th.lock(ctx); err != nil {
		r.lost(err)
		return
	}
	defer r.th.unlock()
	rec, last, waiting := r.closing(o, err, cause)
	if _, err := event.Encode(last); err != nil {
		rec, last, waiting = r.closing(Outcome{}, fmt.Errorf("the outcome of the run: %w", err), nil)
	}
	if err := r.commit(ctx, rec, last, waiting, r.k.o.Jobs(r.th.ref, rec)); err != nil {
		r.lost(err)
	}
}

// closing ends all that is open, and returns what the end of the run is.
func (r *Run) closing(o Outcome, err, cause error) (Record, event.Event, Waiting) {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	rec := r.settled(r.rec, o, err, cause)
	if !rec.Status.answerable() {
		r.broken = r.th.tail.OpenCalls()
	}
	r.th.tail.Unbound()
	for _, e := range r.th.tail.Closings(rec.Status != Failed) {
		if err := r.emit(e); err != nil {
			r.k.o.Logger.Error("what a run left open was not closed", "run", r.in.RunID, "err", err)
		}
	}
	var waiting Waiting
	if !rec.Status.answerable() {
		return rec, r.k.terminal(r.th.ref.ID, rec, nil), waiting
	}
	out := &event.Outcome{Type: event.Success}
	waiting = r.leaves(o)
	if rec.Status == Asking {
		out = &event.Outcome{Type: event.Interrupted, Interrupts: o.Interrupts}
	} else {
		out.PendingToolCallIDs = waiting.Client
	}
	last := event.RunFinished{ThreadID: r.th.ref.ID, RunID: rec.ID, Outcome: out, Usage: rec.Usage, Result: o.Result, Base: r.k.stamp()}
	return rec, last, waiting
}

// answerable reports whether calls of a run that ended so may be answered later.
func (s Status) answerable() bool { return s == Finished || s == Asking }

// leaves is what the run leaves to be answered: its calls without a result are the
// client's, but for those that a person is asked about.
func (r *Run) leaves(o Outcome) Waiting {
	unsaid := r.unsaid(r.th.tail.Whole())
	messages := slices.Concat(r.th.window.Messages(), unsaid, r.staged)
	own := slices.Clone(r.calls)
	for _, m := range unsaid {
		for _, call := range m.ToolCalls {
			own = append(own, call.ID)
		}
	}
	w := Waiting{Person: o.Interrupts}
	for _, call := range history.Unanswered(messages) {
		held := slices.ContainsFunc(o.Interrupts, func(i event.Interrupt) bool { return i.ToolCallID == call })
		if slices.Contains(own, call) && !held {
			w.Client = append(w.Client, call)
		}
	}
	if len(w.Client)+len(w.Person) > 0 {
		w.Run = r.rec.ID
	}
	return w
}

// lost ends a run whose end could not be kept: the thread owes it.
func (r *Run) lost(err error) {
	r.k.o.Logger.Error("the end of a run was not kept", "thread", r.th.ref.ID, "run", r.in.RunID, "err", err)
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	if r.rec.Status.Ended() { // there is one last event, and the thread is the next run's
		return
	}
	r.rec.Status, r.rec.Code, r.rec.Message = Failed, CodeStore, lostEnd
	r.rec.Ended = r.k.o.Now()
	end := r.k.runError(r.rec)
	r.k.owe(r.th.ref, debt{r.rec.ID, r.rec.First, end})
	r.th.speaker, r.th.loaded = nil, false
	r.k.free(r)
	r.th.publish(Item{RunID: r.rec.ID, Event: end})
	r.th.finish(r)
}

// endWaiting ends a run that never began.
func (r *Run) endWaiting(cause error) {
	defer r.drop()
	r.stopWaiting(r.settled(r.Record(), Outcome{}, cause, cause))
}

// fail ends a run that could not begin when its turn came.
func (r *Run) fail(err error) {
	if errors.Is(err, ErrDuplicateRun) && r.replay() {
		return
	}
	rec := r.settled(r.Record(), Outcome{}, err, context.Cause(r.ctx))
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrLimit) {
		rec.Code, rec.Message = CodeInvalid, err.Error()
	}
	rec.First, rec.Started = 0, time.Time{}
	r.stopWaiting(rec)
}

// replay makes the streams of the run those of the one before it that had its id and
// its input, and reports whether there was one.
func (r *Run) replay() bool {
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	found, err := r.k.store.ThreadRuns(ctx, r.th.ref, r.in.RunID, 1)
	if err != nil || len(found) == 0 || found[0].Digest != r.digest || !found[0].Status.Ended() {
		return false
	}
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	r.rec.Status, r.replayed = found[0].Status, true
	r.k.free(r)
	for s := range r.th.streams {
		if s.run == r.rec.ID {
			s.mu.Lock()
			s.old = &found[0]
			s.mu.Unlock()
			s.signal()
			delete(r.th.streams, s)
		}
	}
	return true
}

func (r *Run) stopWaiting(rec Record) {
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	if err := contained(func() error { return r.keepEnd(ctx, rec) }); err != nil {
		r.k.owe(r.th.ref, debt{run: rec.ID})
		r.k.o.Logger.Error("the end of a run that waited was not kept", "thread", r.th.ref.ID, "run", r.in.RunID, "err", err)
	}
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	r.rec = rec
	r.k.free(r)
	for _, e := range r.k.unbegun(r.th.ref.ID, rec) {
		r.th.publish(Item{RunID: rec.ID, Event: e})
	}
	r.th.finish(r)
}

func (r *Run) keepEnd(ctx context.Context, rec Record) error {
	if err := r.th.lock(ctx); err != nil {
		return err
	}
	defer r.th.unlock()
	r.th.mu.Lock()
	recorded := r.recorded
	r.rec = rec // so that it is not recorded from now on
	r.th.mu.Unlock()
	if !recorded {
		return nil
	}
	if err := r.th.load(ctx); err != nil {
		return err
	}
	return r.th.commit(ctx, r.change(Change{Runs: []Record{rec}}), func() {}, r.k.o.Jobs(r.th.ref, rec)...)
}
