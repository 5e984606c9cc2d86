package trackerproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func scopes() []string {
	return []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.StepsRead, tracker.StepsWrite, tracker.MessagesRead,
		tracker.MessagesWrite, tracker.ProjectsRead, tracker.MembersRead, tracker.MembersSelf, tracker.FilesRead, tracker.FilesWrite,
	}
}

// A site is a board with the projects ours and theirs behind a proxy, and what came to it.
type site struct {
	*testing.T
	proxy *trackerproxy.Proxy
	ann   tracker.Service
	seen  []*http.Request
	// answer, if there is one, answers in place of the board.
	answer http.HandlerFunc
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSite(t *testing.T, o trackerproxy.Options) *site {
	t.Helper()
	b := board.New(&boardtest.Memory{}, board.Options{})
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent} {
		_, err := b.Ensure(t.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
		must(t, err)
	}
	s := &site{T: t, ann: b.For(tracker.Caller{Slug: "ann", Scopes: append(scopes(), tracker.Admin, tracker.TasksAssign)})}
	for _, slug := range []string{"ours", "theirs"} {
		_, err := s.ann.CreateProject(t.Context(), tracker.CreateProject{Slug: slug, Key: strings.ToUpper(slug)})
		must(t, err)
		_, err = s.ann.CreateTask(t.Context(), tracker.CreateTask{Project: slug, Title: "of " + slug})
		must(t, err)
		_, err = s.ann.CreateChat(t.Context(), tracker.CreateChat{Slug: slug, Project: slug})
		must(t, err)
	}
	server, err := trackerrest.New(func(r *http.Request) (tracker.Service, error) {
		slug, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer token-of-")
		if !ok {
			return nil, nil
		}
		return b.For(tracker.Caller{Slug: slug, Scopes: scopes()}), nil
	}, trackerrest.Options{})
	must(t, err)
	listener := httptest.NewServer(http.StripPrefix("/api/v1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.seen = append(s.seen, r)
		if s.answer != nil {
			s.answer(w, r)
			return
		}
		server.ServeHTTP(w, r)
	})))
	t.Cleanup(listener.Close)
	base, err := url.Parse(listener.URL + "/api/v1")
	must(t, err)
	o.Account = func(_ context.Context, a trackerproxy.Access) (trackerproxy.Account, error) {
		if a.Principal == "" {
			return trackerproxy.Account{}, errors.New("nobody")
		}
		return trackerproxy.Account{Base: base, Token: "token-of-" + a.Principal}, nil
	}
	s.proxy = trackerproxy.New(o)
	return s
}

func (s *site) ask(body string, granted ...string) abi.Response {
	return s.proxy.Serve(s.Context(), trackerproxy.Access{Principal: "coder", Module: "x.wasm", Tool: "t", Scopes: granted}, abi.Request{Op: abi.OpTracker, Body: []byte(body)})
}

func request(t *testing.T, method, path string, query map[string]string, body string) string {
	t.Helper()
	raw, err := json.Marshal(abi.TrackerRequest{Method: method, Path: path, Query: query, Body: json.RawMessage(body)})
	must(t, err)
	return string(raw)
}

func (s *site) wants(r abi.Response, code abi.Code, part string) {
	s.Helper()
	if r.Code != code || !strings.Contains(string(r.Body), part) {
		s.Errorf("got %s %s, want %s with %s", r.Code, r.Body, code, part)
	}
}

func TestC_43_TheHostAddsTokenAndIdentity(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	s.wants(s.ask(`{"method":"POST","path":"/tasks/%231/take"}`, "tasks:take"), abi.OK, `"code":"ambiguous"`)
	s.wants(s.ask(`{"method":"POST","path":"/tasks/OURS-1/take","body":{}}`, "tasks:take"), abi.OK, `"assignee_slug":"coder"`)
	got := s.seen[1]
	if got.Header.Get("Authorization") != "Bearer token-of-coder" || got.Header.Get("Idempotency-Key") == "" || got.Header.Get("Idempotency-Key") == s.seen[0].Header.Get("Idempotency-Key") {
		t.Errorf("sent %v", got.Header)
	}
	s.wants(s.ask(`{"method":"GET","path":"/tasks","query":{"q":"of ours&status=done"}}`, "tasks:read"), abi.OK, `"items":[]`)
}

// A route without its scope, or with any other, is refused, and nothing is sent.
func TestC_43_EveryRouteNeedsItsScope(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	for _, r := range trackerrest.Routes() {
		if len(r.Tools) == 0 {
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(r.Path)
		if r.Path == "/tasks/{id}/dependencies" && r.Method == "DELETE" {
			continue // the same as that with the blocker in its path
		}
		others := slices.DeleteFunc(scopes(), func(scope string) bool { return scope == r.Scope })
		s.wants(s.ask(request(t, r.Method, path, nil, ""), others...), abi.Denied, "needs the scope "+r.Scope+", which is not granted")
		s.wants(s.ask(request(t, r.Method, path, nil, ""), others[0], "tasks:readx", r.Scope+"x"), abi.Denied, "needs the scope")
	}
	if len(s.seen) > 0 {
		t.Errorf("%d requests were sent", len(s.seen))
	}
}

// What has no tool because people or an agent's runtime do it is open to no module.
func TestC_43_OtherRoutesAreClosed(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	reads := []string{"/tasks/{id}/steps/{ref}", "/chats", "/chats/{id}", "/messages/{id}", "/messages/{id}/replies", "/messages/{id}/files"}
	for _, r := range trackerrest.Routes() {
		if len(r.Tools) > 0 || r.Method == "GET" && slices.Contains(reads, r.Path) {
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(r.Path)
		s.wants(s.ask(request(t, r.Method, path, nil, ""), scopes()...), abi.Denied, "is open to no module")
	}
	if len(s.seen) > 0 {
		t.Errorf("%d requests were sent", len(s.seen))
	}
}

func TestPathsThatLeadElsewhere(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	for path, want := range map[string]string{
		"": "must begin with /", "tasks": "must begin with /", "/tasks/..": "leads elsewhere", "/tasks/%2e%2e": "leads elsewhere",
		"/tasks/a%2F..": "leads elsewhere", `/tasks/a\b`: "leads elsewhere", "/tasks//steps": "is empty", "/tasks/": "is empty",
		"/tasks/a?x=y": "not escaped", "/tasks/#1": "not escaped", "/tasks/%zz": "not escaped", "/tasks/%00": "characters that are none",
		"/tasks/%ff": "characters that are none", "/tasks/" + strings.Repeat("a", 513): "has 513 bytes, at most 512",
		"/" + strings.Repeat("a/", 1024): "has 2049 bytes, at most 2048", "//evil.example/tasks": "is empty",
	} {
		s.wants(s.ask(request(t, "GET", path, nil, ""), scopes()...), abi.Invalid, want)
	}
	if len(s.seen) > 0 {
		t.Errorf("%d requests were sent", len(s.seen))
	}
}

func TestRequestsThatAreWrong(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	for body, want := range map[string]string{
		``: "not as it must be", `[]`: "not as it must be", `{"method":"GET","path":"/tasks","token":"x"}`: "not as it must be",
		`{"method":"GET","path":"/tasks"} 1`:                                                "more behind",
		`{"method":"GET","path":"/tasks","body":{}}`:                                        "a GET has no body",
		`{"method":"POST","path":"/tasks","body":[]}`:                                       "must be an object",
		`{"method":"GET","path":"/tasks","query":{"A-b":"c"}}`:                              "no parameter's name",
		`{"method":"GET","path":"/tasks","query":{"q":""}}`:                                 "q is empty",
		`{"method":"GET","path":"/tasks","query":{"q":"` + strings.Repeat("x", 513) + `"}}`: "q has 513 bytes",
		`{"method":"GET","path":"/tasks","query":{"` + strings.Repeat("x", 65) + `":"1"}}`:  "no parameter's name",
	} {
		s.wants(s.ask(body, scopes()...), abi.Invalid, want)
	}
	s.wants(s.ask(`{"method":"get","path":"/tasks"}`, scopes()...), abi.Denied, "open to no module")
	s.wants(s.proxy.Serve(t.Context(), trackerproxy.Access{}, abi.Request{Op: abi.OpHTTP}), abi.Invalid, "no operation on a tracker")
}

func TestScopesOfOneProject(t *testing.T) {
	s := newSite(t, trackerproxy.Options{})
	limited := make([]string, 0, len(scopes()))
	for _, scope := range scopes() {
		limited = append(limited, scope+"@ours")
	}
	words := func(project string) map[string]string {
		task := map[string]string{"ours": "OURS-1", "theirs": "THEIRS-1"}[project]
		m, err := s.ann.SendMessage(t.Context(), tracker.SendMessage{TaskID: task, Content: "hello"})
		must(t, err)
		c, err := s.ann.SendMessage(t.Context(), tracker.SendMessage{ChatID: project, Content: "hello"})
		must(t, err)
		f, err := s.ann.UploadFile(t.Context(), tracker.UploadFile{TaskID: task, Filename: "a.txt", Content: []byte("a")})
		must(t, err)
		g, err := s.ann.UploadFile(t.Context(), tracker.UploadFile{MessageID: c.ID, Filename: "a.txt", Content: []byte("a")})
		must(t, err)
		return map[string]string{"TASK": task, "PROJECT": project, "COMMENT": m.ID, "CHATTED": c.ID, "FILE": f.ID, "CHATFILE": g.ID}
	}
	ours, theirs := words("ours"), words("theirs")
	for _, r := range []struct{ method, path, query, body string }{
		{"GET", "/tasks", "PROJECT", ""}, {"GET", "/members", "PROJECT", ""}, {"GET", "/chats", "PROJECT", ""},
		{"POST", "/tasks", "", `{"project_slug":"PROJECT","title":"t"}`}, {"POST", "/tasks", "", `{"project_id":"PROJECT","title":"t"}`},
		{"POST", "/tasks", "", `{"project_slug":"ours","title":"t","parent_id":"TASK"}`},
		{"POST", "/tasks", "", `{"project_slug":"ours","title":"t","blocked_by":["TASK"]}`},
		{"GET", "/tasks/TASK", "", ""}, {"PATCH", "/tasks/TASK", "", `{"title":"u"}`}, {"POST", "/tasks/TASK/watchers", "", ""},
		{"POST", "/tasks/TASK/steps", "", `{"title":"s"}`}, {"GET", "/tasks/TASK/steps", "", ""}, {"POST", "/tasks/TASK/comments", "", `{"content":"c"}`},
		{"GET", "/chats/PROJECT/messages", "", ""}, {"POST", "/chats/PROJECT/messages", "", `{"content":"c"}`},
		{"POST", "/messages/COMMENT/replies", "", `{"content":"c"}`}, {"POST", "/messages/CHATTED/replies", "", `{"content":"c"}`},
		{"GET", "/projects/PROJECT", "", ""}, {"GET", "/projects/PROJECT/files", "", ""}, {"GET", "/tasks/TASK/files", "", ""},
		{"GET", "/attachments/FILE", "", ""}, {"GET", "/attachments/CHATFILE", "", ""},
	} {
		for _, of := range []map[string]string{ours, theirs} {
			var pairs []string
			for name, value := range of {
				pairs = append(pairs, name, value)
			}
			fill := strings.NewReplacer(append([]string{"CHATFILE", of["CHATFILE"]}, pairs...)...)
			var query map[string]string
			if r.query != "" {
				query = map[string]string{"project_slug": fill.Replace(r.query)}
			}
			got := s.ask(request(t, r.method, fill.Replace(r.path), query, fill.Replace(r.body)), limited...)
			if of["PROJECT"] == "ours" && (got.Code != abi.OK || !strings.Contains(string(got.Body), `"status":20`)) {
				t.Errorf("%s %s: ours: %s %s", r.method, r.path, got.Code, got.Body)
			}
			if of["PROJECT"] == "theirs" {
				s.wants(got, abi.Denied, "is granted for the project ours only")
			}
		}
	}
	s.wants(s.ask(`{"method":"GET","path":"/tasks"}`, limited...), abi.OK, `"slug":"ours"`)
	s.wants(s.ask(`{"method":"GET","path":"/tasks"}`, "tasks:read@ours", "tasks:read@theirs"), abi.Denied, "name one in project_id: ours, theirs")
	s.wants(s.ask(`{"method":"GET","path":"/tasks","query":{"project_id":"ours","project_slug":"theirs"}}`, limited...), abi.Invalid, "named twice")
	s.wants(s.ask(`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","Project_Slug":"theirs","title":"t"}}`, limited...), abi.Invalid, "in capitals")
	s.wants(s.ask(`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","project_slug":"theirs","title":"t"}}`, limited...), abi.Invalid, "twice")
	s.wants(s.ask(`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","project_id":"theirs","title":"t"}}`, limited...), abi.Invalid, "named twice")
	s.wants(s.ask(`{"method":"POST","path":"/tasks","body":{"title":"t"}}`, limited...), abi.Denied, "the project ours only")
	s.wants(s.ask(`{"method":"POST","path":"/tasks","body":{"project_slug":"ours","title":"t","parent":5}}`, limited...), abi.Invalid, "a task, or a list")
	many := strings.Repeat(`"OURS-1",`, tracker.MaxBlockers+1) + `"OURS-1"`
	s.wants(s.ask(`{"method":"PATCH","path":"/tasks/OURS-1","body":{"blocked_by":[`+many+`]}}`, limited...), abi.Limit, "at most 101")
	s.wants(s.ask(`{"method":"PATCH","path":"/members/me","body":{"status":"busy"}}`, limited...), abi.Denied, "is about no project")
	s.wants(s.ask(`{"method":"GET","path":"/members/ann"}`, limited...), abi.OK, `"slug":"ann"`)
	if got := s.ask(`{"method":"GET","path":"/projects"}`, limited...); got.Code != abi.OK || strings.Contains(string(got.Body), "theirs") {
		t.Errorf("projects: %s", got.Body)
	}
	s.wants(s.ask(`{"method":"GET","path":"/tasks/NONE-1"}`, limited...), abi.Denied, "the project ours only")
}

func TestAnswersThatAreNoAnswers(t *testing.T) {
	s := newSite(t, trackerproxy.Options{MaxResponse: 64})
	const list, unavailable = `{"method":"GET","path":"/tasks"}`, "tracker_unavailable: the tracker cannot be reached now"
	for _, c := range []struct {
		status     int
		body, want string
		code       abi.Code
	}{
		{200, `"` + strings.Repeat("x", 62) + `"`, strings.Repeat("x", 62), abi.OK}, {200, `"` + strings.Repeat("x", 63) + `"`, "more than 64 bytes", abi.Limit},
		{401, `{}`, "tracker_unavailable: the tracker does not take the token", abi.Unavailable}, {307, `{}`, unavailable, abi.Unavailable}, {200, `"token-of-coder"`, unavailable, abi.Unavailable},
		{502, `<html>`, `{"status":502,"body":null}`, abi.OK}, {404, `{"error":{}}`, `{"status":404,"body":{"error":{}}}`, abi.OK},
	} {
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://evil.example/")
			w.WriteHeader(c.status)
			_, err := w.Write([]byte(c.body))
			must(t, err)
		}
		s.wants(s.ask(list, "tasks:read"), c.code, c.want)
	}
	nobody := s.proxy.Serve(t.Context(), trackerproxy.Access{Scopes: scopes()}, abi.Request{Op: abi.OpTracker, Body: []byte(list)})
	s.wants(nobody, abi.Unavailable, unavailable)
	unset := trackerproxy.New(trackerproxy.Options{}).Serve(t.Context(), trackerproxy.Access{Scopes: scopes()}, abi.Request{Op: abi.OpTracker, Body: []byte(list)})
	s.wants(unset, abi.Unavailable, "no tracker is set up here")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.wants(s.proxy.Serve(ended, trackerproxy.Access{Principal: "coder", Scopes: scopes()}, abi.Request{Op: abi.OpTracker, Body: []byte(list)}), abi.Cancelled, "the call has ended")
}
