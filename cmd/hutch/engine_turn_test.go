package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
)

// turnScript answers, fails, asks, waits, or says who called.
const turnScript = `
- match: {tool: who}
  say: "called by ${result}"
- match: {role: tool}
  say: "${result}"
- match: {text: '^who'}
  call: {tool: who, args: {}}
- match: {text: '^ask'}
  call: {tool: asks, args: {}}
- match: {text: '^wait'}
  call: {tool: waits, args: {}}
- match: {text: '^fail'}
  fail: {as: unavailable, text: "no model today"}
- say: "done: ${text}"
`

func turnEngine(t *testing.T, more string) *engine {
	t.Helper()
	file := filepath.Join(t.TempDir(), "turns.yaml")
	must(t, os.WriteFile(file, []byte(turnScript), 0o600))
	return testEngine(t, someTools{"who", "asks", "waits"}, more+`
agents:
  coder: {default: true, model: {kind: script, script: `+file+`}}
  tester: {model: {kind: script, script: `+file+`}}
`)
}

// A turn ends as its run does, whatever that is.
func TestTurnsEndAsTheirRunsDo(t *testing.T) {
	e := turnEngine(t, "")
	coder, _ := e.named("coder")
	for prompt, c := range map[string]struct {
		text, code string
		asks       int
	}{
		"do it": {text: "done: do it"},
		"who":   {text: "called by tracker local coder task-who run-who"},
		"fail":  {code: event.CodeUnavailable},
		"ask":   {asks: 1},
	} {
		end, err := coder.turn(t.Context(), agentTurn{Thread: "task-" + prompt, RunID: "run-" + prompt, Title: "T", Prompt: prompt}, nil)
		var failed *event.Failure
		if c.code != "" {
			if !errors.As(err, &failed) || !strings.Contains(failed.Message, "no model today") && failed.Code != c.code {
				t.Errorf("%s: %v", prompt, err)
			}
			continue
		}
		if err != nil || end.Text != c.text && c.asks == 0 || len(end.Asks) != c.asks {
			t.Errorf("%s: %+v, %v", prompt, end, err)
		}
	}
	ref := session.Ref{Owner: access.Local, ID: "task-do it"}
	runs, err := coder.keeper.Runs(t.Context(), session.Principal{Name: access.Local}, ref, 9)
	must(t, err)
	if len(runs) != 1 || runs[0].Trigger != session.ByEvent || runs[0].Agent != "coder" {
		t.Errorf("kept: %+v", runs)
	}
}

// E0-4: a turn that is handed over twice is run once.
func TestE0_04_TheSameTurnTwiceIsOneRun(t *testing.T) {
	e := turnEngine(t, "")
	coder, _ := e.named("coder")
	calls := 0
	for range 2 {
		end, err := coder.turn(t.Context(), agentTurn{Thread: "task-1", RunID: "r1", Prompt: "who"}, func(ev event.Event) {
			if ev.Type() == event.TypeRunStarted {
				calls++
			}
		})
		if err != nil || end.Text != "called by tracker local coder task-1 r1" {
			t.Fatalf("%+v, %v", end, err)
		}
	}
	who := session.Principal{Name: access.Local}
	runs, err := coder.keeper.Runs(t.Context(), who, session.Ref{Owner: who.Name, ID: "task-1"}, 9)
	must(t, err)
	stored, err := coder.keeper.Messages(t.Context(), who, session.Ref{Owner: who.Name, ID: "task-1"}, "", 99)
	must(t, err)
	if len(runs) != 1 || len(stored) != 4 || calls != 2 {
		t.Errorf("%d runs, %d messages, told of a start %d times", len(runs), len(stored), calls)
	}
}

// A turn that nobody waits for is cancelled; the agent is free for the next.
func TestTurnsEndWithTheirContext(t *testing.T) {
	e := turnEngine(t, "")
	coder, _ := e.named("coder")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := coder.turn(ctx, agentTurn{Thread: "task-1", RunID: "r1", Prompt: "wait"}, func(ev event.Event) {
		if ev.Type() == event.TypeToolCallEnd {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	must(t, e.quiet(t.Context()))
	if end, err := coder.turn(t.Context(), agentTurn{Thread: "task-1", RunID: "r2", Prompt: "again"}, nil); err != nil || end.Text != "done: again" {
		t.Errorf("%+v, %v", end, err)
	}
}

// A task that goes from one agent to another is in a thread of each.
func TestTurnsOfTwoAgentsAboutOneTask(t *testing.T) {
	e := turnEngine(t, "")
	for _, name := range []string{"coder", "tester", "coder", "tester"} {
		a, _ := e.named(name)
		end, err := a.turn(t.Context(), agentTurn{Thread: "task-1", RunID: name + time.Now().Format(".000000000"), Prompt: "who"}, nil)
		if err != nil || !strings.HasPrefix(end.Text, "called by tracker local "+name+" task-1") {
			t.Errorf("%s: %+v, %v", name, end, err)
		}
	}
}

// A turn that finds no room has not begun, and may be handed over again.
func TestTurnsThatFindNoRoom(t *testing.T) {
	e := turnEngine(t, "runs: {at_once: 1, queue_per_thread: 1}")
	coder, _ := e.named("coder")
	hold, release := context.WithCancel(t.Context())
	begun, ended := make(chan event.Event, 100), make(chan error, 3)
	turn := func(id string) {
		_, err := coder.turn(hold, agentTurn{Thread: "t", RunID: id, Prompt: "wait"}, func(e event.Event) { begun <- e })
		ended <- err
	}
	go turn("1")
	<-begun
	go turn("2")
	go turn("3")
	if err := <-ended; !errors.Is(err, session.ErrBusy) { // one of the two waits
		t.Error(err)
	}
	release()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	must(t, e.quiet(t.Context()))
	for _, id := range []string{"2", "3"} {
		end, err := coder.turn(t.Context(), agentTurn{Thread: "t", RunID: id + "b", Prompt: "late"}, nil)
		if err != nil || end.Text != "done: late" {
			t.Errorf("%+v, %v", end, err)
		}
	}
}
