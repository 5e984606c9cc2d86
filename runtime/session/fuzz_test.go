package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
)

// scripted makes messages of bytes: each is a role, an id and a call, of few so that they
// meet.
func scripted(script []byte) (all []chat.Message) {
	for len(script) >= 3 {
		role, id, call := roles()[int(script[0])%len(roles())], fmt.Sprint("m", script[1]%8), fmt.Sprint("c", script[2]%4)
		m := chat.Message{ID: id, Role: role, Content: chat.Text("x")}
		switch role {
		case chat.Tool:
			m.ToolCallID = call
			if script[1]%2 == 0 {
				m.ID = ResultID(fmt.Sprint("m", script[1]%8), call)
			}
		case chat.Assistant:
			for i := range script[2] % 3 {
				m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: fmt.Sprint("c", (script[2]/3+i)%4), Type: "function"})
			}
		}
		all, script = append(all, m), script[3:]
	}
	return all
}

// oneOfEach leaves of messages with one id the first, as a thread does.
func oneOfEach(messages []chat.Message) []chat.Message {
	seen := map[string]bool{}
	return slices.DeleteFunc(messages, func(m chat.Message) bool {
		twin := seen[m.ID]
		seen[m.ID] = true
		return twin
	})
}

// Whatever a thread holds, what a model is shown has one result for each call right
// behind the message with the call, and is in order once and for all.
func FuzzE3_07_Repair(f *testing.F) {
	f.Add([]byte{2, 1, 0, 3, 2, 2, 4, 1, 0, 4, 3, 1, 2, 5, 0})
	f.Add([]byte{3, 2, 2, 3, 4, 2, 4, 4, 0, 4, 2, 0, 4, 2, 0})
	f.Add([]byte{4, 2, 0, 3, 2, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		messages := oneOfEach(scripted(script))
		was, err := json.Marshal(messages)
		if err != nil {
			t.Fatal(err)
		}
		whole, made := repair(messages)
		if is, err := json.Marshal(messages); err != nil || string(is) != string(was) {
			t.Errorf("the thread itself became %s, %v", is, err)
		}
		for i := 0; i < len(whole); i++ {
			m := whole[i]
			if m.Role == chat.Tool {
				t.Fatalf("message %d answers nothing", i)
			}
			seen := map[string]bool{}
			for _, call := range m.ToolCalls {
				if i++; i >= len(whole) || whole[i].Role != chat.Tool || whole[i].ToolCallID != call.ID || seen[call.ID] {
					t.Fatalf("call %s of message %s has no result behind it", call.ID, m.ID)
				}
				seen[call.ID] = true
			}
		}
		for _, m := range made {
			if !slices.ContainsFunc(whole, func(w chat.Message) bool { return w.ID == m.ID }) || slices.ContainsFunc(messages, func(o chat.Message) bool { return o.ID == m.ID }) {
				t.Errorf("%s was made up in vain", m.ID)
			}
		}
		again, more := repair(whole)
		one, err1 := json.Marshal(whole)
		two, err2 := json.Marshal(again)
		if len(more) > 0 || string(one) != string(two) || err1 != nil || err2 != nil {
			t.Errorf("repaired again: %s, was %s", two, one)
		}
	})
}

// Whatever a client sends, its ids stand in a thread once, it says nothing that is not
// its to say, and sent again it changes nothing.
func FuzzE3_04_Reconcile(f *testing.F) {
	f.Add([]byte{2, 1, 0, 3, 2, 1}, []byte{2, 1, 0, 2, 5, 0, 4, 3, 1}, true)
	f.Add([]byte{2, 1, 0, 3, 2, 1}, []byte{4, 3, 1, 2, 1, 0, 2, 7, 1}, false)
	f.Fuzz(func(t *testing.T, before, script []byte, replace bool) {
		var stored []Stored
		known := map[string]int64{}
		for _, m := range oneOfEach(scripted(before)) {
			known[m.ID]++
			stored = append(stored, Stored{Number: int64(len(stored) + 1), Message: m})
		}
		input := scripted(script)
		after := stored
		open := []string{"c1"} // for the first run that comes
		for round := range 2 {
			var m merge
			var err error
			if rec := newReconciler(open, false); replace {
				m, err = rec.replace(after, input)
			} else {
				m = rec.appendTo(known, input)
			}
			if err != nil {
				return
			}
			if round == 1 && (len(m.add) > 0 || m.dropFrom > 0) {
				t.Fatalf("sent again it adds %v and drops from %d", m.add, m.dropFrom)
			}
			after, open = applied(t, after, m, stored), nil
			for _, s := range after {
				known[s.ID]++
			}
		}
	})
}

// applied is the thread after a merge, which it holds to what a client may do.
func applied(t *testing.T, before []Stored, m merge, server []Stored) (after []Stored) {
	t.Helper()
	ids := map[string]bool{}
	for _, s := range before {
		if m.dropFrom == 0 || s.Number < m.dropFrom {
			after = append(after, s)
			ids[s.ID] = true
		}
	}
	for _, added := range m.add {
		if ids[added.ID] {
			t.Fatalf("%s stands there twice", added.ID)
		}
		ids[added.ID] = true
		own := slices.ContainsFunc(server, func(s Stored) bool { return equal(s.Message, added) })
		if !own && added.Role != chat.User && (added.Role != chat.Tool || added.ToolCallID != "c1") {
			t.Fatalf("the client said %s as %s", added.ID, added.Role)
		}
		after = append(after, Stored{Number: int64(len(before) + len(after) + 1), Message: added})
	}
	return after
}

// Whatever a runner emits, what is kept of it and closed is what a client takes, and says
// what was streamed.
func FuzzE3_03_Tail(f *testing.F) {
	f.Add([]byte{0, 1, 8, 16, 2, 9, 3, 11, 19, 4})
	f.Add([]byte{5, 0, 3, 6, 8, 14, 22, 30, 38})
	f.Fuzz(func(t *testing.T, script []byte) {
		tl := tail{most: 1 << 20}
		var live []event.Event
		for _, b := range script {
			if e := emitted(b); tl.put(e) == nil {
				live = append(live, e)
			}
		}
		for _, e := range tl.closings(true) {
			if err := tl.put(e); err != nil {
				t.Fatalf("%s: %v", e.Type(), err)
			}
			live = append(live, e)
		}
		if len(tl.open)+len(tl.steps)+len(tl.subagents) > 0 {
			t.Fatalf("open are %v %v %v", tl.open, tl.steps, tl.subagents)
		}
		first := event.RunStarted{ThreadID: "t", RunID: "r", ProtocolVersion: event.Version}
		last := event.RunFinished{ThreadID: "t", RunID: "r", Outcome: &event.Outcome{Type: event.Success}}
		for _, e := range tl.whole {
			if c, ok := e.(event.ToolCallStart); ok {
				last.Outcome.PendingToolCallIDs = append(last.Outcome.PendingToolCallIDs, c.ToolCallID)
			}
		}
		eventtest.Conforms(t, false, append(append([]event.Event{first}, tl.whole...), last)...)
		if one, two := texts(live), texts(tl.whole); one != two {
			t.Errorf("streamed was %s, kept is %s", one, two)
		}
	})
}

// emitted is one of the events that a byte stands for.
func emitted(b byte) event.Event {
	id := fmt.Sprint("m", b/8%2)
	switch kind := b % 8; {
	case kind == 0:
		return event.TextMessageStart{MessageID: id}
	case kind == 1:
		return event.TextMessageContent{MessageID: id, Delta: fmt.Sprint(b)}
	case kind == 2:
		return event.TextMessageEnd{MessageID: id}
	case kind == 3:
		return event.ToolCallStart{ToolCallID: id, ToolCallName: "f", ParentMessageID: "p" + id}
	case kind == 4:
		return event.ToolCallArgs{ToolCallID: id, Delta: fmt.Sprint(b)}
	case kind == 5:
		return event.ToolCallEnd{ToolCallID: id}
	case b/16%4 == 0:
		return event.StepStarted{StepName: id}
	case b/16%4 == 1:
		return event.StepFinished{StepName: id}
	case b/16%4 == 2:
		return event.ReasoningMessageStart{MessageID: id, Role: chat.Reasoning}
	}
	return event.ReasoningMessageContent{MessageID: id, Delta: fmt.Sprint(b)}
}

func texts(events []event.Event) string {
	all := map[string]string{}
	for _, e := range events {
		switch e := e.(type) {
		case event.TextMessageContent:
			all["text "+e.MessageID] += e.Delta
		case event.ToolCallArgs:
			all["call "+e.ToolCallID] += e.Delta
		case event.ReasoningMessageContent:
			all["reasoning "+e.MessageID] += e.Delta
		}
	}
	return fmt.Sprint(all)
}
