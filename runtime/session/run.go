package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/history"
	"github.com/hutch-run/hutch/runtime/tail"
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

	// replayed: there was a run of its id by the time it was to begin, and its streams
	// are of that one.
	replayed bool

	// Set when it begins.
	waiting Waiting
	ignored []history.Ignored

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

// toBegin reports whether a run of that key has yet to begin. The caller has the lock of
// its thread.
func (k *Keeper) toBegin(key runKey) bool {
	k.smu.Lock()
	defer k.smu.Unlock()
	r := k.byID[key]
	return r != nil && r.rec.First == 0
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
func (r *Run) Ignored() []history.Ignored { return r.ignored }

// Messages are what a model is shown: the end of the thread, and what was added since.
// Calls that nothing has answered have been closed; that becomes part of the thread.
func (r *Run) Messages() []chat.Message {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	whole, made := history.Repair(r.th.window.With(r.staged))
	r.staged = append(r.staged, made...)
	return whole
}

// Emit sends an event to those who listen, at once. It refuses what cannot follow those
// before it, and what the keeper says itself: see [ErrOrder]. A message or a call that
// is streamed has to be added under the same id.
func (r *Run) Emit(e event.Event) error {
	r.th.mu.Lock()
	defer r.th.mu.Unlock()
	return r.emit(e)
}

// errEnded is what is told of a run that is over: what it would keep is another one's now.
var errEnded = fmt.Errorf("%w: the run has ended", ErrOrder)

func (r *Run) emit(e event.Event) error {
	if err := event.Validate(e); err != nil { // what is sent can be kept
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r.rec.Status != Running {
		return errEnded
	}
	if err := r.th.tail.Put(e); err != nil {
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
	if r.rec.Status != Running {
		return errEnded
	}
	if m.Role == chat.Tool {
		m = r.answering(m)
	}
	if err := checkMessage(m, r.k.o.MessageBytes); err != nil {
		return err
	}
	if r.th.tail.Texting(m.ID) {
		return fmt.Errorf("%w: the message %s is still streamed", ErrOrder, quoted(m.ID))
	}
	if slices.ContainsFunc(r.staged, func(s chat.Message) bool { return s.ID == m.ID }) {
		return fmt.Errorf("%w: there is a message %s", ErrInvalid, quoted(m.ID))
	}
	if m.Role == chat.Tool {
		e := tail.Result(m)
		if err := event.Validate(e); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		r.after = append(r.after, e)
	} else if err := r.sendRest(m); err != nil {
		return err
	}
	for _, call := range m.ToolCalls {
		r.calls = append(r.calls, call.ID)
	}
	r.staged = append(r.staged, m)
	return nil
}

// answering fills in what the result of a tool may lack.
func (r *Run) answering(m chat.Message) chat.Message {
	if m.ID == "" {
		m.ID = r.resultID(m.ToolCallID)
	}
	if m.Content.IsZero() {
		m.Content = chat.Text("")
	}
	return m
}

// resultID is the id of the result of the last call of that id.
func (r *Run) resultID(call string) string {
	for _, messages := range [][]chat.Message{r.staged, r.th.window.Messages()} {
		for _, m := range slices.Backward(messages) {
			if slices.ContainsFunc(m.ToolCalls, func(c chat.ToolCall) bool { return c.ID == call }) {
				return chat.ResultID(m.ID, call)
			}
		}
	}
	return ""
}

// sendRest emits what of a message was not streamed.
func (r *Run) sendRest(m chat.Message) error {
	were := tail.Sent(r.th.tail.Whole())
	var skip bool
	for _, e := range tail.Derived(m) {
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
	if r.rec.Status != Running {
		return errEnded
	}
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
	if r.status() != Running {
		return errEnded
	}
	if err := r.th.load(ctx); err != nil { // after a commit that failed
		return err
	}
	r.th.mu.Lock()
	whole := r.th.tail.Whole()
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
		r.th.tail.Took(len(whole))
		r.staged, r.after = slices.Clone(r.staged[staged:]), slices.Clone(r.after[after:])
		r.state = nil
		if last != nil {
			r.rec, r.th.speaker = end, nil
			r.k.free(r)
		}
		r.sendKept(events[len(whole):], c.Head+int64(len(whole)))
		if last != nil {
			r.th.finish(r)
		}
	}, jobs...)
}

// unsaid are messages that were streamed and that nobody added.
func (r *Run) unsaid(events []event.Event) []chat.Message {
	return slices.DeleteFunc(tail.Streamed(events, r.broken), func(m chat.Message) bool {
		same := func(s chat.Message) bool { return s.ID == m.ID }
		return slices.ContainsFunc(r.staged, same) || slices.ContainsFunc(r.th.window.Messages(), same)
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
