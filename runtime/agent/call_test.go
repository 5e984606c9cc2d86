package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/session"
)

// E3-11, C-44: what goes wrong with a call is told to the model, and the run goes on.
func TestE3_11_FailuresOfToolsAreResults(t *testing.T) {
	huge := strings.Repeat("x", 33<<10)
	for _, tt := range []struct {
		name, call string
		do         func(context.Context, tool.Call) (tool.Result, error)
		want       string
		runs       bool
	}{
		{"unknown", `c other {}`, nil, `{"error":{"code":"not_found","message":"Tool not found: other","hint":"call only tools that you were offered, by their exact names"}}`, true},
		{"broken JSON", `c put {"a":`, nil, `{"error":{"code":"invalid_arguments","message":"not carried out: the arguments are no JSON object: unexpected end of JSON input","hint":"call it again with one"}}`, false},
		{"no object", `c put [1]`, nil, `{"error":{"code":"invalid_arguments","message":"not carried out: the arguments are no JSON object: found is [1]","hint":"call it again with one"}}`, false},
		{"two objects", `c put {}{}`, nil, `{"error":{"code":"invalid_arguments","message":"not carried out: the arguments are no JSON object: invalid character '{' after top-level value","hint":"call it again with one"}}`, false},
		{"schema", `c put {}`, breaks(fmt.Errorf("%w: /a: found nothing, allowed is a string", tool.ErrInvalid)), `{"error":{"code":"invalid_arguments","message":"invalid arguments: /a: found nothing, allowed is a string","hint":"call it again with arguments that fit its schema"}}`, true},
		{"denied", `c put {}`, breaks(fmt.Errorf("put %w", tool.ErrDenied)), `{"error":{"code":"denied","message":"put denied","hint":"do not try again; use another tool, or tell the person"}}`, true},
		{"timeout", `c put {}`, breaks(tool.ErrTimeout), `{"error":{"code":"timeout","message":"timeout","hint":"ask for less, or try again once"}}`, true},
		{"a deadline of its own", `c put {}`, breaks(context.DeadlineExceeded), `{"error":{"code":"timeout","message":"context deadline exceeded","hint":"ask for less, or try again once"}}`, true},
		{"cancelled by somebody else", `c put {}`, breaks(context.Canceled), `{"error":{"code":"cancelled","message":"context canceled","hint":"it may have been carried out or not: find out before you try again"}}`, true},
		{"one that is unavailable", `c put {}`, breaks(tool.ErrUnavailable), `{"error":{"code":"unavailable","message":"unavailable","hint":"try again once"}}`, true},
		{"failed", `c put {}`, breaks(errors.Join(tool.ErrFailed)), `{"error":{"code":"tool_failed","message":"tool failed","hint":"use another tool, or other arguments"}}`, true},
		{"what the tool says is wrong", `c put {}`, func(context.Context, tool.Call) (tool.Result, error) { return tool.Failed("no such file"), nil }, `{"error":{"code":"tool_error","message":"no such file"}}`, true},
		{"nothing", `c put {}`, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }, `[done; there is no output]`, true},
		{"structured", `c put {}`, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Structured: []byte(`{"n":1.50}`), Content: tool.Text("one and a half").Content}, nil
		}, `{"n":1.50}`, true},
		{"H-19: long", `c put {}`, gives(huge), huge[:32<<10-78] + "\n[cut: the rest of the result is not shown; ask for less, or for a part of it]", true},
		{"a long failure", `c put {}`, breaks(fmt.Errorf("%w: %s", tool.ErrFailed, huge)), `{"error":{"code":"tool_failed","message":"tool failed: ` + huge[:4<<10-13] + `… (29709 bytes more)","hint":"use another tool, or other arguments"}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, calls(tt.call), text("ok"))
			if tt.do != nil {
				b.tools.have["put"] = tt.do
			}
			out := b.turn("r", "hi", agent.Input{})
			if !strings.Contains(out, "\nm1:c:result = "+tt.want+"\n-round 1") || !strings.HasSuffix(out, "m2 says ok\n-round 2\nEND success") {
				t.Errorf("got\n%s", out)
			}
			if ran := len(b.tools.made) == 1; ran != tt.runs {
				t.Errorf("called: %v", b.tools.made)
			}
		})
	}
}

// What is no failure of a tool ends the run, with a code and without its text.
func TestE3_11_FailuresOfHutchEndTheRun(t *testing.T) {
	panics := func(context.Context, tool.Call) (tool.Result, error) { panic("secret") }
	for _, tt := range []struct {
		name string
		do   func(context.Context, tool.Call) (tool.Result, error)
		want string
	}{
		{"an error that nobody knows", breaks(errors.New("secret")), "ERROR internal: a tool failed inside hutch: its log says why"},
		{"a panic", panics, "ERROR internal: a tool failed inside hutch: its log says why"},
		{"unavailable again and again", breaks(tool.ErrUnavailable), "ERROR unavailable: the tools are not available: try again later"},
	} {
		for _, name := range []string{"put", "get"} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				b := newBench(t, calls("c1 "+name+" {}", "c2 "+name+" {}"), calls("c3 "+name+" {}"), text("not reached"))
				b.tools.have[name] = tt.do
				out := b.turn("r", "hi", agent.Input{})
				if !strings.HasSuffix(out, tt.want) || strings.Contains(out, "secret") || strings.Contains(out, "reached") {
					t.Errorf("got\n%s", out)
				}
				if tt.want[6:8] == "in" && name == "put" && len(b.tools.made) != 1 {
					t.Errorf("called %v", b.tools.made)
				}
			})
		}
	}
}

// What ends the run ends the calls that are made at the same time.
func TestAFailureEndsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, calls("c1 getslow {}", "c2 get {}"))
		b.tools.have["getslow"], b.tools.have["get"] = (&gate{}).tool(time.Minute), breaks(errors.New("secret"))
		began := time.Now()
		out := b.turn("r", "hi", agent.Input{})
		if took := time.Since(began); took != 0 || !strings.HasSuffix(out, "ERROR internal: a tool failed inside hutch: its log says why") {
			t.Errorf("after %s\n%s", took, out)
		}
		b.restart()
	})
}

// A run whose context has ended says so and nothing else: it asks no model, and carries
// out nothing.
func TestContextsThatHaveEnded(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	fails := func(_ context.Context, _ chat.Request, yield func(chat.Delta, error) bool) {
		stop()
		yield(chat.Delta{}, chat.ErrUnavailable)
	}
	b := newBench(t, fails, text("no"))
	a, err := agent.New(b.model, b.tools, b.o)
	if err != nil {
		t.Fatal(err)
	}
	allowed := resumed(answered("i", `{"approved":true}`))
	allowed.Open = []event.Interrupt{{ID: "i", Reason: "tool_call", ToolCallID: "c1", Metadata: json.RawMessage(`{"tool":"put","arguments":"{}","message":"m"}`)}}
	for _, in := range []agent.Input{{}, {}, allowed} {
		if _, err := a.Run(ctx, &fakeTurn{}, in); err != context.Canceled { //nolint:errorlint // it is not to be wrapped in what came of the cancellation
			t.Errorf("got %v", err)
		}
	}
	if len(b.model.asked) != 1 || len(b.tools.made) > 0 {
		t.Errorf("asked %d times, called %v", len(b.model.asked), b.tools.made)
	}
}

// A tool that is there again takes back what was counted.
func TestUnavailableNowAndThen(t *testing.T) {
	b := newBench(t, calls(`c1 bad {"a":1}`), calls("c2 put {}"), calls(`c3 bad {"a":2}`), calls(`c4 bad {"a":3}`, "c5 put {}"), text("ok"))
	b.tools.have["bad"] = breaks(tool.ErrUnavailable)
	if out := b.turn("r", "hi", agent.Input{}); !strings.HasSuffix(out, "END success") {
		t.Error(out)
	}
}

// gate lets tools wait for each other.
type gate struct {
	mu        sync.Mutex
	now, most int
}

func (g *gate) tool(d time.Duration) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		g.mu.Lock()
		g.now++
		g.most = max(g.most, g.now)
		g.mu.Unlock()
		defer func() { g.mu.Lock(); g.now--; g.mu.Unlock() }()
		select {
		case <-time.After(d):
			return tool.Text(string(c.Arguments)), nil
		case <-ctx.Done():
			return tool.Result{}, fmt.Errorf("%w: %w", tool.ErrCancelled, ctx.Err())
		}
	}
}

// Calls that only read are carried out at the same time, others one after the other; the
// results are in the order of the calls.
func TestCallsAtTheSameTime(t *testing.T) {
	for _, tt := range []struct {
		name     string
		calls    []string
		parallel int
		most     int
		took     time.Duration
	}{
		{"all read", []string{`c1 get {"n":1}`, `c2 get {"n":2}`, `c3 get {"n":3}`}, 0, 3, time.Second},
		{"bounded", []string{`c1 get {"n":1}`, `c2 get {"n":2}`, `c3 get {"n":3}`}, 2, 2, 2 * time.Second},
		{"one writes", []string{`c1 get {"n":1}`, `c2 put {"n":2}`, `c3 get {"n":3}`}, 0, 1, 3 * time.Second},
		{"an unknown one", []string{`c1 get {"n":1}`, `c2 other {"n":2}`, `c3 get {"n":3}`}, 0, 1, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, calls(tt.calls...), text("ok"))
				g := &gate{}
				b.tools.have["get"], b.tools.have["put"] = g.tool(time.Second), g.tool(time.Second)
				b.o.Parallel = tt.parallel
				began := time.Now()
				out := b.turn("r", "hi", agent.Input{})
				if took := time.Since(began); g.most != tt.most || took != tt.took {
					t.Errorf("%d at once, in %s", g.most, took)
				}
				one, three := strings.Index(out, "m1:c1:result = {\"n\":1}"), strings.Index(out, "m1:c3:result = {\"n\":3}")
				if one < 0 || three < one {
					t.Error(out)
				}
				b.restart()
			})
		})
	}
}

// C-38: an explicit cancel ends tools and model at once, and what was done is kept.
func TestC_38_CancelEndsToolsAndModel(t *testing.T) {
	hangs := func(ctx context.Context, _ chat.Request, yield func(chat.Delta, error) bool) {
		if yield(chat.Delta{Text: "I beg"}, nil) {
			<-ctx.Done()
			yield(chat.Delta{}, ctx.Err())
		}
	}
	endless := func(ctx context.Context, _ chat.Request, yield func(chat.Delta, error) bool) {
		for yield(chat.Delta{Text: "on "}, nil) {
			time.Sleep(time.Second)
		}
	}
	for _, tt := range []struct {
		name   string
		rounds []says
		want   string
	}{
		{"tools in a row", []says{calls(`c0 put {}`, `c1 slow {}`, `c2 put {"not":"reached"}`), text("no")}, "m1:c0:result tool: done"},
		{"with a question", []says{calls(`c0 rm {}`, `c1 getslow {}`), text("no")}, "m1 assistant [c0 rm {}] [c1 getslow {}]"},
		{"tools at once", []says{calls(`c0 get {}`, `c1 getslow {}`, `c2 get {}`), text("no")}, "m1:c2:result tool: got"},
		{"the model", []says{calls(`c0 put {}`), hangs}, "m2 assistant incomplete: I beg"},
		{"a model that does not listen", []says{calls(`c0 put {}`), endless}, "m2 assistant incomplete: on "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, tt.rounds...)
				b.tools.have["rm"] = asks("removed")
				g := &gate{}
				b.tools.have["slow"], b.tools.have["getslow"] = g.tool(time.Hour), g.tool(time.Hour)
				s := b.submit("r", "hi", agent.Input{})
				defer s.Close()
				synctest.Wait()
				if err := b.keep.Cancel(context.Background(), session.Principal{Name: "ann"}, session.Ref{Owner: "ann", ID: "t"}, "r"); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				var last event.Event
				for {
					i, err := s.Next(context.Background())
					if err != nil {
						break
					}
					if i.Event != nil {
						last = i.Event
					}
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %s", took)
				}
				if e, ok := last.(event.RunFinished); !ok || e.Outcome.Type != event.Cancelled {
					if e, ok := last.(event.RunError); !ok || e.Code != event.CodeCancelled {
						t.Errorf("ended with %+v", last)
					}
				}
				if strings.Contains(b.made(), "reached") {
					t.Errorf("called %v", b.tools.made)
				}
				if !strings.Contains(b.history(), tt.want) || strings.HasSuffix(b.history(), "no") {
					t.Errorf("kept is\n%s", b.history())
				}
				b.restart()
			})
		})
	}
}

// A tool that may change something is not called before it is kept that it will be.
func TestWritesAreKeptBefore(t *testing.T) {
	for name, commits := range map[string]int{"get": 3, "put": 4} { // beginning, (before,) after, end
		b := newBench(t, calls("c "+name+" {}"), text("ok"))
		n, before := 0, ""
		b.store.Committed = func(session.Change) { n++ }
		do := b.tools.have[name]
		b.tools.have[name] = func(ctx context.Context, c tool.Call) (tool.Result, error) {
			before = b.history()
			return do(ctx, c)
		}
		b.turn("r", "hi", agent.Input{})
		if n != commits || strings.Contains(before, "[c "+name) != (name == "put") {
			t.Errorf("%s: %d commits, and before the call there was\n%s", name, n, before)
		}
	}
}

// E3-12: the same call again and again is told to the model, then refused.
func TestE3_12_RepeatedCalls(t *testing.T) {
	again := func(i int) says { return calls(fmt.Sprintf(`c%d get {"a":1, "b":[2]}`, i)) }
	b := newBench(t, again(1), calls(`c2 get {"b":[2],"a":1}`), again(3), again(4), calls(`c5 get {"a":1,"b":[3]}`), text("ok"))
	out := b.turn("r", "hi", agent.Input{})
	if !strings.Contains(out, `m4:c4:result = {"error":{"code":"repeated_call","message":"not carried out: the same call was made 3 times before"`) {
		t.Error(out)
	}
	if len(b.tools.made) != 4 {
		t.Errorf("called %v", b.tools.made)
	}
	note := "[This was the same call 3 times."
	if strings.Contains(out, note) || strings.Contains(b.history(), note) {
		t.Error("a note that is the model's alone is kept")
	}
	for i, r := range b.model.asked {
		last := r.Messages[len(r.Messages)-1].Content.String()
		if has := strings.Contains(last, note); has != (i == 3) {
			t.Errorf("request %d ends with %q", i, last)
		}
	}
	if all := fmt.Sprint(b.model.asked[5].Messages); strings.Count(all, note) != 1 {
		t.Error("the note is forgotten, or comes twice")
	}
}

func TestE3_12_WhatIsNoLoop(t *testing.T) {
	t.Run("polling", func(t *testing.T) {
		b := newBench(t, append(times(8, calls(`c get {}`)), text("ok"))...)
		b.o.Polling = []string{"get"}
		b.turn("r", "hi", agent.Input{})
		if len(b.tools.made) != 8 {
			t.Errorf("called %v", b.tools.made)
		}
	})
	t.Run("reading after each change", func(t *testing.T) {
		b := newBench(t)
		for i := range 6 {
			b.model.rounds = append(b.model.rounds, calls(`c get {}`), calls(fmt.Sprintf(`c put {"n":%d}`, i)))
		}
		b.model.rounds = append(b.model.rounds, text("ok"))
		b.turn("r", "hi", agent.Input{})
		if len(b.tools.made) != 12 {
			t.Errorf("called %v", b.tools.made)
		}
	})
	t.Run("but after changes that failed", func(t *testing.T) {
		b := newBench(t)
		for i := range 6 {
			b.model.rounds = append(b.model.rounds, calls(`c get {}`), calls(fmt.Sprintf(`c put {"n":%d}`, i)))
		}
		b.model.rounds = append(b.model.rounds, text("ok"))
		b.tools.have["put"] = breaks(tool.ErrFailed)
		b.turn("r", "hi", agent.Input{})
		if got := strings.Count(b.made(), "get"); got != 3 {
			t.Errorf("called %v", b.tools.made)
		}
	})
	t.Run("numbers that differ", func(t *testing.T) {
		b := newBench(t)
		for i := range 6 {
			b.model.rounds = append(b.model.rounds, calls(fmt.Sprintf(`c get {"n":9007199254740993%d}`, i)))
		}
		b.model.rounds = append(b.model.rounds, text("ok"))
		b.turn("r", "hi", agent.Input{})
		if len(b.tools.made) != 6 {
			t.Errorf("called %v", b.tools.made)
		}
	})
	t.Run("but changing the same", func(t *testing.T) {
		b := newBench(t)
		for range 6 {
			b.model.rounds = append(b.model.rounds, calls(`c get {}`), calls(`c put {}`))
		}
		b.model.rounds = append(b.model.rounds, text("ok"))
		b.o.Repeats = 2
		b.turn("r", "hi", agent.Input{})
		if got := strings.Count(b.made(), "put"); got != 2 {
			t.Errorf("called %v", b.tools.made)
		}
	})
}
