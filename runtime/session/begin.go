package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/history"
	"github.com/hutch-run/hutch/runtime/tail"
)

// record keeps that the run waits, unless its turn has come already.
func (r *Run) record(ctx context.Context) error {
	err := contained(func() error { return r.recordWaiting(ctx) })
	if err == nil {
		return nil
	}
	r.k.smu.Lock()
	waited := r.k.withdraw(r)
	r.k.smu.Unlock()
	if !waited {
		return nil // it has begun: then that was kept, or its end says why not
	}
	r.fail(err) // for those who have attached by now
	r.drop()
	return err
}

func (r *Run) recordWaiting(ctx context.Context) error {
	if err := r.th.lock(ctx); err != nil {
		return err
	}
	defer r.th.unlock()
	if r.status() != Queued {
		return nil
	}
	if err := r.th.load(ctx); err != nil {
		return err
	}
	err := r.th.commit(ctx, r.change(Change{New: []Record{r.Record()}}), func() { r.recorded = true })
	r.k.oweUnlessRefused(r.th.ref, r.in.RunID, err)
	return notKept(err)
}

func (r *Run) status() Status {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	return r.rec.Status
}

// change fills in what every change of the run has.
func (r *Run) change(c Change) Change {
	c.Ref, c.Head, c.At = r.th.ref, r.th.head(), r.k.o.Now()
	c.Agent, c.MostThreads = r.in.Agent, r.k.o.Threads
	return c
}

// beginNow begins a run for whoever submitted it, and goes on with it in a goroutine.
func (r *Run) beginNow(ctx context.Context) error {
	begun := false
	defer func() {
		if !begun {
			r.leave()
		}
	}()
	if err := contained(func() error { return r.begin(ctx) }); err != nil {
		r.fail(err) // for those who have attached by now
		return err
	}
	begun = true
	go r.alone(r.execute)
	return nil
}

// waited begins a run whose turn has come.
func (r *Run) waited() {
	if err := contained(func() error { return r.begin(r.ctx) }); err != nil {
		r.fail(err)
		return
	}
	r.execute()
}

// A panicError is a panic of a store, or of a function in [Options].
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// contained makes an error of a panic.
func contained(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return do()
}

// alone is the goroutine of a run. Whatever happens in it, the thread is free afterwards.
func (r *Run) alone(run func()) {
	defer r.leave()
	if err := contained(func() error { run(); return nil }); err != nil {
		r.lost(err)
	}
}

// leave gives back all that an active run had.
func (r *Run) leave() {
	r.k.free(r)
	r.drop()
	r.k.all.Done()
}

// drop gives back what a run has that is not active.
func (r *Run) drop() {
	r.cancel(nil)
	r.k.release(r.th)
}

// begin keeps the run and its input. Until it returns nothing is known of either. A
// thread that was removed since it was read is read again.
func (r *Run) begin(ctx context.Context) error {
	err := r.beginAs(ctx)
	if errors.Is(err, ErrConflict) {
		err = r.beginAs(ctx)
	}
	return notKept(err)
}

// notKept says of an error that has no name of its own that it is the store's.
func notKept(err error) error {
	for _, other := range []error{ErrInvalid, ErrLimit, ErrDuplicateRun, ErrNotFound} {
		if errors.Is(err, other) {
			return err
		}
	}
	if err == nil || event.ErrorOf(err).Code != event.CodeInternal {
		return err
	}
	return &event.Failure{Code: CodeStore, Message: "the run could not be kept, and did not begin: try again later", Cause: err}
}

// beginAs begins the run in the thread as it is known.
func (r *Run) beginAs(ctx context.Context) error {
	if err := r.th.lock(ctx); err != nil {
		return err
	}
	defer r.th.unlock()
	if r.k.stateless {
		r.th.mu.Lock()
		r.th.forget()
		r.th.mu.Unlock()
	}
	if err := r.th.load(ctx); err != nil {
		return err
	}
	if fits := r.in.Fits; fits != nil {
		if err := fits(r.th.now()); err != nil {
			return err
		}
	}
	owed, jobs, paid, err := r.paying(ctx)
	if err != nil {
		return err
	}
	m, dropFrom, err := r.merge(ctx)
	if err != nil {
		return err
	}
	c := r.change(Change{Title: r.title(m.Add), State: r.in.State, Waiting: &Waiting{}, DropFrom: dropFrom, Messages: m.Add, Runs: owed.Runs, Events: owed.Events})
	rec := r.Record()
	rec.Status, rec.Started, rec.First = Running, c.At, c.Head+int64(len(c.Events))+1
	first := started(r.th.ref.ID, rec)
	body, err := encoded(rec.ID, []event.Event{first})
	if err != nil {
		return err
	}
	c.Events = append(c.Events, body...)
	if r.recorded {
		c.Runs = append(c.Runs, rec)
	} else {
		c.New = append(c.New, rec)
	}
	r.waiting, r.ignored = r.th.left(), m.Ignored
	if err := r.th.commit(ctx, c, func() { r.begun(rec, first) }, append(jobs, r.in.Jobs...)...); err != nil {
		r.k.oweUnlessRefused(r.th.ref, r.in.RunID, err)
		return err
	}
	r.k.settle(r.th.ref, paid)
	for _, i := range m.Ignored {
		r.k.o.Logger.Info("a message of an input was left out", "thread", r.th.ref.ID, "run", r.in.RunID, "message", i.ID, "why", i.Why)
	}
	return nil
}

// begun lets the run speak in its thread. The caller has the lock.
func (r *Run) begun(rec Record, first event.Event) {
	r.rec, r.recorded = rec, true
	r.th.speaker, r.th.tail = r, tail.New(r.k.o.TailBytes)
	r.th.publish(Item{rec.First, rec.ID, first})
}

// left is what the run before left to be answered.
func (th *live) left() Waiting {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.thread.Waiting
}

func (r *Run) title(added []chat.Message) string {
	if r.in.Title != "" {
		return r.in.Title
	}
	return titleOf(added)
}

// mergePage is how many messages are read at once to be compared.
const mergePage = 1000

// merge brings the input and the thread together, and says from which message of the
// thread on all are dropped; 0 drops none.
func (r *Run) merge(ctx context.Context) (m history.Merge, dropFrom int64, err error) {
	client := history.Client{Trusted: r.in.Trusted || r.k.stateless, Open: r.th.left().Client}
	if r.in.Mode == Replace && !r.k.stateless {
		return r.replace(ctx, client)
	}
	known, err := r.known(ctx)
	if err != nil {
		return m, 0, err
	}
	return client.Append(known, r.in.Messages), 0, nil
}

// replace compares the input with the whole thread.
func (r *Run) replace(ctx context.Context, client history.Client) (m history.Merge, dropFrom int64, err error) {
	var numbers []int64
	var stored []chat.Message
	for {
		var after int64
		if len(numbers) > 0 {
			after = numbers[len(numbers)-1]
		}
		page, err := r.k.store.ThreadMessages(ctx, r.th.ref, MessageQuery{After: after, Limit: mergePage})
		if err != nil {
			return m, 0, err
		}
		for _, s := range page {
			numbers, stored = append(numbers, s.Number), append(stored, s.Message)
		}
		if len(page) < mergePage {
			break
		}
	}
	if m, err = client.Replace(stored, r.in.Messages); err == nil && m.Same < len(numbers) {
		dropFrom = numbers[m.Same]
	}
	return m, dropFrom, err
}

// known are the ids of the input that the thread knows.
func (r *Run) known(ctx context.Context) (map[string]int64, error) {
	known := r.th.lately(r.in.Messages)
	ids := make([]string, 0, len(r.in.Messages))
	for _, m := range r.in.Messages {
		if _, ok := known[m.ID]; !ok {
			ids = append(ids, m.ID)
		}
	}
	for page := range slices.Chunk(ids, mergePage) {
		found, err := r.k.store.ThreadKnows(ctx, r.th.ref, page)
		if err != nil {
			return nil, err
		}
		maps.Copy(known, found)
	}
	return known, nil
}

// lately are the ids of those messages that are in the window: of what a client sends
// again the most.
func (th *live) lately(input []chat.Message) map[string]int64 {
	sent := make(map[string]bool, len(input))
	for _, m := range input {
		sent[m.ID] = true
	}
	known := map[string]int64{}
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, m := range th.window.Messages() {
		if sent[m.ID] {
			known[m.ID] = 0
		}
	}
	return known
}
