package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/event"
)

// E3-6: a client that lacks messages of its thread is given all of them, once and before
// anything is said; one that lacks none, or sends none of its history, is given none.
func TestE3_06_SnapshotsOfMessages(t *testing.T) {
	e := testEngine(t, nil, twoAgents)
	v, err := e.visit(access.Anyone(), "one", faceAGUI)
	must(t, err)
	turn := func(run string, known ...string) (snapshots [][]string, at int) {
		in := input("t", run)
		for _, id := range append(known, "u-"+run) {
			in.Messages = append(in.Messages, says(id, id))
		}
		all, err := ran(t, v, in)
		must(t, err)
		for i, e := range all {
			if s, ok := e.(event.MessagesSnapshot); ok {
				var ids []string
				for _, m := range s.Messages {
					ids = append(ids, m.ID)
				}
				snapshots, at = append(snapshots, ids), i
			}
		}
		if end, ok := all[len(all)-1].(event.RunFinished); !ok || end.RunID != run {
			t.Errorf("%s ended with %+v", run, all[len(all)-1])
		}
		return snapshots, at
	}
	answerOf := func(after string) string {
		h, err := v.Thread(t.Context(), "t", agui.MessagesQuery{Limit: 100})
		must(t, err)
		for i, m := range h.Messages {
			if m.ID == after {
				return h.Messages[i+1].ID
			}
		}
		t.Fatalf("no answer to %s in %+v", after, h.Messages)
		return ""
	}
	if got, _ := turn("r1"); got != nil {
		t.Errorf("a thread that begins: %v", got)
	}
	a1 := answerOf("u-r1")
	if got, _ := turn("r2", "u-r1", a1); got != nil {
		t.Errorf("all known: %v", got)
	}
	if got, _ := turn("r3"); got != nil {
		t.Errorf("only what is new: %v", got)
	}
	got, at := turn("r4", "u-r1", a1)
	want := strings.Join([]string{"u-r1", a1, "u-r2", answerOf("u-r2"), "u-r3", answerOf("u-r3"), "u-r4"}, " ")
	if len(got) != 1 || strings.Join(got[0], " ") != want || at != 1 {
		t.Errorf("%v as event %d, want %s", got, at, want)
	}
}

// C-38, E3-9: a run whose client leaves goes on, or ends, as its agent was configured.
func TestE3_09_C_38_ClientsThatLeave(t *testing.T) {
	script := t.TempDir() + "/script.yaml"
	must(t, writeAtomic(script, []byte("- match: {text: slow}\n  delay: 200ms\n- say: done\n")))
	for _, c := range []struct{ leaving, last string }{
		{"detach", "RUN_FINISHED success"},
		{"cancel", "RUN_FINISHED cancelled"},
	} {
		e := testEngine(t, nil, "agents:\n  a: {model: {script: "+script+"}, on_disconnect: "+c.leaving+"}\n")
		v, err := e.visit(access.Anyone(), "", faceAGUI)
		must(t, err)
		for e, err := range v.Run(t.Context(), input("t", "r", says("u", "slow"))) {
			must(t, err)
			if e.Type() == event.TypeRunStarted {
				break
			}
		}
		events, err := v.Events(t.Context(), "t", "r")
		must(t, err)
		var last event.Event
		for e, err := range events {
			must(t, err)
			last = e
		}
		end, ok := last.(event.RunFinished)
		if !ok || end.Outcome == nil || string(end.Type())+" "+string(end.Outcome.Type) != c.last {
			t.Errorf("%s: ended with %+v", c.leaving, last)
		}
	}
}
