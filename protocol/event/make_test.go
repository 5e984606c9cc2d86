package event_test

import (
	"github.com/hutch-run/hutch/protocol/chat"
)

func content(text string) chat.Content { return chat.Text(text) }

// messages are n of them, with a call in each that an assistant wrote.
func messages(id string, n int) (out []chat.Message) {
	for i, role := range []chat.Role{chat.Assistant, chat.Reasoning, chat.User}[:n] {
		m := chat.Message{ID: id + []string{"", "x", "y"}[i], Role: role, Content: content("hi")}
		if role == chat.Assistant {
			m.ToolCalls = []chat.ToolCall{{ID: id, Type: "function", Function: chat.FunctionCall{Name: "n"}}}
		}
		out = append(out, m)
	}
	return out
}
