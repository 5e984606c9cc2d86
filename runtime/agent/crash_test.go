package agent_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
)

// H-16: a process that ends in the middle of a call leaves a trace of it, and nobody
// carries it out once more.
func TestH_16_CrashesInACall(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   agent.Input // of the run that crashes
		made string
	}{
		{"a call", agent.Input{}, "put {}"},
		{"one that was allowed", resumed(answered("m1:c1:ask", `{"approved":true}`)), "!rm {\"path\":\"x\"}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b *bench
			crashes := func(context.Context, tool.Call) (tool.Result, error) {
				b.store.Fail = func(session.Change) error { return errors.New("the process has ended") }
				return tool.Text("done"), nil
			}
			if tt.in.Resume != nil {
				b = askedBench(t, text("lost"), text("ok"))
				b.tools.have["rm"], b.tools.made = crashes, nil
			} else {
				b = newBench(t, calls("c1 put {}"), text("ok"))
				b.tools.have["put"] = crashes
			}
			b.run("crash", "go", tt.in)
			b.restart()
			b.store.Fail = nil
			b.model.rounds = []says{text("ok")}
			if out := b.turn("after", "and?", tt.in); !strings.HasSuffix(out, "END success") {
				t.Error(out)
			}
			want(t, "called", b.made(), tt.made)
			saw := ""
			for _, m := range b.model.asked[len(b.model.asked)-1].Messages {
				saw += shown(m) + "\n"
			}
			if !strings.Contains(saw, "m1:c1:result tool: There is no result") {
				t.Errorf("the model saw\n%s", saw)
			}
		})
	}
}

// E3-22: a question is kept by the store that hutch ships, with its call.
func TestE3_22_QuestionsAreKeptInSQL(t *testing.T) {
	b := newBench(t, calls(`c1 rm {"n":1.50, "s":"é"}`), text("ok"))
	b.tools.have["rm"] = asks("removed")
	path := filepath.Join(t.TempDir(), "db")
	reopen := func() *store.DB {
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b.sql = db
		return db
	}
	closeAll := func(db *store.DB) {
		b.restart()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	db := reopen()
	events := b.run("r1", "hi", agent.Input{})
	asked := events[len(events)-1].(event.RunFinished).Outcome.Interrupts[0].ID
	closeAll(db)
	db = reopen()
	defer closeAll(db)
	out := b.turn("r2", "", resumed(answered(asked, `{"approved":true}`)))
	if !strings.HasPrefix(out, "m1:c1:result = removed\n") {
		t.Error(out)
	}
	want(t, "called", b.made(), "rm {\"n\":1.50, \"s\":\"é\"}\n!rm {\"n\":1.50, \"s\":\"é\"}")
}

// FuzzAnswers has models say anything: clients can take what comes of it, and each call
// has one result, or is the client's, or waits for a person.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{"tthc0c1a0a1S", "ra0tc0tE", "c0a0l", "c0c0c1L", " t E", "c2c3c2E", "f", "c1c2c1c3E", "x"} {
		f.Add(s, "t")
	}
	f.Fuzz(func(t *testing.T, said, then string) {
		const most = 300 // pieces: what is longer only takes longer
		said, then = said[:min(len(said), most)], then[:min(len(then), most)]
		b := newBench(t, anything(said), anything(then), text("ok"), text("ok"))
		b.tools.have["rm"] = asks("removed")
		in := agent.Input{Functions: []event.Tool{{Name: "confirm"}}}
		events := b.run("r", "hi", in)
		b.run("r2", "on", in)
		result, open := map[string]int{}, map[string]bool{}
		for _, e := range events {
			switch e := e.(type) {
			case event.ToolCallStart:
				result[e.ToolCallID] += 0
			case event.ToolCallResult:
				result[e.ToolCallID]++
			case event.RunFinished:
				for _, id := range e.Outcome.PendingToolCallIDs {
					open[id] = true
				}
				for _, i := range e.Outcome.Interrupts {
					open[i.ToolCallID] = true
				}
			case event.RunError:
				for id, n := range result {
					open[id] = n == 0
				}
			}
		}
		for id, n := range result {
			if n > 1 || (n == 1) == open[id] {
				t.Errorf("call %s has %d results, and open is %v\n%s", id, n, open[id], told(events))
			}
		}
	})
}

// anything is a round that a string spells.
func anything(said string) says {
	names := []string{"get", "put", "rm", "confirm", "other"}
	return func(_ context.Context, _ chat.Request, yield func(chat.Delta, error) bool) {
		index := 0
		for i, c := range said {
			var d chat.Delta
			var err error
			switch {
			case c >= '0' && c <= '4':
				index = int(c - '0')
				continue
			case c == 'c':
				d.Call = &chat.CallDelta{Index: i, ID: said[i:min(i+2, len(said))], Name: names[index]}
			case c == 'a':
				d.Call = &chat.CallDelta{Index: max(i-2, 0), Name: "put", Arguments: `{"n":1}`}
			case c == 'b':
				d.Call = &chat.CallDelta{Index: index, Name: "put", Arguments: `{`}
			case c == 'r':
				d.Reasoning = "hm"
			case c == ' ':
				d.Text = " "
			case c == 'E':
				d.Stop = chat.StopEnd
			case c == 'L':
				d.Stop = chat.StopLength
			case c == 'F':
				d.Stop = chat.StopFilter
			case c == 'x':
				err = chat.ErrCut
			default:
				d.Text = string(c)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}
