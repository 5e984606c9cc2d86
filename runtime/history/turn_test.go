package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/history"
)

// A model that is shown the end of a turn larger than the bounds still sees what the user
// asked, and no result without its call.
func TestLargeTurnsKeepTheirQuestion(t *testing.T) {
	asks := func(id string) chat.Message {
		return chat.Message{ID: id, Role: chat.User, Content: chat.Text("go")}
	}
	calls := func(id string, n int) chat.Message {
		m := chat.Message{ID: id, Role: chat.Assistant}
		for i := range n {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: fmt.Sprint(id, i)})
		}
		return m
	}
	result := func(call string, bytes int) chat.Message {
		return chat.Message{ID: "r" + call, Role: chat.Tool, ToolCallID: call, Content: chat.Text(strings.Repeat("x", bytes))}
	}
	const most = 10_000
	for _, tt := range []struct {
		name     string
		messages []chat.Message
		want     string
	}{
		{"one result", []chat.Message{asks("u"), calls("a", 1), result("a0", 2*most)}, "u a ra0"},
		{"one far larger", []chat.Message{asks("u"), calls("a", 1), result("a0", 9*most)}, "u a ra0"},
		{"several of one message", []chat.Message{asks("u"), calls("a", 3), result("a0", most), result("a1", most), result("a2", most)}, "u a ra0 ra1 ra2"},
		{"those of the message before", []chat.Message{asks("u"), calls("a", 2), result("a0", most), result("a1", most), calls("b", 1), result("b0", 10)}, "u b rb0"},
		{"a turn before", []chat.Message{asks("t"), calls("s", 0), asks("u"), calls("a", 1), result("a0", 2*most)}, "u a ra0"},
		{"no question", []chat.Message{calls("a", 1), result("a0", 2*most)}, "a ra0"},
		{"two questions", []chat.Message{result("z", most), asks("t"), asks("u")}, "t u"},
		{"all fits", []chat.Message{asks("u"), calls("a", 1), result("a0", 10)}, "u a ra0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for split := range tt.messages { // what is held, and what is shown besides
				w := history.NewWindow(100, most)
				for _, m := range tt.messages[:split] {
					w.Add(m)
				}
				var got []string
				for _, m := range w.With(tt.messages[split:]) {
					got = append(got, m.ID)
				}
				if strings.Join(got, " ") != tt.want {
					t.Errorf("split at %d: %v, want %s", split, got, tt.want)
				}
			}
		})
	}
}
