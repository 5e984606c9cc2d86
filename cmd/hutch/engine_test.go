package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/session"
)

// someTools are tools that wait until their context ends, ask, or say who called.
type someTools []string

func (s someTools) List(tool.Caller) (all []tool.Spec) {
	for _, name := range s {
		all = append(all, tool.Spec{Name: name})
	}
	return all
}

func (s someTools) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	switch call.Name {
	case "waits":
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	case "asks":
		return tool.Result{}, &tool.AskError{Tool: "asks"}
	case "paint":
		return tool.Result{Content: tool.Text("painted").Content, Meta: json.RawMessage(`{"ag-ui/state":` + string(call.Arguments) + `}`)}, nil
	}
	return tool.Text(strings.Join([]string{c.Face, c.Principal, c.Agent, c.Conversation, c.RunID}, " ")), nil
}

// An agent has the tools of its profile, and nothing else by any name.
func TestProfiles(t *testing.T) {
	all := someTools{"note_add", "note_list", "text_stats", "fetch"}
	for _, c := range []struct {
		patterns []string
		want     []string
	}{
		{nil, all},
		{[]string{"note_*"}, []string{"note_add", "note_list"}},
		{[]string{"*_*s*"}, []string{"note_list", "text_stats"}},
		{[]string{"fetch", "text_stats"}, []string{"text_stats", "fetch"}},
		{[]string{"fet"}, nil},
		{[]string{"*"}, all},
	} {
		p := profile{next: all, names: c.patterns, timeout: time.Minute}
		var got []string
		for _, s := range p.List(tool.Caller{}) {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.patterns, got, c.want)
		}
		for _, name := range append(slices.Clone(all), "alias") {
			_, err := p.Call(t.Context(), tool.Caller{}, tool.Call{Name: name})
			if has := len(c.patterns) == 0 || slices.Contains(c.want, name); has == errors.Is(err, tool.ErrNotFound) {
				t.Errorf("%v: %s: %v", c.patterns, name, err)
			}
		}
	}
}

// A call takes no longer than its agent gives it, and who keeps no thread asks nobody.
func TestProfilesBoundCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := profile{next: someTools{"waits", "asks"}, timeout: 5 * time.Second}
		begun := time.Now()
		_, err := p.Call(t.Context(), tool.Caller{}, tool.Call{Name: "waits"})
		if !errors.Is(err, tool.ErrTimeout) || time.Since(begun) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		var ask *tool.AskError
		if _, err := p.Call(t.Context(), tool.Caller{}, tool.Call{Name: "asks"}); errors.As(err, &ask) || !errors.Is(err, tool.ErrDenied) {
			t.Errorf("stateless: %v", err)
		}
		p.asks = true
		if _, err := p.Call(t.Context(), tool.Caller{}, tool.Call{Name: "asks"}); !errors.As(err, &ask) {
			t.Errorf("with threads: %v", err)
		}
	})
}

// testEngine has agents over tools and no store but memory's: the state folder's.
func testEngine(t *testing.T, tools someTools, agents string) *engine {
	t.Helper()
	cfg, err := readConfig(t, agents, nil)
	must(t, err)
	st, err := openState(filepath.Join(t.TempDir(), "state"))
	must(t, err)
	db, err := openStore(t.Context(), Config{State: st.dir}, true, quiet)
	must(t, err)
	e, err := openEngine(t.Context(), cfg, program{env: func(string) string { return "" }}, db, tools, nil, quiet)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(e.Close(), db.Close())) })
	return e
}

// ran runs a turn to its end and returns its events.
func ran(t *testing.T, v agui.Engine, in event.Input) (all []event.Event, failed error) {
	t.Helper()
	events, err := v.Run(t.Context(), in)
	if err != nil {
		return nil, err
	}
	for e, err := range events {
		if err != nil {
			failed = err
			continue
		}
		all = append(all, e)
	}
	return all, failed
}

func input(thread, run string, messages ...chat.Message) event.Input {
	return event.Input{ThreadID: thread, RunID: run, Messages: messages}
}

func says(id, text string) chat.Message {
	return chat.Message{ID: id, Role: chat.User, Content: chat.Text(text)}
}

const twoAgents = `
agents:
  one: {default: true, model: {kind: echo}}
  two: {model: {kind: echo}}
  passing: {model: {kind: echo}, history: stateless}
`

// Who mistypes the tools of an agent is told, and of nothing else.
func TestToolsOfAgentsThatAreNotThere(t *testing.T) {
	app := newTestApp(t, func(cfg *Config) {
		cfg.Agents = []*agentConfig{{Name: "one", Tools: []string{"greet", "gr*", "gret", "nots_*"}}, {Name: "all"}}
	})
	defer func() { must(t, app.Close()) }()
	must(t, writeAtomic(filepath.Join(app.cfg.Tools[0], "greet.wasm"), greeter("greet", "")))
	must(t, app.Load(t.Context()))
	var log strings.Builder
	app.log = slog.New(slog.NewTextHandler(&log, nil))
	app.warnOfAbsent(app.modules.Modules())
	got := log.String()
	for _, want := range []string{"agent=one tools=gret like=greet\n", "agent=one tools=nots_*\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the log: %s", want, got)
		}
	}
	if n := strings.Count(got, "level=WARN"); n != 2 {
		t.Errorf("%d warnings: %s", n, got)
	}
}

// Who names an agent that there is none of is told which there are.
func TestUnknownAgents(t *testing.T) {
	_, err := testEngine(t, nil, twoAgents).visit(access.Anyone(), "tow", faceAGUI)
	if f := (*event.Failure)(nil); !errors.As(err, &f) || !errors.Is(err, event.ErrNotFound) || f.Message != `there is no agent "tow": there are one, two, passing` {
		t.Errorf("found: %v", err)
	}
}

// E3-15: threads belong to a principal and an agent; the scope threads:read shows those of
// others, page by page.
func TestE3_15_ThreadsOfAgents(t *testing.T) {
	e := testEngine(t, nil, twoAgents)
	visit := func(who access.Identity, name string) visitor {
		v, err := e.visit(who, name, faceAGUI)
		must(t, err)
		return v
	}
	ann, ben := access.Identity{Principal: "ann"}, access.Identity{Principal: "ben"}
	for i, id := range []string{"a", "b", "c"} {
		_, err := ran(t, visit(ann, "one"), input(id, "r", says("m"+id, strings.Repeat("x", i))))
		must(t, err)
	}
	_, err := ran(t, visit(ben, "one"), input("a", "r", says("m", "mine")))
	must(t, err)
	_, err = ran(t, visit(ann, "two"), input("d", "r", says("m", "hi")))
	must(t, err)
	for _, c := range []struct {
		v    visitor
		want string
	}{{visit(ann, ""), "c b a"}, {visit(ben, "one"), "a"}, {visit(ann, "two"), "d"}, {visit(ann, "passing"), ""}, {visit(access.Anyone(), "one"), "a c b a"}} {
		var got []string
		q := agui.ThreadsQuery{Limit: 2}
		for {
			page, err := c.v.Threads(t.Context(), q)
			must(t, err)
			for _, thread := range page.Threads {
				got = append(got, thread.ID)
			}
			if q.After = page.Next; q.After == "" || len(page.Threads) == 0 {
				break
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s of %s: %v, want %s", c.v.cfg.Name, c.v.who.Name, got, c.want)
		}
	}
	if _, err := visit(ben, "one").Thread(t.Context(), "b", agui.MessagesQuery{Limit: 9}); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("a thread of another: %v", err)
	}
	var failed *event.Failure
	if _, err := visit(ann, "one").Threads(t.Context(), agui.ThreadsQuery{Limit: 2, After: "nonsense"}); !errors.As(err, &failed) || failed.Code != event.CodeInvalid {
		t.Errorf("a cursor of nobody: %v", err)
	}
	if _, err := ran(t, visit(ann, "two"), input("a", "r2", says("m2", "x"))); !errors.As(err, &failed) || failed.Code != event.CodeInvalid {
		t.Errorf("another agent's thread: %v", err)
	}
}

// H-15, C-36: what is wrong with an input is said before anything runs.
func TestH_15_C_36_InputsOfAgents(t *testing.T) {
	e := testEngine(t, nil, twoAgents)
	v, err := e.visit(access.Anyone(), "", faceAGUI)
	must(t, err)
	_, err = ran(t, v, input("t", "r", says("m", "x")))
	must(t, err)
	props := input("t", "r3")
	props.ForwardedProps = json.RawMessage(`{"historyMode":"forget"}`)
	for code, in := range map[string]event.Input{
		session.CodeDuplicateRun: input("t", "r", says("m", "y")),
		event.CodeInvalid:        props,
	} {
		var failed *event.Failure
		if events, err := ran(t, v, in); len(events) > 0 || !errors.As(err, &failed) || failed.Code != code {
			t.Errorf("%s: %v %v", code, events, err)
		}
	}
}

// C-28: a client that sends its history is told what it lacks of the thread's; one that
// sends only what is new is not.
func TestC_28_ClientsLearnWhatTheyMissed(t *testing.T) {
	stored := func(ids ...string) (all []session.Stored) {
		for _, id := range ids {
			all = append(all, session.Stored{Message: says(id, "stored")})
		}
		return all
	}
	sent := func(ids ...string) (all []chat.Message) {
		for _, id := range ids {
			all = append(all, says(id, "sent"))
		}
		return all
	}
	for _, c := range []struct {
		name   string
		sent   []chat.Message
		stored []session.Stored
		want   string
	}{
		{"all known", sent("1", "2", "3"), stored("1", "2", "3"), ""},
		{"one is missing", sent("1", "3"), stored("1", "2", "3"), "1 2 3"},
		{"older than what is compared", sent("0", "1", "3"), stored("1", "2", "3"), "0 1 2 3"},
		{"only new ones", sent("3", "4"), stored("1", "2", "3", "4"), ""},
		{"nothing in common", sent("8", "9"), stored("1", "2"), ""},
	} {
		var got []string
		for _, m := range missed(c.sent, c.stored) {
			got = append(got, m.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// A state that says nothing leaves the thread's.
func TestEmptyStatesAreNone(t *testing.T) {
	for text, none := range map[string]bool{"": true, "null": true, "{}": true, " { } ": true, `{"a":1}`: false, "[]": false, "0": false} {
		if got := said(json.RawMessage(text)); (got == nil) != none {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// A state of the size of a request takes no more memory than that: as values, one of empty
// objects has thirty times its size.
func TestLargeStatesAreNotDecoded(t *testing.T) {
	state := json.RawMessage("[" + strings.Repeat("{},", 1000) + "{}]")
	if n := testing.AllocsPerRun(10, func() { said(state) }); n > 10 {
		t.Errorf("%v allocations for a state of 1001 values", n)
	}
}

// H-19: a run takes no longer than its agent gives it.
func TestH_19_RunsOfAgentsAreBounded(t *testing.T) {
	script := t.TempDir() + "/script.yaml"
	must(t, writeAtomic(script, []byte("- call: {tool: waits, args: {}}\n")))
	e := testEngine(t, someTools{"waits"}, "agents:\n  a: {model: {script: "+script+"}, limits: {wall: 200ms}}\n")
	v, err := e.visit(access.Anyone(), "a", faceAGUI)
	must(t, err)
	events, err := ran(t, v, input("t", "r", says("m", "x")))
	must(t, err)
	if last, ok := events[len(events)-1].(event.RunError); !ok || last.Code != event.CodeTimeout {
		t.Errorf("ended with %+v", events[len(events)-1])
	}
}

// H18: a request of nobody gets nothing of an agent, whatever it asks for.
func TestH18_NobodyReachesAgents(t *testing.T) {
	e := testEngine(t, nil, twoAgents)
	face := agui.New(e.opener(faceAGUI), agui.Options{})
	for _, path := range []string{"POST /agui", "GET /agui/capabilities", "GET /agui/threads", "GET /agui/threads/t", "GET /agui/threads/t/events", "POST /agui/threads/t/cancel"} {
		method, target, _ := strings.Cut(path, " ")
		r := httptest.NewRequest(method, target, strings.NewReader(`{"threadId":"t","runId":"r","messages":[]}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		face.ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if _, err := e.kept.Thread(t.Context(), session.Principal{}, session.Ref{ID: "t"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a thread of nobody: %v", err)
	}
}
