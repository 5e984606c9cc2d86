package tail

import (
	"fmt"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
)

// Whatever a runner emits, what is kept of it and closed is what a client takes, and says
// what was streamed.
func FuzzE3_03_Tail(f *testing.F) {
	f.Add([]byte{0, 1, 8, 16, 2, 9, 3, 11, 19, 4})
	f.Add([]byte{5, 0, 3, 6, 8, 14, 22, 30, 38})
	f.Fuzz(func(t *testing.T, script []byte) {
		tl := New(1 << 20)
		var live []event.Event
		for _, b := range script {
			if e := emitted(b); tl.Put(e) == nil {
				live = append(live, e)
			}
		}
		for _, e := range tl.Closings(true) {
			if err := tl.Put(e); err != nil {
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
