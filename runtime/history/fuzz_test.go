package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
)

// scripted makes messages of bytes: each is a role, an id and a call, of few so that they
// meet.
func scripted(script []byte) (all []chat.Message) {
	roles := []chat.Role{chat.Developer, chat.System, chat.User, chat.Assistant, chat.Tool, chat.Reasoning}
	for len(script) >= 3 {
		role, id, call := roles[int(script[0])%len(roles)], fmt.Sprint("m", script[1]%8), fmt.Sprint("c", script[2]%4)
		m := chat.Message{ID: id, Role: role, Content: chat.Text("x")}
		switch role {
		case chat.Tool:
			m.ToolCallID = call
			if script[1]%2 == 0 {
				m.ID = chat.ResultID(fmt.Sprint("m", script[1]%8), call)
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
		whole, made := Repair(messages)
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
		again, more := Repair(whole)
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
		var stored []chat.Message
		known := map[string]int64{}
		for _, m := range oneOfEach(scripted(before)) {
			known[m.ID]++
			stored = append(stored, m)
		}
		input := scripted(script)
		after := stored
		open := []string{"c1"} // for the first run that comes
		for round := range 2 {
			var m Merge
			var err error
			if c := (Client{Open: open}); replace {
				m, err = c.Replace(after, input)
			} else {
				m = c.Append(known, input)
				m.Same = len(after)
			}
			if err != nil {
				return
			}
			if round == 1 && (len(m.Add) > 0 || m.Same < len(after)) {
				t.Fatalf("sent again it adds %v and leaves the first %d", m.Add, m.Same)
			}
			after, open = applied(t, after, m, stored), nil
			for _, s := range after {
				known[s.ID]++
			}
		}
	})
}

// applied is the thread after a merge, which it holds to what a client may do.
func applied(t *testing.T, before []chat.Message, m Merge, server []chat.Message) (after []chat.Message) {
	t.Helper()
	ids := map[string]bool{}
	for _, s := range before[:m.Same] {
		after = append(after, s)
		ids[s.ID] = true
	}
	for _, added := range m.Add {
		if ids[added.ID] {
			t.Fatalf("%s stands there twice", added.ID)
		}
		ids[added.ID] = true
		own := slices.ContainsFunc(server, func(s chat.Message) bool { return equal(s, added) })
		if !own && added.Role != chat.User && (added.Role != chat.Tool || added.ToolCallID != "c1") {
			t.Fatalf("the client said %s as %s", added.ID, added.Role)
		}
		after = append(after, added)
	}
	return after
}
