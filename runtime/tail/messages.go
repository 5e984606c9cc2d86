package tail

import (
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// Streamed are the messages of assistants that have been sent, but for calls whose
// arguments are broken: what was sent is kept, even if nobody says so.
func Streamed(events []event.Event, broken []string) []chat.Message {
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
