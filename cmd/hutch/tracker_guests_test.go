package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// asksTracker is a module whose tool asks a tracker for one thing.
func asksTracker(name, body string, scopes ...string) []byte {
	wanted, err := json.Marshal(scopes)
	if err != nil {
		panic(err)
	}
	return dialecttest.Module{
		Tools:    []tool.Spec{dialecttest.Spec(name)},
		Requests: tool.Requests{abi.OpTracker.Capability(): wanted},
		Do:       []dialecttest.Step{dialecttest.Op(abi.OpTracker, 1, body)},
	}.Bytes()
}

// dropAskers drops modules that ask a tracker, and grants each what it asks for.
func (s *served) dropAskers(t *testing.T, scopes []string, bodies map[string]string) {
	t.Helper()
	var entries, files []string
	for name, body := range bodies {
		file := name + ".wasm"
		s.drop(t, file, asksTracker(name, body, scopes...))
		grant := fmt.Sprintf("grant: {tracker: [%q]}", strings.Join(scopes, `", "`))
		entries = append(entries, strings.Replace(letting(s.awaitModule(t, file), ""), "grant: {http: []}", strings.ReplaceAll(grant, `\"`, `"`), 1))
		files = append(files, file)
	}
	s.decideAll(t, entries...)
	s.awaitReadyModule(t, files...)
}

// C-43: a module tries another path of the tracker, another agent, and
// the token. It is refused, the log says so, and it sees no token.
func TestC_43_GuestsGetNoFurther(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	log := &transcript{}
	s := startServer(t, cfg, p, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer s.halt(t)
	s.person(t, "").setUp("first", "second")
	s.dropAskers(t, []string{tracker.TasksRead, tracker.TasksTake}, map[string]string{
		"mine":     `{"method":"POST","path":"/tasks/TB-1/take","body":{}}`,
		"another":  `{"method":"POST","path":"/tasks/TB-2/take","body":{"agent_slug":"boss"}}`,
		"shut":     `{"method":"POST","path":"/projects","body":{"slug":"mine"}}`,
		"scope":    `{"method":"GET","path":"/members"}`,
		"up":       `{"method":"GET","path":"/tasks/../members"}`,
		"escaped":  `{"method":"GET","path":"/tasks/%2e%2e%2fmembers"}`,
		"host":     `{"method":"GET","path":"//evil.test/tasks"}`,
		"header":   `{"method":"GET","path":"/tasks","headers":{"Authorization":"Bearer x"}}`,
		"metrics":  `{"method":"GET","path":"/metrics"}`,
		"describe": `{"method":"GET","path":"/openapi.json"}`,
	})
	text := s.admit(t, "coder")
	s.person(t, s.admit(t, "boss", tracker.TasksRead)).does("GET", "/tasks", nil, nil)
	c := s.clientOf(t, "2026-07-28", text)
	defer c.close(t)
	for name, want := range map[string]string{
		"mine": `"assignee_slug":"coder"`, "another": `"status":403`, "shut": "is open to no module", "scope": "needs the scope members:read",
		"up": "leads elsewhere", "escaped": "leads elsewhere", "host": "is empty", "header": "not as it must be", "metrics": "is open to no module",
		"describe": "is open to no module",
	} {
		got := c.says(t, name)
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if strings.Contains(got, text[len(text)-26:]) {
			t.Errorf("%s shows the token", name)
		}
	}
	var task tracker.TaskOut
	s.person(t, s.admit(t, "reader", tracker.TasksRead)).does("GET", "/tasks/TB-2", nil, &task)
	if task.AssigneeSlug != nil {
		t.Errorf("TB-2 is %s's", *task.AssigneeSlug)
	}
	if strings.Contains(log.String(), text[len(text)-26:]) {
		t.Error("the token is in the log")
	}
	for _, want := range []string{
		`tool=another principal=coder agent="" asked="POST /tasks/TB-2/take" scope=tasks:take`, `asked="POST /projects"`,
		`asked="GET /members" scope=members:read`, `asked="GET /metrics"`, `asked="GET /openapi.json"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not have %s", want)
		}
	}
}

// What is granted for one project reaches into no other, on the board as well.
func TestP13_ScopesOfAProject(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t)
	local := s.person(t, "")
	local.setUp("first")
	local.does("POST", "/projects", values{"slug": "other"}, nil)
	local.does("POST", "/tasks", values{"project_slug": "other", "title": "theirs"}, nil)
	s.dropAskers(t, []string{"steps:write@team-board"}, map[string]string{
		"here":  `{"method":"POST","path":"/tasks/TB-1/steps","body":{"title":"think"}}`,
		"there": `{"method":"POST","path":"/tasks/OT-1/steps","body":{"title":"think"}}`,
		"read":  `{"method":"GET","path":"/tasks/TB-1"}`,
	})
	var others tracker.Page[tracker.TaskOut]
	if local.does("GET", "/tasks?project_id=other", nil, &others); len(others.Items) != 1 || others.Items[0].Key != "OT-1" {
		t.Fatalf("%+v", others)
	}
	session, _ := s.connect(t)
	defer closeSession(t, session)
	c := client{ClientSession: session}
	for name, want := range map[string]string{"here": `"status":201`, "there": "is granted for the project team-board only", "read": "needs the scope tasks:read"} {
		if got := c.says(t, name); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A scope that only adds to what routes of others do ends at its project too: where those are
// open for more projects than it is, nothing is added.
func TestScopesThatAddEndAtTheirProject(t *testing.T) {
	for granted, want := range map[string]bool{
		"tasks:write tasks:assign":                                true,
		"tasks:write@ours tasks:assign@ours":                      true,
		"tasks:write@ours tasks:take@ours tasks:assign@ours":      true,
		"tasks:write@ours tasks:assign":                           true,
		"tasks:read tasks:write@ours tasks:assign@ours":           true,
		"tasks:write tasks:assign@ours":                           false,
		"tasks:write@ours tasks:write@theirs tasks:assign@ours":   false,
		"tasks:write@ours tasks:take tasks:assign@ours":           false,
		"tasks:write@ours tasks:write@theirs tasks:assign@theirs": false,
	} {
		for _, adds := range []string{tracker.TasksAssign, tracker.TasksForce} {
			scopes := strings.Fields(strings.ReplaceAll(granted, tracker.TasksAssign, adds))
			if got := slices.Contains(boardScopes(scopes), adds); got != want {
				t.Errorf("%v: %s %v, want %v", scopes, adds, got, want)
			}
		}
	}
}

// recordingTracker is a tracker that is not in this program, and what it was asked.
func recordingTracker(t *testing.T, answer http.HandlerFunc) (change func(*Config), token string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("first-token\n"), 0o600))
	return func(cfg *Config) { cfg.Tracker = trackerConfig{URL: server.URL + "/t/v1", TokenFile: file} }, file
}

// A tracker elsewhere is asked with its token, which may change, and again if it fails in
// passing. This program has none then.
func TestTrackerElsewhere(t *testing.T) {
	var asked []string
	change, file := recordingTracker(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization"))
		if len(asked) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		echo := ""
		if r.URL.Path != "/t/v1/tasks" {
			echo = r.Header.Get("Authorization")
		}
		_, _ = fmt.Fprintf(w, `{"items":[],"echo":%q}`, echo)
	})
	s := startServe(t, change)
	defer s.halt(t)
	if status, _ := s.get(t, trackerPath+"/tasks"); status != 404 {
		t.Errorf("there is a tracker here: %d", status)
	}
	s.dropAskers(t, []string{tracker.TasksRead}, map[string]string{
		"list": `{"method":"GET","path":"/tasks","query":{"status":"todo"}}`, "echo": `{"method":"GET","path":"/tasks/T-1"}`,
	})
	session, _ := s.connect(t)
	defer closeSession(t, session)
	c := client{ClientSession: session}
	if got := c.says(t, "list"); !strings.Contains(got, `"status":200`) {
		t.Errorf("%s", got)
	}
	must(t, os.WriteFile(file, []byte("second-token\n"), 0o600))
	c.says(t, "list")
	const path = "GET /t/v1/tasks?status=todo Bearer "
	if want := []string{path + "first-token", path + "first-token", path + "second-token"}; strings.Join(asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if got := c.says(t, "echo"); !strings.Contains(got, "tracker_unavailable") || strings.Contains(got, "second") {
		t.Errorf("a tracker that sends the token back: %s", got)
	}
	must(t, os.Remove(file))
	if got := c.says(t, "list"); !strings.Contains(got, "tracker_unavailable") || strings.Contains(got, "token") {
		t.Errorf("without a token: %s", got)
	}
}

// A command beside the owner of the state folder asks its tracker, and where there is no
// owner, the one in the folder.
func TestTrackerOfACommand(t *testing.T) {
	s := startServe(t, nil)
	s.person(t, "").setUp("first")
	s.dropAskers(t, []string{tracker.TasksRead, tracker.TasksTake}, map[string]string{"take": `{"method":"POST","path":"/tasks/TB-1/take","body":{}}`})
	takes := func(when string) {
		t.Helper()
		_, p := newTestConfig(t, nil)
		app, err := NewApp(s.app.cfg, p, quiet, false)
		must(t, err)
		must(t, app.Load(t.Context()))
		r, err := app.tools.Call(t.Context(), localCaller(""), tool.Call{Name: "take", Arguments: json.RawMessage(`{}`)})
		if err != nil || !strings.Contains(string(r.Structured), `"assignee_slug":"local"`) {
			t.Errorf("%s: %s, %v", when, r.Structured, err)
		}
		must(t, app.Close())
	}
	takes("beside its owner")
	s.halt(t)
	takes("without an owner")
}
