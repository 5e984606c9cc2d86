package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/urfave/cli/v2"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerrest"
)

// trackerElsewhere is a tracker behind a URL, and somebody who types commands about it.
type trackerElsewhere struct {
	t    *testing.T
	e    *embedded
	env  map[string]string
	cfg  Config
	mu   sync.Mutex
	used map[string]bool // routes
	// away is how many requests are not answered.
	away int
	// after, if not nil, is called when a route was answered.
	after func(route string)
}

// newTrackerElsewhere serves a tracker to whoever has the token of a member, with all scopes.
func newTrackerElsewhere(t *testing.T) *trackerElsewhere {
	t.Helper()
	st, err := openState(filepath.Join(t.TempDir(), "elsewhere"))
	must(t, err)
	cfg, err := readConfig(t, "", nil)
	must(t, err)
	db, err := openStore(t.Context(), Config{State: st.dir}, true, quiet)
	must(t, err)
	e, err := openEmbedded(t.Context(), cfg, db, quiet)
	must(t, err)
	w := &trackerElsewhere{t: t, e: e, cfg: Config{State: filepath.Join(t.TempDir(), "state")}, used: map[string]bool{}}
	w.cfg.Policy = state{w.cfg.State}.policy()
	server := httptest.NewServer(w)
	t.Cleanup(func() { server.Close(); must(t, errors.Join(e.Close(context.Background()), db.Close())) })
	w.env = map[string]string{envTrackerURL: server.URL, envTrackerToken: w.file("local.token", "local")}
	return w
}

func (w *trackerElsewhere) file(name, body string) string {
	path := filepath.Join(w.t.TempDir(), name)
	must(w.t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

// ServeHTTP notes which route it is, and lets in who says which member it is.
func (w *trackerElsewhere) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, slug, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	route := r.Method + " " + w.e.rest.Find(chi.NewRouteContext(), r.Method, r.URL.Path)
	w.mu.Lock()
	w.used[route] = true
	away := w.away > 0
	w.away--
	w.mu.Unlock()
	if away {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	who := caller{tracker.Caller{Slug: slug, Scopes: access.Scopes()}, tracker.Human}
	w.e.rest.ServeHTTP(rw, r.WithContext(who.as(r.Context())))
	if w.after != nil {
		w.after(route)
	}
}

// try types a command.
func (w *trackerElsewhere) try(args ...string) (stdout, stderr string, err error) {
	return typed(w.t, w.cfg, program{}, "from standard input\n", w.env, append([]string{"tracker"}, args...)...)
}

// do types a command that succeeds, and returns the first word that it prints.
func (w *trackerElsewhere) do(args ...string) string {
	w.t.Helper()
	out, said, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, said)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return word
}

// Everything that can be asked of a tracker over REST is asked by a command.
func TestH_28_EveryRouteHasACommand(t *testing.T) {
	w := newTrackerElsewhere(t)
	report, into := w.file("report.txt", "all is well"), filepath.Join(t.TempDir(), "out.txt")
	w.do("init", "team", "--person", "alice")
	w.do("project", "create", "other", "--key", "OT", "--description", "-")
	w.do("project", "list")
	w.do("project", "show", "other")
	w.do("project", "update", "other", "--archived")
	w.do("member", "create", "coder", "--capability", "coding")
	w.do("member", "list", "--kind", "agent")
	w.do("member", "show", "coder")
	w.do("member", "update", "coder", "--name", "The coder")
	w.do("member", "status", "here")
	w.do("member", "heartbeat", "--busy")
	w.do("chat", "create", "two", "--member", "local", "--member", "coder")
	w.do("chat", "list")
	w.do("chat", "show", "two")
	w.do("chat", "update", "two", "--name", "Two")
	for _, title := range []string{"First", "Second", "Third"} {
		w.do("task", "create", "team", title)
	}
	w.do("task", "list", "--ready")
	w.do("task", "show", "TE-1")
	w.do("task", "update", "TE-1", "--label", "a", "--description", "-")
	w.do("task", "depend", "TE-2", "TE-1")
	w.do("task", "undepend", "TE-2", "TE-1")
	w.do("task", "watch", "TE-1", "--member", "alice")
	w.do("task", "unwatch", "TE-1", "--member", "alice")
	w.do("task", "take", "TE-1")
	w.do("task", "release", "TE-1", "--reason", "later")
	w.do("task", "take", "TE-1")
	w.do("task", "reject", "TE-1", "it cannot be done")
	w.do("task", "assign", "TE-2", "coder")
	w.do("task", "activity", "TE-1")
	w.do("task", "delete", "TE-3")
	w.do("step", "add", "TE-1", "Look")
	w.do("step", "list", "TE-1")
	w.do("step", "show", "TE-1", "0")
	w.do("step", "done", "TE-1", "0")
	w.do("step", "delete", "TE-1", "0")
	comment := w.do("message", "comment", "TE-1", "@coder look")
	message := w.do("message", "send", "two", "hello")
	w.do("message", "reply", message, "hello yourself")
	w.do("message", "show", message)
	w.do("message", "list", "--chat", "two")
	w.do("message", "list", "--task", "TE-1")
	w.do("message", "list", "--thread", message)
	file := w.do("file", "upload", report, "--task", "TE-1")
	w.do("file", "upload", report, "--message", comment)
	w.do("file", "list", "--task", "TE-1")
	w.do("file", "list", "--message", comment)
	w.do("file", "list", "--project", "team")
	w.do("file", "download", file, "--output", into)
	if body, err := os.ReadFile(into); err != nil || string(body) != "all is well" {
		t.Errorf("downloaded %q, %v", body, err)
	}
	w.parked()

	// What another route does as well.
	same := map[string]string{"DELETE /tasks/{id}/dependencies": "DELETE /tasks/{id}/dependencies/{blocker}"}
	for _, r := range trackerrest.Routes() {
		route := r.Method + " " + r.Path
		if !w.used[route] && !w.used[same[route]] {
			t.Errorf("no command asks %s", route)
		}
	}
}

// parked has an agent leave an event alone until it is parked, and sends that again.
func (w *trackerElsewhere) parked() {
	w.t.Helper()
	local := w.env[envTrackerToken]
	w.env[envTrackerToken] = w.file("coder.token", "coder")
	w.do("member", "heartbeat")
	first := ""
	for range tracker.MaxTries {
		out, _, err := w.try("event", "list", "--json")
		must(w.t, err)
		var page tracker.Page[tracker.EventOut]
		must(w.t, json.Unmarshal([]byte(out), &page))
		first = page.Items[0].ID
		for _, e := range page.Items[1:] {
			w.do("event", "ack", e.ID)
		}
	}
	if _, said, err := w.try("event", "list"); err != nil || !strings.Contains(said, "no events wait") {
		w.t.Errorf("after %d tries: %v\n%s", tracker.MaxTries, err, said)
	}
	w.env[envTrackerToken] = local
	if row := w.do("event", "parked", "coder"); !strings.HasSuffix(row, first) {
		w.t.Errorf("parked %q, want %s", row, first)
	}
	w.do("event", "redrive", "coder", first)
	if _, said, _ := w.try("event", "parked", "coder"); !strings.Contains(said, "no events are parked") {
		w.t.Errorf("still parked: %s", said)
	}
}

// A person sets a tracker up with commands, twice over if need be.
func TestH_27_InitMakesWhatIsNotThere(t *testing.T) {
	w := newTrackerElsewhere(t)
	for i, made := range [][]string{{"person", "project", "chat"}, {}} {
		out, _, err := w.try("init", "team-board", "--key", "TB", "--person", "alice", "--chat", "talk", "--json")
		must(t, err)
		var b beginning
		must(t, json.Unmarshal([]byte(out), &b))
		if b.Person.Slug != "alice" || b.Person.Kind != tracker.Human || b.Project.Key != "TB" || b.Chat.Slug != "talk" || b.Chat.Project.Slug != "team-board" {
			t.Errorf("made %+v", b)
		}
		if fmt.Sprint(b.Made) != fmt.Sprint(made) {
			t.Errorf("time %d made %v, want %v", i, b.Made, made)
		}
		if last := b.Next[len(b.Next)-1]; !strings.HasPrefix(last, "curl -H ") || !strings.Contains(last, "$(cat "+w.env[envTrackerToken]+")") {
			t.Errorf("next %q", last)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"init", "team-board", "--key", "XX"}, `project "team-board" has the key TB, not "XX": a key never changes`},
		{[]string{"init", "other", "--person", "bot"}, `member "bot" is an agent`},
	} {
		if c.args[3] == "bot" {
			w.do("member", "create", "bot")
		}
		if _, _, err := w.try(c.args...); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
}

// What members wrote does not act on the terminal of who reads it, and looks like none of
// hutch's own lines.
func TestTrackerTextsAreShownAsTheyAre(t *testing.T) {
	w := newTrackerElsewhere(t)
	w.do("init")
	ctx, evil := t.Context(), "a\x1b[2J\u202egnp.exe"
	seat := w.e.board.For(everything().Caller)
	task, err := seat.CreateTask(ctx, tracker.CreateTask{Project: "team", Title: "T\u202eitle", Description: "one\nTE-9  done\x1b]0;x\x07", Labels: []string{"l\u202eabel"}})
	must(t, err)
	_, err = seat.AddStep(ctx, task.Key, tracker.AddStep{Title: "s\u202etep"})
	must(t, err)
	m, err := seat.SendMessage(ctx, tracker.SendMessage{TaskID: task.Key, Content: evil + "\nhutch: error: gone\r\u009b31m"})
	must(t, err)
	for _, args := range [][]string{
		{"task", "list"}, {"task", "show", task.Key}, {"task", "activity", task.Key}, {"task", "follow", task.Key, "--until", "todo"},
		{"step", "list", task.Key}, {"message", "list", "--task", task.Key}, {"message", "show", m.ID},
	} {
		out, _, err := w.try(args...)
		must(t, err)
		if strings.ContainsAny(out, "\x1b\x07\r\u202e\u009b") {
			t.Errorf("%v acts on the terminal: %q", args, out)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "hutch:") || strings.HasPrefix(line, "TE-9") {
				t.Errorf("%v has a line that is not its own: %q", args, line)
			}
		}
	}
}

// A refusal of the tracker is one line with a hint, and an exit code that says of which kind
// it is.
func TestTrackerRefusals(t *testing.T) {
	for _, c := range []struct {
		code string
		want int
	}{
		{tracker.CodeUnauthorized, exitDenied}, {tracker.CodeForbidden, exitDenied}, {tracker.CodeInvalid, exitUsage}, {tracker.CodeBadRequest, exitUsage},
		{tracker.CodeTooLarge, exitUsage}, {tracker.CodeAmbiguous, exitUsage}, {tracker.CodeNotFound, exitFailed}, {tracker.CodeTaken, exitFailed},
		{tracker.CodeBlocked, exitFailed}, {tracker.CodeUnavailable, exitFailed}, {"what is not known", exitFailed},
	} {
		var said transcript
		err := trackerError(fmt.Errorf("asked: %w", tracker.Errorf(c.code, "it is\nso").Next("see list_tasks\x1b[m")))
		if got := report(&said, err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.code, got, c.want)
		}
		if want := "hutch: error: it is; so\nhutch: hint: see \"hutch tracker task list\"\\x1b[m\n"; said.String() != want {
			t.Errorf("%s: %q, want %q", c.code, said.String(), want)
		}
	}
	if err := trackerError(tool.ErrTimeout); !errors.Is(err, tool.ErrTimeout) {
		t.Errorf("what is no refusal became %v", err)
	}
}

// Each command of the tracker has a help with an example that it can run as it stands there.
func TestEveryTrackerCommandHasExamples(t *testing.T) {
	var look func(path string, commands []*cli.Command)
	look = func(path string, commands []*cli.Command) {
		for _, c := range commands {
			here := path + " " + c.Name
			_, examples, ok := strings.Cut(c.Description, "examples:\n")
			if !ok || !strings.Contains(examples, "  $ "+here) && !strings.Contains(examples, "| "+here) {
				t.Errorf("%s has no example of itself", here)
			}
			if len(c.Subcommands) == 0 && !strings.HasPrefix(c.UsageText, here+" ") {
				t.Errorf("%s is used as %q", here, c.UsageText)
			}
			names := map[string]bool{}
			for _, f := range c.Flags {
				names[f.Names()[0]] = true
			}
			if len(c.Subcommands) == 0 && (!names[flagJSON] || !names[flagState] || !names[flagConfig]) {
				t.Errorf("%s lacks a flag: %v", here, names)
			}
			look(here, c.Subcommands)
		}
	}
	look("hutch tracker", trackerCommands(program{}))
}

// What stands in a trail is told in words.
func TestChangesOf(t *testing.T) {
	for _, c := range []struct {
		action, changes, want string
	}{
		{"created", `null`, "created"},
		{"status_changed", `{"status":{"from":"todo","to":"done"}}`, "status changed: status todo -> done"},
		{"assigned", `{"assignee":{"from":null,"to":"coder"}}`, "assigned: assignee coder"},
		{"unassigned", `{"assignee":{"from":"coder","to":null}}`, "unassigned: assignee coder -> none"},
		{"step_updated", `{"title":{"from":"a","to":"a"},"done":{"from":false,"to":true},"index":{"from":0,"to":0}}`, "step updated: title a, done false -> true"},
		{"updated", `{"labels":{"from":["a"],"to":["a","b"]},"title":{"from":"x","to":"y\nz"}}`, "updated: labels a -> a, b, title x -> y; z"},
		{"updated", `{"description":{"from":"` + strings.Repeat("x", 300) + `","to":"y"}}`, "updated: description " + strings.Repeat("x", mostChange-1) + "… -> y"},
	} {
		a := tracker.Activity{Action: c.action}
		must(t, json.Unmarshal([]byte(c.changes), &a.Changes))
		if got := changesOf(a); got != c.want {
			t.Errorf("%s: %q, want %q", c.changes, got, c.want)
		}
	}
}
