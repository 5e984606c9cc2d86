package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/session"
)

func testMate(t *testing.T, more string) *mate {
	t.Helper()
	coder, _ := turnEngine(t, more).named("coder")
	return &mate{slug: "coder", agent: coder, told: newMetrics(), log: quiet, lang: "en"}
}

func turnFor(id, attempt, text string) router.Turn {
	return router.Turn{Thread: "task:1", RunID: "item-" + id + "-" + attempt, Title: "TE-1", Text: text, Item: router.Item{ID: id, Interrupted: attempt != "1"}, Task: tracker.TaskOut{ID: "1", Key: "TE-1"}}
}

// E0-4: a run that ended well, of which the inbox was not told because the program died, is
// not run again.
func TestE0_04_ARunThatTheInboxWasNotToldOf(t *testing.T) {
	m := testMate(t, "")
	must(t, m.Run(t.Context(), turnFor("a", "1", "who")))
	must(t, m.Run(t.Context(), turnFor("a", "2", "who")))
	must(t, m.Run(t.Context(), turnFor("b", "2", "who"))) // of another item, which has had none
	if err := m.Run(t.Context(), turnFor("c", "1", "fail")); err == nil || errors.Is(err, router.ErrNotBegun) {
		t.Errorf("a model that fails: %v", err)
	}
	if err := m.Run(t.Context(), turnFor("c", "2", "fail")); err == nil {
		t.Error("one that failed is taken for done")
	}
	who := session.Principal{Name: access.Local}
	runs, err := m.agent.keeper.Runs(t.Context(), who, session.Ref{Owner: who.Name, ID: "task:1"}, 9)
	must(t, err)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	if got := strings.Join(ids, " "); got != "item-c-2 item-c-1 item-b-2 item-a-1" {
		t.Errorf("runs: %s", got)
	}
}

// A turn goes on for a while when the agent is to stop, and is no failure then.
func TestTurnsAtTheEndOfACrew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		late, stop := afterwards(ctx, 3*time.Second)
		cancel()
		begun := time.Now()
		<-late.Done()
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("it ended after %v", took)
		}
		stop()
		late, stop = afterwards(t.Context(), time.Hour)
		stop()
		<-late.Done()
	})
	m := testMate(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Run(ctx, turnFor("a", "1", "who")); err != nil { // there is time for it
		t.Error(err)
	}
}

// A turn that finds no room is handed over again.
func TestTurnsOfACrewThatFindNoRoom(t *testing.T) {
	m := testMate(t, "runs: {at_once: 1, queue: 1}")
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan event.Event, 100), make(chan error, 3)
	go func() {
		_, err := m.agent.turn(ctx, agentTurn{Thread: "x", RunID: "x", Prompt: "wait"}, func(e event.Event) { begun <- e })
		ended <- err
	}()
	<-begun
	for _, id := range []string{"y", "z"} {
		go func() {
			_, err := m.agent.turn(ctx, agentTurn{Thread: id, RunID: id, Prompt: "wait"}, nil)
			ended <- err
		}()
	}
	if err := <-ended; !errors.Is(err, session.ErrBusy) { // one of the two waits
		t.Error(err)
	}
	if err := m.Run(t.Context(), turnFor("a", "1", "who")); !errors.Is(err, router.ErrNotBegun) {
		t.Errorf("%v, want that it was not begun", err)
	}
	cancel()
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// What an agent does is a line for people, or for programs.
func TestTrails(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	tell := func(asJSON bool) string {
		var out bytes.Buffer
		tr := &trail{out: &out, json: asJSON, now: func() time.Time { return at }}
		see := tr.turn(trailLine{Agent: "coder", Task: "TE-1", Thread: "task:1", Run: "r"})
		for _, e := range []event.Event{
			event.TextMessageStart{MessageID: "m"}, event.TextMessageContent{MessageID: "m", Delta: "I "}, event.TextMessageContent{MessageID: "m", Delta: "begin\n\x1b[31mnow."}, event.TextMessageEnd{MessageID: "m"},
			event.TextMessageStart{MessageID: "n"}, event.TextMessageEnd{MessageID: "n"},
			event.ToolCallStart{ToolCallID: "c", ToolCallName: "take_task"}, event.ToolCallArgs{ToolCallID: "c", Delta: `{"task_id":`}, event.ToolCallArgs{ToolCallID: "c", Delta: `"TE-1"}`}, event.ToolCallEnd{ToolCallID: "c"},
		} {
			see(e)
		}
		tr.tell(trailLine{Agent: "coder", What: trailTask, Task: "TE-1", Text: "done"})
		tr.tell(trailLine{Agent: "coder", What: trailTask, Task: "TE\n\x1b[2J", Text: "done"})
		return out.String()
	}
	if got := tell(false); got != "03:04:05  coder  TE-1  said  I begin; \\x1b[31mnow.\n"+
		"03:04:05  coder  TE-1  take_task  {\"task_id\":\"TE-1\"}\n03:04:05  coder  TE-1  done\n03:04:05  coder  TE; \\x1b[2J  done\n" {
		t.Errorf("people read\n%s", got)
	}
	var kinds []string
	for line := range strings.Lines(tell(true)) {
		var l trailLine
		must(t, json.Unmarshal([]byte(line), &l))
		kinds = append(kinds, l.What+" "+l.Tool+" "+l.Run)
	}
	if got := strings.Join(kinds, ", "); got != "said  r, called take_task r, task  , task  " {
		t.Errorf("programs read %s", got)
	}
	var none *trail
	none.tell(trailLine{})
	if none.turn(trailLine{}) != nil {
		t.Error("nobody watches, and events are looked at")
	}
}

// An agent.json goes before the configuration; without a tracker there is nothing to do.
func TestWhereAnAgentIsToBe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.json")
	must(t, os.WriteFile(file, []byte(`{"slug": "karl", "name": "Karl", "token": "t0ken", "tracker_url": "https://t.example/api/v1", "task_listen": "all", "capabilities": []}`), 0o600))
	const two = "agents:\n  coder: {default: true, tracker: {capabilities: [go], chat: none}}\n  deaf: {tracker: {tasks: none, chat: none}}\n"
	var said bytes.Buffer
	cfg, err := readConfig(t, two, nil)
	must(t, err)
	s, err := cfg.seatOf("", file, &voice{w: &said})
	must(t, err)
	a := cfg.Agents[0]
	if s.agent != "coder" || s.slug != "karl" || s.name != "Karl" || cfg.Tracker.URL != "https://t.example/api/v1" ||
		a.Tracker.Tasks != listenAll || a.Tracker.Chat != listenNone || a.Tracker.Capabilities == nil || len(a.Tracker.Capabilities) != 0 {
		t.Errorf("%+v, %+v", s, a.Tracker)
	}
	none := func(string) string { return "" }
	if token, err := cfg.trackerOf("coder").token(none); err != nil || token.Reveal() != "t0ken" {
		t.Errorf("token %v, %v", token, err)
	}
	if wrong := cfg.checkTracker(none); len(wrong) > 0 {
		t.Errorf("%v", wrong)
	}
	if token, err := cfg.trackerOf("deaf").token(none); err == nil {
		t.Errorf("another agent has the token %v", token)
	}
	for _, c := range []struct{ name, more, want string }{
		{"", "", "there is no tracker to work with: tracker.url is not set"},
		{"nobody", "", `there is no agent "nobody": there are coder, deaf`},
		{"deaf", "tracker: {url: \"https://t.example/api/v1\"}\n", `agent "deaf": it listens to neither tasks nor chats`},
	} {
		cfg, err := readConfig(t, two+c.more, nil)
		must(t, err)
		if _, err := cfg.seatOf(c.name, "", &voice{w: &said}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// Each agent may have a token of its own for a tracker elsewhere.
func TestTokensOfAgentsElsewhere(t *testing.T) {
	cfg, err := readConfig(t, "tracker: {url: \"https://t.example/api/v1\", token_env: ALL}\nagents:\n  a: {default: true, tracker: {token_env: MINE}}\n  b: {}\n", nil)
	must(t, err)
	env := func(name string) string { return map[string]string{"ALL": "for-all", "MINE": "for-a"}[name] }
	for agent, want := range map[string]string{"a": "for-a", "b": "for-all", "": "for-all"} {
		if got, err := cfg.trackerOf(agent).token(env); err != nil || got.Reveal() != want {
			t.Errorf("%s: %q, %v", agent, got.Reveal(), err)
		}
	}
	if wrong := cfg.checkTracker(env); len(wrong) > 0 {
		t.Errorf("%v", wrong)
	}
	if wrong := cfg.checkTracker(func(name string) string { return map[string]string{"ALL": "x"}[name] }); len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "agents.a.tracker: ") {
		t.Errorf("without its own: %v", wrong)
	}
	if _, err := readConfig(t, "agents:\n  a: {tracker: {token_env: A, token_file: b}}\n", nil); err == nil {
		t.Error("two places of a token are taken")
	}
}

// warm has what programs of these tests compiled, so that each module is compiled once for
// all of them.
var warm warmth

// warmth keeps compiled code between tests.
type warmth struct {
	mu  sync.Mutex
	dir string // made when something is first kept
}

// lend puts what is kept into a state folder that is new.
func (w *warmth) lend(t *testing.T, state string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	must(t, os.Mkdir(state, 0o700))
	if w.dir != "" {
		must(t, copyNew(w.dir, filepath.Join(state, "cache", "compiled")))
	}
}

// keep takes what a state folder has more. A program that still runs there may be about to
// change it, which is no harm: what is not whole is not used.
func (w *warmth) keep(state string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		dir, err := os.MkdirTemp("", "hutch-warm-")
		if err != nil {
			return // it takes longer
		}
		w.dir = dir
	}
	_ = copyNew(filepath.Join(state, "cache", "compiled"), w.dir) // likewise
}

// close removes what was kept.
func (w *warmth) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	return os.RemoveAll(w.dir)
}

// copyNew copies the files below a folder that are not below another.
func copyNew(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		there := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(there, 0o700)
		}
		if _, err := os.Stat(there); err == nil || !d.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(there, body, 0o600)
	})
}
