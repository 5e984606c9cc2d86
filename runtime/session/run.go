package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// A Run is what a [Runner] speaks through while it runs. Its methods may be called from
// any goroutine, until the runner returns.
type Run struct {
	k      *Keeper
	th     *live // of which it is one use
	in     Input
	digest string
	do     Runner
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Set when it begins.
	waiting Waiting
	ignored []Ignored

	// By the thread's lock.
	rec      Record
	recorded bool // the store knows of it
	staged   []chat.Message
	after    []event.Event // to be sent when they are durable
	state    json.RawMessage
	calls    []string // that it made
	broken   []string // calls whose arguments are not whole
}

// newRun is a run that is not submitted yet. It ends with drop or with leave.
func newRun(k *Keeper, ref Ref, in Input, digest string, do Runner) *Run {
	r := &Run{k: k, th: k.hold(ref), in: in, digest: digest, do: do}
	r.ctx, r.cancel = context.WithCancelCause(k.ctx)
	r.rec = Record{
		ID: in.RunID, Parent: in.Parent, Trigger: in.Trigger, Agent: in.Agent,
		Status: Queued, Digest: digest, Created: k.o.Now(),
	}
	return r
}

func (r *Run) key() runKey { return runKey{r.th.ref, r.in.RunID} }

// expects reports whether a run of that key waits or runs. The caller has the lock of
// its thread.
func (k *Keeper) expects(key runKey) bool {
	k.smu.Lock()
	defer k.smu.Unlock()
	r := k.byID[key]
	return r != nil && !r.rec.Status.Ended()
}

// record keeps that the run waits, unless its turn has come already.
func (r *Run) record(ctx context.Context) error {
	err := r.recordWaiting(ctx)
	if err == nil {
		return nil
	}
	r.k.smu.Lock()
	waited := r.k.withdraw(r)
	r.k.smu.Unlock()
	if !waited {
		return nil // it has begun: then that was kept, or its end says why not
	}
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
	return r.th.commit(ctx, r.change(Change{New: []Record{r.Record()}}), func() { r.recorded = true })
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
	if err := r.begin(ctx); err != nil {
		r.leave()
		return err
	}
	go r.execute()
	return nil
}

// waited is the goroutine of a run whose turn has come.
func (r *Run) waited() {
	if err := r.begin(r.ctx); err != nil {
		r.fail(err)
		r.leave()
		return
	}
	r.execute()
}

// leave gives back all that an active run had.
func (r *Run) leave() {
	r.k.left(r)
	r.drop()
}

// drop gives back what a run has that is not active.
func (r *Run) drop() {
	r.cancel(nil)
	r.k.release(r.th)
}

// begin keeps the run and its input. Until it returns nothing is known of either.
func (r *Run) begin(ctx context.Context) error {
	if err := r.th.lock(ctx); err != nil {
		return err
	}
	defer r.th.unlock()
	if r.k.stateless {
		r.th.forget(nil)
	}
	if err := r.th.load(ctx); err != nil {
		return err
	}
	owed, err := r.th.owing(ctx)
	if err != nil {
		return err
	}
	m, err := r.merge(ctx)
	if err != nil {
		return err
	}
	c := r.change(Change{Title: r.title(m.add), State: r.in.State, Waiting: &Waiting{}, DropFrom: m.dropFrom, Messages: m.add, Runs: owed.Runs, Events: owed.Events})
	first, err := encoded(r.in.RunID, []event.Event{r.startedNow(c)})
	if err != nil {
		return err
	}
	c.Events = append(c.Events, first...)
	rec := r.rec
	if r.recorded {
		c.Runs = append(c.Runs, rec)
	} else {
		c.New = append(c.New, rec)
	}
	waiting := r.th.left()
	if err := r.th.commit(ctx, c, r.begun); err != nil {
		return err
	}
	r.waiting, r.ignored = waiting, m.ignored
	for _, i := range m.ignored {
		r.k.o.Logger.Info("a message of an input was left out", "thread", r.th.ref.ID, "run", r.in.RunID, "message", i.ID, "why", i.Why)
	}
	return nil
}

// startedNow sets what the record says of a run that begins with c, and returns its
// first event.
func (r *Run) startedNow(c Change) event.RunStarted {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	r.rec.Status, r.rec.Started = Running, c.At
	r.rec.First = c.Head + int64(len(c.Events)) + 1
	e := started(r.th.ref.ID, r.rec)
	e.Base = r.k.stamp()
	return e
}

// begun lets the run speak in its thread. The caller has the lock.
func (r *Run) begun() {
	r.recorded = true
	r.th.owed = nil
	r.th.speaker, r.th.tail = r, tail{most: r.k.o.TailBytes}
	e := started(r.th.ref.ID, r.rec)
	e.Base = event.Base{Timestamp: r.rec.Started.UnixMilli()}
	r.th.publish(Item{r.rec.First, r.rec.ID, e})
}

// left is what the run before left to be answered.
func (th *live) left() Waiting {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.thread.Waiting
}

// owing ends the runs whose end could not be kept when it came.
func (th *live) owing(ctx context.Context) (c Change, err error) {
	th.mu.Lock()
	owed := slices.Clone(th.owed)
	head := th.thread.Head
	th.mu.Unlock()
	for _, id := range owed {
		found, err := th.k.store.ThreadRuns(ctx, th.ref, id, 1)
		if err != nil {
			return c, err
		}
		if len(found) == 0 || found[0].Status.Ended() {
			continue
		}
		one, err := th.k.failing(Unfinished{th.ref, head, found[0]}, CodeStore, lostEnd)
		if err != nil {
			return c, err
		}
		head += int64(len(one.Events))
		c.Runs, c.Events = append(c.Runs, one.Runs...), append(c.Events, one.Events...)
	}
	return c, nil
}

func (r *Run) title(added []chat.Message) string {
	if r.in.Title != "" {
		return r.in.Title
	}
	return titleOf(added)
}

// mergePage is how many messages are read at once to be compared.
const mergePage = 1000

// merge brings the input and the thread together.
func (r *Run) merge(ctx context.Context) (merge, error) {
	rec := newReconciler(r.th.left().Client, r.in.Trusted || r.k.stateless)
	if r.in.Mode == Replace && !r.k.stateless {
		var stored []Stored
		for {
			var after int64
			if len(stored) > 0 {
				after = stored[len(stored)-1].Number
			}
			page, err := r.k.store.ThreadMessages(ctx, r.th.ref, MessageQuery{After: after, Limit: mergePage})
			if err != nil {
				return merge{}, err
			}
			if stored = append(stored, page...); len(page) < mergePage {
				return rec.replace(stored, r.in.Messages)
			}
		}
	}
	ids := make([]string, 0, len(r.in.Messages))
	for _, m := range r.in.Messages {
		ids = append(ids, m.ID)
	}
	known := map[string]bool{}
	for page := range slices.Chunk(ids, mergePage) {
		found, err := r.k.store.ThreadKnows(ctx, r.th.ref, page)
		if err != nil {
			return merge{}, err
		}
		for _, id := range found {
			known[id] = true
		}
	}
	return rec.appendTo(known, r.in.Messages), nil
}

// Thread is the thread as it is now.
func (r *Run) Thread() Thread {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	return r.th.thread
}

// Record is what is known of the run.
func (r *Run) Record() Record {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	return r.rec
}

// Waiting is what the run before left to be answered. Nobody else will answer it: what
// a person allowed then has to be done now.
func (r *Run) Waiting() Waiting { return r.waiting }

// Ignored are the messages of the input that were left out.
func (r *Run) Ignored() []Ignored { return r.ignored }

// Messages are what a model is shown: the end of the thread, and what was added since.
// Calls that nothing has answered have been closed; that becomes part of the thread.
func (r *Run) Messages() []chat.Message {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	whole, made := repair(r.th.window.with(r.staged))
	r.staged = append(r.staged, made...)
	return whole
}

// Emit sends an event to those who listen, at once. It refuses what cannot follow those
// before it, and what the keeper says itself: see [ErrOrder]. A message or a call that
// is streamed has to be added under the same id.
func (r *Run) Emit(e event.Event) error {
	if err := event.Validate(e); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	return r.emit(e)
}

func (r *Run) emit(e event.Event) error {
	if r.rec.Status != Running {
		return fmt.Errorf("%w: the run has ended", ErrOrder)
	}
	if err := r.th.tail.put(e); err != nil {
		return err
	}
	r.th.publish(Item{RunID: r.rec.ID, Event: e})
	return nil
}

// Add adds a message to the thread. What of it was not streamed is sent now, but the
// result of a tool when it is durable: see [Run.Commit]. The result of a tool gets its
// id, which follows from the call.
func (r *Run) Add(m chat.Message) error {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	if m.Role == chat.Tool && m.ID == "" {
		m.ID = r.resultID(m.ToolCallID)
	}
	if err := checkMessage(m, r.k.o.MessageBytes); err != nil {
		return err
	}
	if _, open := r.th.tail.find(openText, m.ID); open != nil {
		return fmt.Errorf("%w: the message %s is still streamed", ErrOrder, quoted(m.ID))
	}
	if slices.ContainsFunc(r.staged, func(s chat.Message) bool { return s.ID == m.ID }) {
		return fmt.Errorf("%w: there is a message %s", ErrInvalid, quoted(m.ID))
	}
	if m.Role == chat.Tool {
		r.after = append(r.after, derived(m)...)
	} else if err := r.sendRest(m); err != nil {
		return err
	}
	for _, call := range m.ToolCalls {
		r.calls = append(r.calls, call.ID)
	}
	r.staged = append(r.staged, m)
	return nil
}

// resultID is the id of the result of the last call of that id.
func (r *Run) resultID(call string) string {
	for _, messages := range [][]chat.Message{r.staged, r.th.window.messages} {
		for _, m := range slices.Backward(messages) {
			if slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.ID == call }) {
				return ResultID(m.ID, call)
			}
		}
	}
	return ""
}

// sendRest emits what of a message was not streamed.
func (r *Run) sendRest(m chat.Message) error {
	were := sent(r.th.tail.whole)
	var skip bool
	for _, e := range derived(m) {
		switch e := e.(type) {
		case event.TextMessageStart:
			skip = were["text "+e.MessageID]
		case event.ToolCallStart:
			skip = were["call "+e.ToolCallID]
		}
		if skip {
			continue
		}
		if err := r.emit(e); err != nil {
			return err
		}
	}
	return nil
}

// SetState replaces the state of the thread with the next commit. Who listens is told
// by events, which are the runner's to send.
func (r *Run) SetState(state json.RawMessage) error {
	if err := r.k.checkState(state); err != nil {
		return err
	}
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	r.state = state
	return nil
}

// Use counts what a turn of a model cost.
func (r *Run) Use(u chat.Usage) {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	r.rec.Usage = addUsage(slices.Clone(r.rec.Usage), u)
}

// Commit makes what was added and emitted durable, with the jobs that it causes, and
// sends the results of tools.
func (r *Run) Commit(ctx context.Context, jobs ...event.Job) error {
	if err := r.th.lock(ctx); err != nil {
		return err
	}
	defer r.th.unlock()
	return r.commit(ctx, Record{}, nil, Waiting{}, jobs)
}

// commit keeps what there is; and with it, if there is a last event, the end of the run.
// The caller has the turn.
func (r *Run) commit(ctx context.Context, end Record, last event.Event, waiting Waiting, jobs []event.Job) error {
	if err := r.th.load(ctx); err != nil { // after a commit that failed
		return err
	}
	r.th.mu.Lock()
	whole := r.th.tail.whole
	messages := r.unsaid(whole)
	c := Change{State: r.state, Messages: append(messages, r.staged...)}
	events := append(slices.Clone(whole), r.after...)
	staged, after := len(r.staged), len(r.after)
	r.th.mu.Unlock()
	if last != nil {
		events = append(events, last)
	}
	var err error
	if c.Events, err = encoded(r.in.RunID, events); err != nil {
		return err
	}
	c = r.change(c)
	if last != nil {
		end.Last = c.Head + int64(len(events))
		c.Runs, c.Waiting = []Record{end}, &waiting
	}
	if !c.Advances() && len(jobs) == 0 {
		return nil
	}
	return r.th.commit(ctx, c, func() {
		r.th.tail.took(len(whole))
		r.staged, r.after = slices.Clone(r.staged[staged:]), slices.Clone(r.after[after:])
		r.state = nil
		r.sendKept(events[len(whole):], c.Head+int64(len(whole)))
		if last != nil {
			r.rec, r.th.speaker = end, nil
			r.th.finish(r)
		}
	}, jobs...)
}

// unsaid are messages that were streamed and that nobody added.
func (r *Run) unsaid(events []event.Event) []chat.Message {
	return slices.DeleteFunc(streamed(events, r.broken), func(m chat.Message) bool {
		same := func(s chat.Message) bool { return s.ID == m.ID }
		return slices.ContainsFunc(r.staged, same) || slices.ContainsFunc(r.th.window.messages, same)
	})
}

// sendKept sends events that are durable, behind the number before, or only the number
// if all were sent before.
func (r *Run) sendKept(events []event.Event, before int64) {
	for i, e := range events {
		r.th.publish(Item{before + int64(i) + 1, r.rec.ID, e})
	}
	if len(events) == 0 {
		r.th.publish(Item{Number: r.th.thread.Head, RunID: r.rec.ID})
	}
}

// execute runs what is to be run, and ends the run with what came of it.
func (r *Run) execute() {
	defer r.leave()
	ctx, stop := context.WithTimeoutCause(r.ctx, r.k.o.RunTime, errTooLong)
	outcome, err := r.call(ctx)
	cause := context.Cause(ctx)
	stop()
	r.end(outcome, err, cause)
	if err := r.k.trim(r.th); err != nil {
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
		r.broken = r.th.tail.openCalls()
	}
	r.th.tail.most = math.MaxInt // what ends has to fit
	for _, e := range r.th.tail.closings(rec.Status != Failed) {
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
	unsaid := r.unsaid(r.th.tail.whole)
	messages := slices.Concat(r.th.window.messages, unsaid, r.staged)
	own := slices.Clone(r.calls)
	for _, m := range unsaid {
		for _, call := range m.ToolCalls {
			own = append(own, call.ID)
		}
	}
	w := Waiting{Person: o.Interrupts}
	for _, call := range unanswered(messages) {
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
	r.rec.Status, r.rec.Code, r.rec.Message = Failed, CodeStore, lostEnd
	r.rec.Ended = r.k.o.Now()
	r.th.owed = append(r.th.owed, r.rec.ID)
	r.th.speaker, r.th.loaded = nil, false
	r.th.publish(Item{RunID: r.rec.ID, Event: r.k.runError(r.rec)})
	r.th.finish(r)
}

// endWaiting ends a run that never began.
func (r *Run) endWaiting(cause error) {
	defer r.drop()
	r.stopWaiting(r.settled(r.Record(), Outcome{}, cause, cause))
}

// fail ends a run that could not begin when its turn came.
func (r *Run) fail(err error) {
	rec := r.settled(r.Record(), Outcome{}, err, context.Cause(r.ctx))
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrLimit) {
		rec.Code, rec.Message = CodeInvalid, err.Error()
	}
	rec.First, rec.Started = 0, time.Time{}
	r.stopWaiting(rec)
}

func (r *Run) stopWaiting(rec Record) {
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	if err := r.keepEnd(ctx, rec); err != nil {
		r.k.o.Logger.Error("the end of a run that waited was not kept", "thread", r.th.ref.ID, "run", r.in.RunID, "err", err)
	}
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	r.rec = rec
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
