package history

import (
	"encoding/json"
	"slices"

	"github.com/hutch-run/hutch/protocol/chat"
)

// noResult is what a call is closed with that nothing answered.
const noResult = "There is no result: the call was not answered before the conversation went on. Do not assume that it was carried out."

// madeUp marks a message that stands for what is not there.
const madeUp = `{"synthetic":true}`

// A slot is where the answer to one call goes.
type slot struct {
	parent, call string
	result       *chat.Message
}

// Repair brings messages into the form that a model takes: behind each message with
// calls stands one result for each of them, in their order. Results that answer
// nothing are left out, and so is a second one, and a second call of the same id in one
// message. made are the results that had to be made up, which are in the list too.
func Repair(messages []chat.Message) (whole, made []chat.Message) {
	if !slices.ContainsFunc(messages, func(m chat.Message) bool { return m.Role == chat.Tool || len(m.ToolCalls) > 0 }) {
		return slices.Clone(messages), nil
	}
	slots := map[int][]*slot{} // by the place of the message with the calls
	latest := map[string]*slot{}
	exact := map[string]*slot{}
	for i, m := range messages {
		switch m.Role {
		case chat.Assistant:
			for _, call := range m.ToolCalls {
				id := chat.ResultID(m.ID, call.ID)
				if exact[id] != nil {
					continue
				}
				s := &slot{parent: m.ID, call: call.ID}
				slots[i] = append(slots[i], s)
				latest[call.ID], exact[id] = s, s
			}
		case chat.Tool:
			s := exact[m.ID]
			if s == nil || s.call != m.ToolCallID {
				s = latest[m.ToolCallID]
			}
			if s != nil && s.result == nil {
				s.result = &messages[i]
			}
		}
	}
	for i, m := range messages {
		if m.Role == chat.Tool {
			continue
		}
		whole = append(whole, withoutTwins(m))
		for _, s := range slots[i] {
			if s.result == nil {
				s.result = &chat.Message{
					ID: freeID(messages, chat.ResultID(s.parent, s.call)), Role: chat.Tool, ToolCallID: s.call,
					Content: chat.Text(noResult), Metadata: json.RawMessage(madeUp),
				}
				made = append(made, *s.result)
			}
			whole = append(whole, *s.result)
		}
	}
	return whole, made
}

// freeID is id, or one like it if a message has it already.
func freeID(messages []chat.Message, id string) string {
	for slices.ContainsFunc(messages, func(m chat.Message) bool { return m.ID == id }) {
		id += "'"
	}
	return id
}

// withoutTwins leaves of calls with one id the first.
func withoutTwins(m chat.Message) chat.Message {
	seen := map[string]bool{}
	for _, call := range m.ToolCalls {
		if seen[call.ID] {
			clear(seen)
			m.ToolCalls = slices.DeleteFunc(slices.Clone(m.ToolCalls), func(c chat.ToolCall) bool {
				twin := seen[c.ID]
				seen[c.ID] = true
				return twin
			})
			return m
		}
		seen[call.ID] = true
	}
	return m
}

// Unanswered are the calls without a result in messages, in their order.
func Unanswered(messages []chat.Message) (calls []string) {
	_, made := Repair(messages)
	for _, m := range made {
		calls = append(calls, m.ToolCallID)
	}
	return calls
}
