package tail

import (
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// Streamed are the messages of assistants that have been sent, but for calls whose
// arguments are broken: what was sent is kept, even if nobody says so.
func Streamed(events []event.Event, broken []string) []chat.Message {
	all := pieced{at: map[string]*message{}, calls: map[string]*calling{}}
	skip := map[string]bool{} // messages of others than the agent itself
	for _, e := range events {
		switch e := e.(type) {
		case event.TextMessageStart:
			if skip[e.MessageID] = e.SubagentRunID != "" || e.Role != "" && e.Role != chat.Assistant; !skip[e.MessageID] {
				all.of(e.MessageID)
			}
		case event.TextMessageContent:
			if !skip[e.MessageID] {
				all.of(e.MessageID).text.WriteString(e.Delta)
			}
		case event.ToolCallStart:
			if e.SubagentRunID == "" && e.ParentMessageID != "" && !slices.Contains(broken, e.ToolCallID) {
				c := &calling{id: e.ToolCallID, name: e.ToolCallName}
				m := all.of(e.ParentMessageID)
				m.calls, all.calls[c.id] = append(m.calls, c), c
			}
		case event.ToolCallArgs:
			if c := all.calls[e.ToolCallID]; c != nil {
				c.arguments.WriteString(e.Delta)
			}
		}
	}
	return all.messages()
}

// pieced are messages that are put together from pieces, of which there may be tens of
// thousands.
type pieced struct {
	order []*message
	at    map[string]*message
	calls map[string]*calling
}

type message struct {
	id    string
	text  strings.Builder
	calls []*calling
}

type calling struct {
	id, name  string
	arguments strings.Builder
}

func (p *pieced) of(id string) *message {
	m := p.at[id]
	if m == nil {
		m = &message{id: id}
		p.at[id], p.order = m, append(p.order, m)
	}
	return m
}

// messages are those that say something.
func (p *pieced) messages() (all []chat.Message) {
	for _, m := range p.order {
		if m.text.Len() == 0 && len(m.calls) == 0 {
			continue
		}
		whole := chat.Message{ID: m.id, Role: chat.Assistant, Incomplete: true}
		if m.text.Len() > 0 {
			whole.Content = chat.Text(m.text.String())
		}
		for _, c := range m.calls {
			whole.ToolCalls = append(whole.ToolCalls, chat.ToolCall{
				ID: c.id, Type: "function", Function: chat.FunctionCall{Name: c.name, Arguments: c.arguments.String()},
			})
		}
		all = append(all, whole)
	}
	return all
}

// Sent are the ids of texts and calls that events begin.
func Sent(events []event.Event) map[string]bool {
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

// Result is the event that says what a tool answered.
func Result(m chat.Message) event.Event {
	return event.ToolCallResult{MessageID: m.ID, ToolCallID: m.ToolCallID, Content: m.Content, Role: chat.Tool}
}

// Derived are the events that say a message which was not streamed.
func Derived(m chat.Message) (all []event.Event) {
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
