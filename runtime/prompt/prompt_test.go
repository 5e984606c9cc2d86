package prompt

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
)

// The names of tools are those that every model takes; one that is not would have the whole
// request refused.
func TestNamesOfTools(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "zZ09_-": true, strings.Repeat("n", 64): true, strings.Repeat("n", 65): false, "": false,
		"a/": false, "a:": false, "a@": false, "a[": false, "a`": false, "a{": false, "a b": false, "é": false, "a.b": false,
	} {
		o, warnings := NewOffer(nil, []event.Tool{{Name: name}})
		if got := o.IsClients(name); got != want || (len(warnings) == 0) != want || len(o.Functions) != map[bool]int{true: 1}[want] {
			t.Errorf("%q: offered %t, warnings %v", name, got, warnings)
		}
	}
}

// Only a tool that says so reads only.
func TestReadsOnly(t *testing.T) {
	yes, no := true, false
	o, _ := NewOffer([]tool.Spec{
		{Name: "none"}, {Name: "empty", Annotations: &tool.Annotations{}}, {Name: "no", Annotations: &tool.Annotations{ReadOnlyHint: &no}},
		{Name: "yes", Annotations: &tool.Annotations{ReadOnlyHint: &yes}},
	}, []event.Tool{{Name: "client"}})
	for _, name := range []string{"none", "empty", "no", "yes", "client", "unknown"} {
		if got := o.ReadsOnly(name); got != (name == "yes") {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func users(ids ...string) (all []chat.Message) {
	for _, id := range ids {
		role := chat.Assistant
		if strings.HasPrefix(id, "u") {
			role = chat.User
		}
		all = append(all, chat.Message{ID: id, Role: role, Content: chat.Text("x")})
	}
	return all
}

// A thread is shown from a message on, or whole if that is not there any more.
func TestShown(t *testing.T) {
	all := users("u1", "a1", "u2", "a2", "")
	for from, want := range map[string]int{"": 5, "u1": 5, "u2": 3, "gone": 5} {
		if got := len(Shown(all, from)); got != want {
			t.Errorf("from %q: %d messages, want %d", from, got, want)
		}
	}
	for _, tt := range []struct{ ids, want string }{{"u1 a1", ""}, {"a0 a1", ""}, {"u1 a1 u2 a2 u3 a3 u4", "u3"}, {"u1 u2 a2 a2 a2 a2", "u2"}, {"", ""}} {
		if got, ok := Narrower(users(strings.Fields(tt.ids)...)); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: from %q, %t", tt.ids, got, ok)
		}
	}
}

// Calls whose arguments are no JSON object are shown as one, and others as they were; the
// thread's own messages stay what they are.
func TestCallsAreReadable(t *testing.T) {
	m := chat.Message{ID: "a", Role: chat.Assistant}
	for _, args := range []string{`{"a" : 1}`, `{"a`, ` `, `[1]`} {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: "c", Function: chat.FunctionCall{Arguments: args}})
	}
	var got []string
	for _, c := range (Conversation{History: []chat.Message{m}}).Messages()[0].ToolCalls {
		got = append(got, c.Function.Arguments)
	}
	if want := `{"a" : 1}|{"not_json":"{\"a"}|{}|{"not_json":"[1]"}`; strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
	if m.ToolCalls[1].Function.Arguments != `{"a` {
		t.Error("the thread has changed")
	}
}
