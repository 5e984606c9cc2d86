package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
)

func said(role chat.Role, id, text string) chat.Message {
	return chat.Message{ID: id, Role: role, Content: chat.Text(text)}
}

// A window holds no more than twice what it shows, in messages and in bytes, however long
// the thread becomes.
func TestWindowsHoldNoMore(t *testing.T) {
	messages := NewWindow(10, 1<<30)
	bytes := NewWindow(1<<30, 10_000)
	for i := range 1000 {
		m := said(chat.User, fmt.Sprint("u", i), strings.Repeat("x", 500))
		messages.Add(m)
		bytes.Add(m)
		if n := len(messages.Messages()); n > 20 {
			t.Fatalf("%d messages", n)
		}
		if n := bytes.Bytes(); n > 20_000+Size(m) {
			t.Fatalf("%d bytes", n)
		}
	}
	if n := len(messages.With(nil)); n != 10 {
		t.Errorf("%d messages are shown", n)
	}
	if shown := bytes.With(nil); len(shown) < 5 || int64(len(shown))*Size(shown[0]) > 10_000 {
		t.Errorf("%d messages of %d bytes are shown", len(shown), Size(shown[0]))
	}
	whole := json.RawMessage(strings.Repeat("x", 1000))
	for name, m := range map[string]chat.Message{
		"metadata":  {Metadata: whole},
		"encrypted": {EncryptedValue: string(whole)},
		"source":    {Content: chat.Parts(chat.Part{Type: "image", Source: &chat.Source{Value: string(whole)}})},
		"arguments": {ToolCalls: []chat.ToolCall{{Function: chat.FunctionCall{Arguments: string(whole)}}}},
		"text":      {Content: chat.Text(string(whole))},
	} {
		if n := Size(m); n < 1000 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
}

// What is shown to a model beside the thread changes nothing in it.
func TestWindowsAreNotShared(t *testing.T) {
	w := NewWindow(4, 1<<20)
	for i := range 3 {
		w.Add(said(chat.User, fmt.Sprint("u", i), "x"))
	}
	one, two := w.With([]chat.Message{said(chat.User, "a", "x")}), w.With([]chat.Message{said(chat.User, "b", "x")})
	if one[3].ID != "a" || two[3].ID != "b" || len(w.Messages()) != 3 {
		t.Errorf("%s, %s, %d messages", one[3].ID, two[3].ID, len(w.Messages()))
	}
}

func call(id string, calls ...string) chat.Message {
	m := chat.Message{ID: id, Role: chat.Assistant}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: c, Type: "function"})
	}
	return m
}

func result(id, call, text string) chat.Message {
	m := said(chat.Tool, id, text)
	m.ToolCallID = call
	return m
}

func shown(messages []chat.Message) string {
	var all []string
	for _, m := range messages {
		line := m.ID
		for _, c := range m.ToolCalls {
			line += "(" + c.ID + ")"
		}
		all = append(all, line)
	}
	return strings.Join(all, " ")
}

// Of several results of one call the first counts; calls of one id in two messages have one
// each, told apart by the ids of results; what claims to be the result of one call and
// answers another does not.
func TestResultsFindTheirCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []chat.Message
		want string
	}{
		"no calls":       {[]chat.Message{said(chat.User, "u", "hi"), said(chat.Assistant, "a", "x")}, "u a"},
		"a result alone": {[]chat.Message{said(chat.User, "u", "hi"), result("r", "c", "x")}, "u"},
		"two results":    {[]chat.Message{call("a", "c"), result("r1", "c", "1"), result("r2", "c", "2")}, "a(c) r1"},
		"one id, two calls": {[]chat.Message{call("a", "c"), call("b", "c"), result("b:c:result", "c", "b"), result("a:c:result", "c", "a")},
			"a(c) a:c:result b(c) b:c:result"},
		"twins in a message":      {[]chat.Message{call("a", "c", "c", "d"), result("r", "c", "1"), result("s", "d", "2")}, "a(c)(d) r s"},
		"an id of another call":   {[]chat.Message{call("a", "c", "d"), result("a:c:result", "d", "1")}, "a(c)(d) a:c:result' a:c:result"},
		"twins of one message id": {[]chat.Message{call("a", "c"), call("a", "c"), result("r", "c", "1")}, "a(c) r a(c)"},
	} {
		t.Run(name, func(t *testing.T) {
			whole, _ := Repair(tt.in)
			if got := shown(whole); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Only what answers a call is said to answer one that is not the client's.
func TestWhyMessagesAreRefused(t *testing.T) {
	m := Client{Open: []string{"c"}}.Append(nil, []chat.Message{
		{ID: "a", Role: chat.Assistant, ToolCallID: "c"}, result("r", strings.Repeat("x", 100), ""),
	})
	if len(m.Add) != 0 || len(m.Ignored) != 2 || !strings.Contains(m.Ignored[0].Why, "role assistant") || !strings.HasSuffix(m.Ignored[1].Why, `x…", which is not the client's to answer`) {
		t.Errorf("%+v", m)
	}
}

// A message under the id that the result of a call will get would keep that result, and
// the end of its run, from being kept.
func TestIDsOfResultsAreTaken(t *testing.T) {
	mine := chat.ResultID("a", "c")
	for _, tt := range []struct {
		name string
		m    chat.Message
		ok   bool
	}{
		{"said by a user", chat.Message{ID: mine, Role: chat.User}, false},
		{"said by an agent", chat.Message{ID: mine, Role: chat.Assistant}, false},
		{"an answer to another call", chat.Message{ID: mine, Role: chat.Tool, ToolCallID: "d"}, false},
		{"an answer to a call that ends the same", chat.Message{ID: chat.ResultID("a", "cd"), Role: chat.Tool, ToolCallID: "d"}, false},
		{"the answer itself", chat.Message{ID: mine, Role: chat.Tool, ToolCallID: "c"}, true},
		{"an answer under another id", chat.Message{ID: "x", Role: chat.Tool, ToolCallID: "c"}, true},
		{"an id that is alike", chat.Message{ID: "the result", Role: chat.User}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Client{Trusted: true, Open: []string{"c", "d"}}
			if m := c.Append(nil, []chat.Message{tt.m}); (len(m.Add) == 1) != tt.ok || (len(m.Ignored) == 0) != tt.ok {
				t.Errorf("appended: %+v", m)
			}
			if _, err := c.Replace(nil, []chat.Message{tt.m}); (err == nil) != tt.ok {
				t.Errorf("replaced: %v", err)
			}
		})
	}
}
