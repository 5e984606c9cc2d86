// Package tail holds the end of a run's events that nobody has kept yet: which event may
// follow, what will be kept of them, and the messages that they say.
//
// Deltas are for those who listen; what is kept of a message is one start, one content and
// one end, in the order in which messages ended. It has no I/O, and a [Tail] is used by one
// goroutine at a time.
package tail

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/event"
)

// What is wrong with an event.
var (
	// ErrOrder: it cannot follow those before it.
	ErrOrder = errors.New("event out of order")
	// ErrLimit: with it there would be more than may be held.
	ErrLimit = errors.New("limit")
)

// overhead is what an event counts besides its bytes, so that many tiny ones are not free.
const overhead = 64

// A Tail is the end of a run's events that is not durable yet. It holds what has ended
// as it will be kept, and what is open as it is so far.
type Tail struct {
	whole []event.Event
	// open are in the order in which they were opened.
	open  []*span
	steps []event.StepStarted
	// subagents are the ids of those that run.
	subagents []string
	// calls are the ids of all calls of the run.
	calls map[string]bool
	bytes int
	most  int
}

// New is an empty tail that holds at most so many bytes of events.
func New(most int) Tail { return Tail{most: most} }

// Unbound lets the tail hold whatever comes: what ends has to fit.
func (t *Tail) Unbound() { t.most = math.MaxInt }

// Whole are the events that have ended, as they will be kept. The slice is the tail's own.
func (t *Tail) Whole() []event.Event { return t.whole }

// Texting reports whether a message of that id is being streamed.
func (t *Tail) Texting(id string) bool {
	_, open := t.find(openText, id)
	return open != nil
}

// What is open: a message, a call, reasoning, a span of it. Each has ids of its own.
const (
	openText      = "message"
	openCall      = "call"
	openReasoning = "reasoning message"
	openThinking  = "reasoning"
)

// A span is something that was begun and has not ended.
type span struct {
	kind, id string
	start    event.Event
	middle   event.Event // the first piece
	text     strings.Builder
}

// pieces are the events that the span is so far.
func (s *span) pieces() []event.Event {
	switch m := s.middle.(type) {
	case event.TextMessageContent:
		m.Delta = s.text.String()
		return []event.Event{s.start, m}
	case event.ToolCallArgs:
		m.Delta = s.text.String()
		return []event.Event{s.start, m}
	case event.ReasoningMessageContent:
		m.Delta = s.text.String()
		return []event.Event{s.start, m}
	}
	return []event.Event{s.start}
}

// end is the event that ends the span.
func (s *span) end() event.Event {
	switch e := s.start.(type) {
	case event.TextMessageStart:
		return event.TextMessageEnd{MessageID: s.id, Owned: owned(e.Owned)}
	case event.ToolCallStart:
		return event.ToolCallEnd{ToolCallID: s.id, Owned: owned(e.Owned)}
	case event.ReasoningMessageStart:
		return event.ReasoningMessageEnd{MessageID: s.id, Owned: owned(e.Owned)}
	case event.ReasoningStart:
		return event.ReasoningEnd{MessageID: s.id, Owned: owned(e.Owned)}
	}
	return nil
}

// owned is whose event it is, without the rest.
func owned(o event.Owned) event.Owned { return event.Owned{SubagentRunID: o.SubagentRunID} }

func (t *Tail) find(kind, id string) (int, *span) {
	for i, s := range t.open {
		if s.kind == kind && s.id == id {
			return i, s
		}
	}
	return -1, nil
}

func (t *Tail) begin(kind, id string, start event.Event) error {
	if _, s := t.find(kind, id); s != nil {
		return fmt.Errorf("%w: %s begins the %s %s, which is open", ErrOrder, start.Type(), kind, quoted(id))
	}
	t.open = append(t.open, &span{kind: kind, id: id, start: start})
	return t.grow(len(id))
}

// beginCall holds that the ids of a run's calls differ: results are told apart by them.
func (t *Tail) beginCall(e event.ToolCallStart) error {
	if t.calls[e.ToolCallID] {
		return fmt.Errorf("%w: the run has had a call %s: give each an id of its own", ErrOrder, quoted(e.ToolCallID))
	}
	if err := t.begin(openCall, e.ToolCallID, e); err != nil {
		return err
	}
	if t.calls == nil {
		t.calls = map[string]bool{}
	}
	t.calls[e.ToolCallID] = true
	return nil
}

func (t *Tail) more(kind, id, delta string, piece event.Event) error {
	_, s := t.find(kind, id)
	if s == nil {
		return fmt.Errorf("%w: %s of the %s %s, which is not open", ErrOrder, piece.Type(), kind, quoted(id))
	}
	if err := t.grow(len(delta)); err != nil {
		return err
	}
	if s.middle == nil {
		s.middle = piece
	}
	s.text.WriteString(delta)
	return nil
}

func (t *Tail) close(kind, id string, end event.Event) error {
	i, s := t.find(kind, id)
	if s == nil {
		return fmt.Errorf("%w: %s of the %s %s, which is not open", ErrOrder, end.Type(), kind, quoted(id))
	}
	t.open = append(t.open[:i:i], t.open[i+1:]...)
	t.whole = append(append(t.whole, s.pieces()...), end)
	return nil
}

// grow bounds what is held until the next commit.
func (t *Tail) grow(bytes int) error {
	if t.bytes += bytes + overhead; t.bytes > t.most {
		return fmt.Errorf("%w: %d bytes of events since the last commit, at most %d", ErrLimit, t.bytes, t.most)
	}
	return nil
}

// Put takes an event of a run. It refuses what cannot follow, and what is not the
// runner's: the beginning and the end of a run, and results, which go out when they are
// durable.
func (t *Tail) Put(e event.Event) error {
	switch e := e.(type) {
	case event.TextMessageStart:
		return t.begin(openText, e.MessageID, e)
	case event.TextMessageContent:
		return t.more(openText, e.MessageID, e.Delta, e)
	case event.TextMessageEnd:
		return t.close(openText, e.MessageID, e)
	case event.ToolCallStart:
		return t.beginCall(e)
	case event.ToolCallArgs:
		return t.more(openCall, e.ToolCallID, e.Delta, e)
	case event.ToolCallEnd:
		return t.close(openCall, e.ToolCallID, e)
	case event.ReasoningMessageStart:
		return t.begin(openReasoning, e.MessageID, e)
	case event.ReasoningMessageContent:
		return t.more(openReasoning, e.MessageID, e.Delta, e)
	case event.ReasoningMessageEnd:
		return t.close(openReasoning, e.MessageID, e)
	}
	return t.putOther(e)
}

func (t *Tail) putOther(e event.Event) error {
	switch e := e.(type) {
	case event.RunStarted, event.RunFinished, event.RunError, event.ToolCallResult:
		return fmt.Errorf("%w: %s comes from the keeper alone", ErrOrder, e.Type())
	case event.TextMessageChunk, event.ToolCallChunk, event.ReasoningMessageChunk:
		return fmt.Errorf("%w: %s: send a start, contents and an end", ErrOrder, e.Type())
	case event.Raw, event.MessagesSnapshot: // for those who listen now
		return nil
	case event.ReasoningStart:
		if _, s := t.find(openThinking, e.MessageID); s != nil {
			return fmt.Errorf("%w: the reasoning %s is open", ErrOrder, quoted(e.MessageID))
		}
		t.open = append(t.open, &span{kind: openThinking, id: e.MessageID, start: e})
	case event.ReasoningEnd:
		i, s := t.find(openThinking, e.MessageID)
		if s == nil {
			return fmt.Errorf("%w: the reasoning %s is not open", ErrOrder, quoted(e.MessageID))
		}
		t.open = append(t.open[:i:i], t.open[i+1:]...)
	case event.StepStarted:
		if t.step(e.SubagentRunID, e.StepName) >= 0 {
			return fmt.Errorf("%w: the step %s is open", ErrOrder, quoted(e.StepName))
		}
		t.steps = append(t.steps, e)
	case event.StepFinished:
		i := t.step(e.SubagentRunID, e.StepName)
		if i < 0 {
			return fmt.Errorf("%w: the step %s is not open", ErrOrder, quoted(e.StepName))
		}
		t.steps = append(t.steps[:i:i], t.steps[i+1:]...)
	}
	t.putSubagent(e)
	t.whole = append(t.whole, e)
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Type(), err)
	}
	return t.grow(len(body))
}

func (t *Tail) putSubagent(e event.Event) {
	var ended string
	switch e := e.(type) {
	case event.SubagentStarted:
		t.subagents = append(t.subagents, e.SubagentRunID)
	case event.SubagentFinished:
		ended = e.SubagentRunID
	case event.SubagentError:
		ended = e.SubagentRunID
	}
	t.subagents = slices.DeleteFunc(t.subagents, func(id string) bool { return id == ended })
}

func (t *Tail) step(subagent, name string) int {
	for i, s := range t.steps {
		if s.SubagentRunID == subagent && s.StepName == name {
			return i
		}
	}
	return -1
}

// OpenCalls are the ids of the calls that are open.
func (t *Tail) OpenCalls() (ids []string) {
	for _, s := range t.open {
		if s.kind == openCall {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// Closings are the events that end all that is open, the last one first; but calls only
// if it says so: their end says that their arguments are whole.
func (t *Tail) Closings(calls bool) (all []event.Event) {
	for i := len(t.open) - 1; i >= 0; i-- {
		if s := t.open[i]; calls || s.kind != openCall {
			all = append(all, s.end())
		}
	}
	for i := len(t.steps) - 1; i >= 0; i-- {
		all = append(all, event.StepFinished{StepName: t.steps[i].StepName, Owned: owned(t.steps[i].Owned)})
	}
	for i := len(t.subagents) - 1; i >= 0; i-- {
		all = append(all, event.SubagentError{SubagentRunID: t.subagents[i], Message: "the run ended before the subagent did"})
	}
	return all
}

// SoFar are the events of the tail so far, for who begins to listen.
func (t *Tail) SoFar() (all []event.Event) {
	all = append(all, t.whole...)
	for _, s := range t.open {
		if s.kind != openThinking { // whose start is among the others
			all = append(all, s.pieces()...)
		}
	}
	return all
}

// Took forgets the first n whole events, which have been kept.
func (t *Tail) Took(n int) {
	t.whole, t.bytes = slices.Clone(t.whole[n:]), 0
	for _, s := range t.open {
		t.bytes += s.text.Len() + overhead
	}
}

// quoted shows what came from outside, cut to a length.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return fmt.Sprintf("%q", s)
}
