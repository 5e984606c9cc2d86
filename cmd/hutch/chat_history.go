package main

import (
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// chatHistory is what was said in a conversation whose agent keeps nothing, put together
// from the events of its runs. A nil one takes nothing.
type chatHistory struct{ messages []chat.Message }

// with adds messages, and returns all.
func (h *chatHistory) with(more ...chat.Message) []chat.Message {
	h.messages = append(h.messages, more...)
	return slices.Clone(h.messages)
}

// message is the one of that id, which is made if there is none.
func (h *chatHistory) message(id string, role chat.Role) *chat.Message {
	for i := range h.messages {
		if h.messages[i].ID == id {
			return &h.messages[i]
		}
	}
	h.messages = append(h.messages, chat.Message{ID: id, Role: role})
	return &h.messages[len(h.messages)-1]
}

// call is the one of that id; nil if there is none.
func (h *chatHistory) call(id string) *chat.ToolCall {
	for i := range h.messages {
		for j := range h.messages[i].ToolCalls {
			if c := &h.messages[i].ToolCalls[j]; c.ID == id {
				return c
			}
		}
	}
	return nil
}

// take takes what an event adds.
func (h *chatHistory) take(e event.Event) {
	if h == nil {
		return
	}
	switch e := e.(type) {
	case event.TextMessageContent:
		m := h.message(e.MessageID, chat.Assistant)
		m.Content = chat.Text(m.Content.String() + e.Delta)
	case event.ToolCallStart:
		m := h.message(e.ParentMessageID, chat.Assistant)
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: e.ToolCallID, Type: "function", Function: chat.FunctionCall{Name: e.ToolCallName}})
	case event.ToolCallArgs:
		if c := h.call(e.ToolCallID); c != nil {
			c.Function.Arguments += e.Delta
		}
	case event.ToolCallResult:
		m := h.message(e.MessageID, chat.Tool)
		m.ToolCallID, m.Content = e.ToolCallID, e.Content
	}
}
