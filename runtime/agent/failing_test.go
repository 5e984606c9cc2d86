package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
)

var errTurn = errors.New("the turn takes no more")

// failingTurn takes so many things, fails with the next one, and counts what comes then.
type failingTurn struct {
	fakeTurn
	left, late int
}

func (f *failingTurn) takes() error {
	switch {
	case f.left > 0:
		f.left--
		return nil
	case f.left == 0:
		f.left--
		return errTurn
	}
	f.late++
	return errTurn
}

func (f *failingTurn) Emit(e event.Event) error {
	if err := f.takes(); err != nil {
		return err
	}
	return f.fakeTurn.Emit(e)
}

func (f *failingTurn) Add(m chat.Message) error {
	if err := f.takes(); err != nil {
		return err
	}
	return f.fakeTurn.Add(m)
}

func (f *failingTurn) Commit(ctx context.Context, jobs ...event.Job) error {
	if err := f.takes(); err != nil {
		return err
	}
	return f.fakeTurn.Commit(ctx, jobs...)
}

// Whatever a turn does not take ends the run with that very error: nothing is said, kept
// or carried out behind it. A tool that changes something is not called before the turn has
// kept that it will be.
func TestTurnsThatTakeNoMore(t *testing.T) {
	question := func(id, name string) event.Interrupt {
		return event.Interrupt{ID: id, Reason: "tool_call", ToolCallID: "c" + id, Metadata: json.RawMessage(`{"tool":"` + name + `","arguments":"{}","message":"m"}`)}
	}
	in := agent.Input{
		Functions: []event.Tool{{Name: "a b"}}, State: json.RawMessage(`{"n":1}`),
		Open:   []event.Interrupt{question("i", "put"), {ID: "j", Reason: "other"}},
		Resume: []event.Resume{answered("i", `{"approved":true}`), answered("i", `{"approved":1}`), answered("stranger", `{"approved":true}`)},
	}
	seen := map[string]int{}
	for n := 0; ; n++ {
		b := newBench(t,
			deltas(append([]chat.Delta{{Reasoning: "hm"}, {Text: "I look."}, {Reasoning: "and"}}, callDeltas(`c1 put {"a":1}`, `c2 put`, `c3 get {`)...)...),
			fails(&chat.OverflowError{Which: chat.OverflowContext}),
			calls(`c4 get {}`, `c5 get {"n":1}`),
			deltas(chat.Delta{Text: "so"}, chat.Delta{Stop: chat.StopLength}),
		)
		b.o.StateTools = []string{"put"}
		b.tools.have["put"] = givesResult(tool.Result{Content: tool.Text("done").Content, Meta: json.RawMessage(`{"ag-ui/state":{"n":` + fmt.Sprint(n+2) + `}}`)})
		a, err := agent.New(b.model, b.tools, b.o)
		if err != nil {
			t.Fatal(err)
		}
		turn := &failingTurn{left: n}
		turn.messages = []chat.Message{{ID: "u1", Role: chat.User, Content: chat.Text("x")}, {ID: "u2", Role: chat.User, Content: chat.Text("y")}}
		_, err = a.Run(t.Context(), turn, in)
		if turn.left >= 0 { // it took all there is
			if err != nil || n < 40 || len(b.tools.made) != 5 {
				t.Errorf("%d things, called %v, %v", n, b.tools.made, err)
			}
			break
		}
		if !errors.Is(err, errTurn) || turn.late > 0 {
			t.Errorf("thing %d: %v, and %d things came later\n%s", n, err, turn.late, told(turn.events))
		}
		seen[fmt.Sprint(turn.commits, " commits")] = max(seen[fmt.Sprint(turn.commits, " commits")], len(b.tools.made))
	}
	// One commit with what a person allowed, one before the round that writes, one behind it.
	if seen["0 commits"] != 1 || seen["1 commits"] != 1 || seen["2 commits"] != 3 {
		t.Errorf("calls made by then: %v", seen)
	}
}

// What another view of the conversation would not help is asked once.
func TestOnlyLongConversationsAreNarrowed(t *testing.T) {
	for name, err := range map[string]error{
		"unavailable": chat.ErrUnavailable, "answer": &chat.OverflowError{Which: chat.OverflowAnswer}, "request": &chat.OverflowError{Which: chat.OverflowRequest},
		"own deadline": context.DeadlineExceeded, "own end": context.Canceled,
	} {
		b := newBench(t, text("hi"), fails(err), text("twice"))
		b.turn("r1", "one", agent.Input{})
		out := b.turn("r2", "two", agent.Input{})
		if len(b.model.asked) != 2 || !strings.Contains(out, "ERROR ") || strings.Contains(out, "internal") {
			t.Errorf("%s: asked %d times\n%s", name, len(b.model.asked), out)
		}
	}
}

// A bound of the run bounds an answer where there is no other.
func TestTheRunBoundsItsAnswers(t *testing.T) {
	b := newBench(t, costing(chat.Usage{TotalTokens: 60}, callDeltas(`c put {}`)...), text("ok"))
	b.o.MaxTokens = 100
	b.turn("r", "hi", agent.Input{})
	if one, two := b.model.asked[0].MaxTokens, b.model.asked[1].MaxTokens; one != 100 || two != 40 {
		t.Errorf("at most %d and %d tokens", one, two)
	}
}

// A run that has come to its end by the time its context does has come to its end.
func TestEndsCountBeforeTheContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	b := newBench(t, text("ok"))
	a, err := agent.New(b.model, b.tools, b.o)
	if err != nil {
		t.Fatal(err)
	}
	turn := &stoppingTurn{stop: stop}
	if _, err := a.Run(ctx, turn, agent.Input{}); err != nil || ctx.Err() == nil {
		t.Errorf("%v, context %v", err, ctx.Err())
	}
}

// stoppingTurn ends its context with the last thing that it takes.
type stoppingTurn struct {
	fakeTurn
	stop context.CancelFunc
}

func (s *stoppingTurn) Emit(e event.Event) error {
	if _, ok := e.(event.StepFinished); ok {
		s.stop()
	}
	return s.fakeTurn.Emit(e)
}

// A change of the state that is none is refused, and said so.
func TestChangesThatAreNone(t *testing.T) {
	for _, change := range []string{`null`, `[]`, `1`} {
		b := newBench(t, calls("c put {}"), text("ok"))
		b.o.StateTools = []string{"put"}
		b.tools.have["put"] = givesResult(tool.Result{Content: tool.Text("done").Content, Meta: json.RawMessage(`{"ag-ui/state":` + change + `}`)})
		out := b.turn("r", "hi", agent.Input{State: json.RawMessage(`{"n":1}`)})
		if strings.Count(out, "\nstate ") != 0 || !strings.Contains(out, "state {") || strings.Contains(out, "state changes") {
			t.Errorf("%s: %s", change, out)
		}
	}
}
