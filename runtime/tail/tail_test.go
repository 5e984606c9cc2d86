package tail

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

func text(id, say, by string, role chat.Role) []event.Event {
	o := event.Owned{SubagentRunID: by}
	return []event.Event{
		event.TextMessageStart{MessageID: id, Role: role, Owned: o}, event.TextMessageContent{MessageID: id, Delta: say, Owned: o},
		event.TextMessageEnd{MessageID: id, Owned: o},
	}
}

// What a subagent says, what is said for somebody else, and calls that belong to nothing
// are no messages of the agent.
func TestOnlyTheAgentsOwnIsKept(t *testing.T) {
	var all []event.Event
	all = append(all, text("own", "mine", "", chat.Assistant)...)
	all = append(all, text("plain", "mine too", "", "")...)
	all = append(all, text("sub", "a subagent's", "b", chat.Assistant)...)
	all = append(all, text("user", "a person's", "", chat.User)...)
	for _, c := range []event.ToolCallStart{
		{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "own"}, {ToolCallID: "orphan", ToolCallName: "f"},
		{ToolCallID: "theirs", ToolCallName: "f", ParentMessageID: "own", Owned: event.Owned{SubagentRunID: "b"}},
		{ToolCallID: "broken", ToolCallName: "f", ParentMessageID: "own"}, {ToolCallID: "d", ToolCallName: "g", ParentMessageID: "own"},
	} {
		all = append(all, c, event.ToolCallArgs{ToolCallID: c.ToolCallID, Delta: `{"id":`}, event.ToolCallArgs{ToolCallID: c.ToolCallID, Delta: `"` + c.ToolCallID + `"}`})
	}
	var got []string
	for _, m := range Streamed(all, []string{"broken"}) {
		line := m.ID + "=" + m.Content.String()
		for _, c := range m.ToolCalls {
			line += " " + c.ID + c.Function.Arguments
		}
		got = append(got, line)
	}
	if want := `own=mine c{"id":"c"} d{"id":"d"}|plain=mine too`; strings.Join(got, "|") != want {
		t.Errorf("got %s, want %s", strings.Join(got, "|"), want)
	}
}

// Reasoning is no message that is said; a call without arguments has no piece of them.
func TestWhatAMessageSays(t *testing.T) {
	if all := Derived(chat.Message{ID: "r", Role: chat.Reasoning, Content: chat.Text("hm")}); len(all) > 0 {
		t.Errorf("%v", all)
	}
	m := chat.Message{ID: "a", Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "c", Function: chat.FunctionCall{Name: "f"}}}}
	if all := Derived(m); len(all) != 2 {
		t.Errorf("%v", all)
	}
}

// Steps of one name are told apart by whose they are and by their names.
func TestStepsHaveTheirOwners(t *testing.T) {
	tl := New(1 << 20)
	step := func(name, by string) event.StepStarted {
		return event.StepStarted{StepName: name, Owned: event.Owned{SubagentRunID: by}}
	}
	for _, e := range []event.Event{step("s", ""), step("s", "b"), step("t", ""), event.StepFinished{StepName: "s"}, event.StepFinished{StepName: "t"}} {
		if err := tl.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := tl.Put(event.StepFinished{StepName: "s"}); err == nil {
		t.Error("the step of a subagent was ended by another")
	}
	if all := tl.Closings(true); len(all) != 1 || all[0].(event.StepFinished).SubagentRunID != "b" {
		t.Errorf("%v", all)
	}
}

// Each kind of event counts against the bound, and ids that are shown are cut.
func TestTailsAreBounded(t *testing.T) {
	id := strings.Repeat("i", 200)
	for name, e := range map[string]func(n int) event.Event{
		"texts": func(n int) event.Event { return event.TextMessageStart{MessageID: strings.Repeat("i", n)} },
		"calls": func(n int) event.Event {
			return event.ToolCallStart{ToolCallID: strings.Repeat("i", n), ToolCallName: "f"}
		},
		"steps":   func(n int) event.Event { return event.StepStarted{StepName: strings.Repeat("i", n)} },
		"customs": func(int) event.Event { return event.Custom{Name: "n", Value: []byte("1")} },
	} {
		tl := New(5000)
		var err error
		for n := 1; n < 1000 && err == nil; n++ {
			err = tl.Put(e(n))
		}
		if err == nil || !strings.Contains(err.Error(), "at most 5000") {
			t.Errorf("%s: %v", name, err)
		}
	}
	tl := New(5000)
	if err := tl.Put(event.TextMessageEnd{MessageID: id}); err == nil || len(err.Error()) > 150 {
		t.Errorf("%v", err)
	}
}
