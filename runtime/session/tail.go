package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// A tail is the end of a run's events that is not durable yet. It holds what has ended
// as it will be kept, and what is open as it is so far.
type tail struct {
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

func (t *tail) find(kind, id string) (int, *span) {
	for i, s := range t.open {
		if s.kind == kind && s.id == id {
			return i, s
		}
	}
	return -1, nil
}

func (t *tail) begin(kind, id string, start event.Event) error {
	if _, s := t.find(kind, id); s != nil {
		return fmt.Errorf("%w: %s begins the %s %s, which is open", ErrOrder, start.Type(), kind, quoted(id))
	}
	t.open = append(t.open, &span{kind: kind, id: id, start: start})
	return t.grow(len(id))
}

// beginCall holds that the ids of a run's calls differ: results are told apart by them.
func (t *tail) beginCall(e event.ToolCallStart) error {
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

func (t *tail) more(kind, id, delta string, piece event.Event) error {
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

func (t *tail) close(kind, id string, end event.Event) error {
	i, s := t.find(kind, id)
	if s == nil {
		return fmt.Errorf("%w: %s of the %s %s, which is not open", ErrOrder, end.Type(), kind, quoted(id))
	}
	t.open = append(t.open[:i:i], t.open[i+1:]...)
	t.whole = append(append(t.whole, s.pieces()...), end)
	return nil
}

// grow bounds what is held until the next commit.
func (t *tail) grow(bytes int) error {
	if t.bytes += bytes + ItemOverhead; t.bytes > t.most {
		return fmt.Errorf("%w: %d bytes of events since the last commit, at most %d", ErrLimit, t.bytes, t.most)
	}
	return nil
}

// put takes an event of a run. It refuses what cannot follow, and what is not the
// runner's: the beginning and the end of a run, and results, which go out when they are
// durable.
func (t *tail) put(e event.Event) error {
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

func (t *tail) putOther(e event.Event) error {
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
		return fmt.Errorf("%w: %s: %w", ErrInvalid, e.Type(), err)
	}
	return t.grow(len(body))
}

func (t *tail) putSubagent(e event.Event) {
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

func (t *tail) step(subagent, name string) int {
	for i, s := range t.steps {
		if s.SubagentRunID == subagent && s.StepName == name {
			return i
		}
	}
	return -1
}

// openCalls are the ids of the calls that are open.
func (t *tail) openCalls() (ids []string) {
	for _, s := range t.open {
		if s.kind == openCall {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// closings are the events that end all that is open, the last one first; but calls only
// if it says so: their end says that their arguments are whole.
func (t *tail) closings(calls bool) (all []event.Event) {
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

// soFar are the events of the tail so far, for who begins to listen.
func (t *tail) soFar() (all []event.Event) {
	all = append(all, t.whole...)
	for _, s := range t.open {
		if s.kind != openThinking { // whose start is among the others
			all = append(all, s.pieces()...)
		}
	}
	return all
}

// took forgets the first n whole events, which have been kept.
func (t *tail) took(n int) {
	t.whole, t.bytes = slices.Clone(t.whole[n:]), 0
	for _, s := range t.open {
		t.bytes += s.text.Len() + ItemOverhead
	}
}

// streamed are the messages of assistants that have been sent, but for calls whose
// arguments are broken: what was sent is kept, even if nobody says so.
func streamed(events []event.Event, broken []string) []chat.Message {
	var all []chat.Message
	at := map[string]int{}
	of := func(id string) *chat.Message {
		i, ok := at[id]
		if !ok {
			i = len(all)
			at[id] = i
			all = append(all, chat.Message{ID: id, Role: chat.Assistant, Incomplete: true})
		}
		return &all[i]
	}
	skip := map[string]bool{} // messages of others than the agent itself
	calls := map[string]event.ToolCallStart{}
	for _, e := range events {
		switch e := e.(type) {
		case event.TextMessageStart:
			if skip[e.MessageID] = e.SubagentRunID != "" || e.Role != "" && e.Role != chat.Assistant; !skip[e.MessageID] {
				of(e.MessageID)
			}
		case event.TextMessageContent:
			if !skip[e.MessageID] {
				m := of(e.MessageID)
				m.Content = chat.Text(m.Content.String() + e.Delta)
			}
		case event.ToolCallStart:
			if e.SubagentRunID == "" && e.ParentMessageID != "" && !slices.Contains(broken, e.ToolCallID) {
				calls[e.ToolCallID] = e
				m := of(e.ParentMessageID)
				m.ToolCalls = append(m.ToolCalls, chat.ToolCall{
					ID: e.ToolCallID, Type: "function", Function: chat.FunctionCall{Name: e.ToolCallName},
				})
			}
		case event.ToolCallArgs:
			if start, ok := calls[e.ToolCallID]; ok {
				m := of(start.ParentMessageID)
				last := &m.ToolCalls[callAt(m.ToolCalls, e.ToolCallID)]
				last.Function.Arguments += e.Delta
			}
		}
	}
	return slices.DeleteFunc(all, func(m chat.Message) bool { return m.Content.String() == "" && len(m.ToolCalls) == 0 })
}

func callAt(calls []chat.ToolCall, id string) int {
	for i := len(calls) - 1; i > 0; i-- {
		if calls[i].ID == id {
			return i
		}
	}
	return 0
}

// sent are the ids of texts and calls that events begin.
func sent(events []event.Event) map[string]bool {
	ids := map[string]bool{}
	for _, e := range events {
		switch e := e.(type) {
		case event.TextMessageStart:
			ids["text "+e.MessageID] = true
		case event.ToolCallStart:
			ids["call "+e.ToolCallID] = true
		}
	}
	return ids
}

// result is the event that says what a tool answered.
func result(m chat.Message) event.Event {
	return event.ToolCallResult{MessageID: m.ID, ToolCallID: m.ToolCallID, Content: m.Content, Role: chat.Tool}
}

// derived are the events that say a message which was not streamed.
func derived(m chat.Message) (all []event.Event) {
	if m.Role == chat.Reasoning {
		return nil
	}
	if text := m.Content.String(); text != "" {
		all = append(all, event.TextMessageStart{MessageID: m.ID, Role: m.Role, Name: m.Name},
			event.TextMessageContent{MessageID: m.ID, Delta: text}, event.TextMessageEnd{MessageID: m.ID})
	}
	for _, call := range m.ToolCalls {
		all = append(all, event.ToolCallStart{ToolCallID: call.ID, ToolCallName: call.Function.Name, ParentMessageID: m.ID})
		if call.Function.Arguments != "" {
			all = append(all, event.ToolCallArgs{ToolCallID: call.ID, Delta: call.Function.Arguments})
		}
		all = append(all, event.ToolCallEnd{ToolCallID: call.ID})
	}
	return all
}
