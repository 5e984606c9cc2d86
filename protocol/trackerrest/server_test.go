package trackerrest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func scopes() []string {
	return []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.TasksAssign, tracker.TasksForce, tracker.StepsRead,
		tracker.StepsWrite, tracker.MessagesRead, tracker.MessagesWrite, tracker.ProjectsRead, tracker.MembersRead,
		tracker.MembersSelf, tracker.FilesRead, tracker.FilesWrite, tracker.Admin,
	}
}

// A site is a tracker below /api/v1. Its tokens are slugs, and behind a minus the scopes that
// one lacks.
type site struct {
	*testing.T
	h        http.Handler
	document *jsonschema.Compiler
	hit      map[string]bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	b := board.New(&boardtest.Memory{Again: true}, board.Options{})
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent, "other": tracker.Agent} {
		_, err := b.Ensure(t.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
		must(t, err)
	}
	server, err := trackerrest.New(func(r *http.Request) (tracker.Service, error) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token == "" {
			return nil, nil
		}
		slug, lacks, _ := strings.Cut(token, "-")
		all := slices.DeleteFunc(scopes(), func(s string) bool { return s == lacks })
		return b.For(tracker.Caller{Slug: slug, Scopes: all}), nil
	}, trackerrest.Options{Version: "1"})
	must(t, err)
	mux := chi.NewMux()
	mux.Mount("/api/v1", server)
	s := &site{T: t, h: mux, hit: map[string]bool{}}
	s.document = s.compiler()
	return s
}

func (s *site) compiler() *jsonschema.Compiler {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(s.ask("ann", "GET", "/openapi.json", "").Body.String()))
	must(s.T, err)
	c := jsonschema.NewCompiler()
	must(s.T, c.AddResource("https://tracker.example/openapi.json", doc))
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}

type change func(*http.Request)

func header(name, value string) change { return func(r *http.Request) { r.Header.Set(name, value) } }

func (s *site) ask(token, method, path, body string, with ...change) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequestWithContext(s.Context(), method, "/api/v1"+path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, w := range with {
		w(r)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w
}

var parts = regexp.MustCompile(`\{\w+\}`)

// do asks at a route, wants its success, and holds the answer to the description. It returns
// what the answer has under "id", or its whole text.
func (s *site) do(token, route, body string, at ...string) map[string]any {
	s.Helper()
	method, path, _ := strings.Cut(route, " ")
	path, query, _ := strings.Cut(path, "?")
	template := path
	for _, value := range at {
		path = strings.Replace(path, parts.FindString(path), url.PathEscape(value), 1)
	}
	if query != "" {
		path += "?" + query
	}
	w := s.ask(token, method, path, body)
	i := slices.IndexFunc(trackerrest.Routes(), func(r trackerrest.Route) bool { return r.Method == method && r.Path == template })
	if i < 0 {
		s.Fatalf("%s is no route", route)
	}
	s.hit[method+" "+template] = true
	s.fits(w, method, template)
	if body != "" {
		s.valid(described(method, template)+"/requestBody/content/application~1json/schema", []byte(body))
	}
	var out map[string]any
	if w.Body.Len() > 0 && w.Body.Bytes()[0] == '{' {
		must(s.T, json.Unmarshal(w.Body.Bytes(), &out))
	}
	return out
}

// described is where the description has a route.
func described(method, template string) string {
	return "https://tracker.example/openapi.json#/paths/" + url.PathEscape(strings.ReplaceAll(template, "/", "~1")) + "/" + strings.ToLower(method)
}

// fits holds an answer to the description of a route.
func (s *site) fits(w *httptest.ResponseRecorder, method, template string) {
	s.Helper()
	if w.Code >= 300 {
		s.Fatalf("%s %s: %d %s", method, template, w.Code, w.Body)
	}
	where := described(method, template) + "/responses/" + strconv.Itoa(w.Code)
	if _, err := s.document.Compile(where); err != nil {
		s.Fatalf("%s %s answers %d, which is not described: %v", method, template, w.Code, err)
	}
	if w.Code == http.StatusNoContent {
		if w.Body.Len() > 0 {
			s.Fatalf("%s %s: %s", method, template, w.Body)
		}
		return
	}
	s.valid(where+"/content/application~1json/schema", w.Body.Bytes())
}

func (s *site) valid(where string, body []byte) {
	s.Helper()
	schema, err := s.document.Compile(where)
	must(s.T, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	must(s.T, err)
	if err := schema.Validate(value); err != nil {
		s.Fatalf("%s: %v\n%s", where, err, body)
	}
}

func TestH_23_EveryRouteAnswersAsItIsDescribed(t *testing.T) {
	s := newSite(t)
	s.do("ann", "POST /projects", `{"slug":"team-board","name":"Team Board"}`)
	s.do("ann", "GET /projects?archived=1&limit=10", "")
	s.do("ann", "GET /projects/{id}", "", "team-board")
	s.do("ann", "PATCH /projects/{id}", `{"description":"what we do"}`, "team-board")
	s.do("ann", "POST /members", `{"slug":"new","kind":"agent","capabilities":["go"],"projects":["team-board"]}`)
	s.do("ann", "GET /members?project_id=team-board&kind=agent", "")
	s.do("ann", "GET /members/{slug}", "", "me")
	s.do("ann", "PATCH /members/{slug}", `{"name":"New"}`, "new")
	s.do("coder", "PATCH /members/me", `{"status":"busy"}`)
	s.do("coder", "POST /members/me/heartbeat", `{"status":"busy","current_tasks":["TB-1"]}`)

	s.do("ann", "POST /tasks", `{"project_slug":"team-board","title":"first","labels":["a"],"assignee_slug":"other"}`)
	second := s.do("ann", "POST /tasks", `{"project":"team-board","title":"second","parent":"TB-1","blocked_by":["TB-1"]}`)
	s.do("coder", "GET /tasks?status=todo,review&labels=a&project_slug=team-board&q=first&ready=true", "")
	s.do("coder", "GET /tasks/{id}", "", "#2")
	s.do("ann", "DELETE /tasks/{id}/dependencies/{blocker}", "", "TB-2", "TB-1")
	s.do("ann", "POST /tasks/{id}/dependencies", `{"blocked_by":"1"}`, "TB-2")
	s.do("ann", "DELETE /tasks/{id}/dependencies?blocked_by=TB-1", "", "TB-2")
	s.do("coder", "POST /tasks/{id}/take", "", "TB-2")
	s.do("coder", "PATCH /tasks/{id}", `{"status":"review"}`, "TB-2")
	s.do("coder", "POST /tasks/{id}/reject", `{"reason":"no"}`, "TB-2")
	s.do("coder", "POST /tasks/{id}/take", `{"agent_slug":"coder"}`, "TB-2")
	s.do("coder", "POST /tasks/{id}/release", "", "TB-2")
	s.do("coder", "POST /tasks/{id}/watchers", "", "TB-2")
	s.do("coder", "DELETE /tasks/{id}/watchers/{slug}", "", "TB-2", "me")
	s.do("ann", "GET /tasks/{id}/activity?limit=1", "", "TB-2")

	step := s.do("coder", "POST /tasks/{id}/steps", `{"title":"one"}`, "TB-2")
	s.do("coder", "GET /tasks/{id}/steps", "", "TB-2")
	s.do("coder", "PATCH /tasks/{id}/steps/{ref}", "", "TB-2", "0")
	s.do("coder", "GET /tasks/{id}/steps/{ref}", "", "TB-2", step["id"].(string))
	s.do("coder", "DELETE /tasks/{id}/steps/{ref}", "", "TB-2", "0")

	comment := s.do("coder", "POST /tasks/{id}/comments", `{"text":"look @other, @nobody"}`, "TB-2")
	s.do("coder", "GET /tasks/{id}/comments", "", "TB-2")
	s.do("ann", "POST /chats", `{"slug":"general","project_slug":"team-board"}`)
	s.do("ann", "GET /chats?project_id=team-board", "")
	s.do("ann", "GET /chats/{id}", "", "general")
	s.do("ann", "PATCH /chats/{id}", `{"name":"General"}`, "general")
	said := s.do("coder", "POST /chats/{id}/messages", `{"content":"hello","mentions":["ann"]}`, "general")
	s.do("coder", "GET /chats/{id}/messages?limit=1", "", "general")
	s.do("coder", "GET /messages/{id}", "", said["id"].(string))
	s.do("other", "POST /messages/{id}/replies", `{"content":"hi"}`, said["id"].(string))
	s.do("coder", "GET /messages/{id}/replies", "", said["id"].(string))

	file := s.do("coder", "POST /tasks/{id}/files", `{"filename":"a.txt","content":"aGVsbG8="}`, "TB-2")
	s.do("coder", "POST /messages/{id}/files", `{"filename":"a.txt","content":"aGVsbG8="}`, comment["id"].(string))
	s.do("coder", "GET /tasks/{id}/files", "", "TB-2")
	s.do("coder", "GET /messages/{id}/files", "", comment["id"].(string))
	s.do("coder", "GET /projects/{id}/files", "", "team-board")
	s.do("coder", "GET /attachments/{id}", "", file["id"].(string))

	waiting := s.do("other", "GET /events?after=0&limit=5&wait=1", "")
	first := waiting["items"].([]any)[0].(map[string]any)
	for range tracker.MaxTries - 1 {
		s.do("other", "GET /events", "")
	}
	if gave := s.do("other", "GET /events", ""); strings.Contains(text(t, gave), first["id"].(string)) {
		t.Errorf("a parked event was sent: %v", gave)
	}
	s.do("other", "GET /members/{slug}/parked", "", "me")
	s.do("ann", "POST /members/{slug}/parked/{id}/redrive", "", "other", first["id"].(string))
	s.do("other", "POST /events/ack", `{"ids":["`+first["id"].(string)+`"]}`)
	s.do("ann", "DELETE /tasks/{id}", "", second["id"].(string))

	for _, r := range trackerrest.Routes() {
		if !s.hit[r.Method+" "+r.Path] {
			t.Errorf("nothing was asked of %s %s", r.Method, r.Path)
		}
	}
}

// The table of routes, what is served, and what is described are the same.
func TestWhatIsServedIsDescribed(t *testing.T) {
	s := newSite(t)
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string   `json:"operationId"`
			Tools       []string `json:"x-tools"`
		}
	}
	must(t, json.Unmarshal(s.ask("ann", "GET", "/openapi.json", "").Body.Bytes(), &doc))
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("it is of OpenAPI %s", doc.OpenAPI)
	}
	described, served, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for path, ops := range doc.Paths {
		for method, op := range ops {
			described[strings.ToUpper(method)+" "+path] = true
			if names[op.OperationID] || op.OperationID == "" {
				t.Errorf("%s %s is called %q, which is no name of its own", method, path, op.OperationID)
			}
			names[op.OperationID] = true
		}
	}
	must(t, chi.Walk(s.h.(chi.Routes), func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodHead && path != "/api/v1/openapi.json" {
			served[method+" "+strings.TrimPrefix(path, "/api/v1")] = true
		}
		return nil
	}))
	for r := range described {
		if !served[r] {
			t.Errorf("%s is described and not served", r)
		}
	}
	for r := range served {
		if !described[r] {
			t.Errorf("%s is served and not described", r)
		}
	}
}

// S1-084: what can be asked has a tool, or there is a reason why not.
func TestS1_084_EveryRouteHasAToolOrAReason(t *testing.T) {
	tools := map[string]bool{}
	for _, r := range trackerrest.Routes() {
		if (len(r.Tools) == 0) == (r.Reason == "") {
			t.Errorf("%s %s has tools %v and the reason %q", r.Method, r.Path, r.Tools, r.Reason)
		}
		for _, tool := range r.Tools {
			tools[tool] = true
		}
	}
	for _, want := range strings.Fields(`list_tasks get_task create_task update_task take_task reject_task assign_task watch_task
		unwatch_task list_steps add_step complete_step update_step send_message list_messages reply_message add_comment list_comments
		read_messages list_projects get_project list_members get_member update_my_status upload_file list_files download_file`) {
		if !tools[want] {
			t.Errorf("no route is for %s", want)
		}
	}
}

// Each route needs the scope that it is said to need.
func TestEveryRouteNeedsItsScope(t *testing.T) {
	s := newSite(t)
	for _, r := range trackerrest.Routes() {
		path := parts.ReplaceAllString(r.Path, "x")
		body := ""
		switch r.Path {
		case "/tasks/{id}/files", "/messages/{id}/files":
			body = `{"filename":"a","content":""}`
		case "/tasks/{id}/comments", "/chats/{id}/messages", "/messages/{id}/replies":
			body = `{"content":"a"}`
		case "/tasks/{id}/steps", "/tasks":
			body = `{"title":"a","project_slug":"x"}`
		case "/tasks/{id}/reject":
			body = `{"reason":"x"}`
		case "/tasks/{id}/dependencies":
			body = `{"blocked_by":"x"}`
		case "/projects", "/members", "/chats":
			body = `{"slug":"x"}`
		case "/members/me":
			body = `{"status":"x"}`
		case "/events/ack":
			body = `{"ids":["x"]}`
		}
		if r.Path == "/tasks/{id}/steps" {
			body = `{"title":"a"}`
		}
		if r.Method == "GET" || r.Method == "DELETE" {
			body = ""
		}
		w := s.ask("coder-"+r.Scope, r.Method, path, body)
		if w.Code != 403 || !strings.Contains(w.Body.String(), r.Scope) {
			t.Errorf("%s %s without %s: %d %s", r.Method, r.Path, r.Scope, w.Code, w.Body)
		}
		if w := s.ask("", r.Method, path, body); w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s without a token: %d", r.Method, r.Path, w.Code)
		}
	}
}

func TestH_23_Refusals(t *testing.T) {
	s := newSite(t)
	s.do("ann", "POST /projects", `{"slug":"team-board"}`)
	s.do("ann", "POST /tasks", `{"project_slug":"team-board","title":"one"}`)
	s.do("other", "POST /tasks/{id}/take", "", "TB-1")
	plain := header("Content-Type", "text/plain")
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               string
		with               change
	}{
		"no route":          {"GET", "/nothing", "", 404, tracker.CodeNotFound, nil},
		"no method":         {"PUT", "/tasks/TB-1", "", 405, tracker.CodeMethod, nil},
		"no task":           {"GET", "/tasks/TB-9", "", 404, tracker.CodeNotFound, nil},
		"dots":              {"GET", "/tasks/..%2f..%2fmembers", "", 404, tracker.CodeNotFound, nil},
		"no parameter":      {"GET", "/tasks?asignee=x", "", 422, tracker.CodeInvalid, nil},
		"twice":             {"GET", "/tasks?assignee=x&assignee=y", "", 422, tracker.CodeInvalid, nil},
		"under two names":   {"GET", "/tasks?project_id=x&project_slug=x", "", 422, tracker.CodeInvalid, nil},
		"limit 0":           {"GET", "/tasks?limit=0", "", 422, tracker.CodeInvalid, nil},
		"limit too large":   {"GET", "/tasks?limit=201", "", 422, tracker.CodeInvalid, nil},
		"a flag":            {"GET", "/tasks?ready=maybe", "", 422, tracker.CodeInvalid, nil},
		"a status":          {"GET", "/tasks?status=open", "", 422, tracker.CodeInvalid, nil},
		"a cursor":          {"GET", "/tasks?cursor=%25%25", "", 422, tracker.CodeInvalid, nil},
		"a broken query":    {"GET", "/tasks?assignee=%zz", "", 400, tracker.CodeBadRequest, nil},
		"no UTF-8":          {"POST", "/tasks", "{\"project_slug\":\"team-board\",\"title\":\"a\xff\"}", 400, tracker.CodeBadRequest, nil},
		"no JSON":           {"POST", "/tasks", `{`, 400, tracker.CodeBadRequest, nil},
		"an array":          {"POST", "/tasks", `[]`, 400, tracker.CodeBadRequest, nil},
		"more behind":       {"POST", "/tasks", `{}{}`, 400, tracker.CodeBadRequest, nil},
		"a name twice":      {"POST", "/tasks", `{"title":"a","title":"b"}`, 400, tracker.CodeBadRequest, nil},
		"no such field":     {"POST", "/tasks", `{"project_slug":"team-board","titel":"a"}`, 422, tracker.CodeInvalid, nil},
		"a missing field":   {"POST", "/tasks", `{"project_slug":"team-board"}`, 422, tracker.CodeInvalid, nil},
		"another type":      {"POST", "/tasks", `{"project_slug":"team-board","title":1}`, 422, tracker.CodeInvalid, nil},
		"two projects":      {"POST", "/tasks", `{"project_slug":"a","project_id":"b","title":"x"}`, 422, tracker.CodeInvalid, nil},
		"no JSON type":      {"POST", "/tasks", `{"project_slug":"team-board","title":"x"}`, 415, tracker.CodeMediaType, plain},
		"taken":             {"POST", "/tasks/TB-1/take", "", 409, tracker.CodeTaken, nil},
		"a move":            {"PATCH", "/tasks/TB-1", `{"status":"done"}`, 409, tracker.CodeTransition, nil},
		"an old version":    {"PATCH", "/tasks/TB-1", `{"title":"x","version":1}`, 409, tracker.CodeVersion, nil},
		"an old ETag":       {"PATCH", "/tasks/TB-1", `{"title":"x"}`, 412, tracker.CodePrecondition, header("If-Match", `"1"`)},
		"no ETag":           {"PATCH", "/tasks/TB-1", `{"title":"x"}`, 400, tracker.CodeBadRequest, header("If-Match", `"x"`)},
		"too large":         {"POST", "/tasks", `{"title":"` + strings.Repeat("x", 4<<20) + `"}`, 413, tracker.CodeTooLarge, nil},
		"base64 that lies":  {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"%%%"}`, 422, tracker.CodeInvalid, nil},
		"bad padding":       {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"eA="}`, 422, tracker.CodeInvalid, nil},
		"no padding":        {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"eA"}`, 422, tracker.CodeInvalid, nil},
		"behind padding":    {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"eA==eA=="}`, 422, tracker.CodeInvalid, nil},
		"of another kind":   {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"-_-_"}`, 422, tracker.CodeInvalid, nil},
		"bits left over":    {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"eB=="}`, 422, tracker.CodeInvalid, nil},
		"numbers, no text":  {"POST", "/tasks/TB-1/files", `{"filename":"a","content":[120]}`, 422, tracker.CodeInvalid, nil},
		"a size that lies":  {"POST", "/tasks/TB-1/files", `{"filename":"a","content":"eA==","size":2}`, 422, tracker.CodeInvalid, nil},
		"a file, no name":   {"POST", "/tasks/TB-1/files", "x", 422, tracker.CodeInvalid, header("Content-Type", "application/octet-stream")},
		"a file, too large": {"POST", "/tasks/TB-1/files?filename=a", strings.Repeat("x", tracker.MaxFile+1), 413, tracker.CodeTooLarge, header("Content-Type", "application/octet-stream")},
		"acks":              {"POST", "/events/ack", `{"ids":[` + strings.Repeat(`"x",`, tracker.MaxPage) + `"x"]}`, 422, tracker.CodeInvalid, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var with []change
			if c.with != nil {
				with = append(with, c.with)
			}
			w := s.ask("coder", c.method, c.path, c.body, with...)
			var got struct{ Error tracker.Error }
			must(t, json.Unmarshal(w.Body.Bytes(), &got))
			if w.Code != c.status || got.Error.Code != c.code || got.Error.Message == "" {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			s.valid("https://tracker.example/openapi.json#/components/schemas/Error", w.Body.Bytes())
			if w.Header().Get("X-Request-Id") == "" {
				t.Error("the answer has no request id")
			}
		})
	}
	if allow := s.ask("coder", "PUT", "/tasks/TB-1", "").Header().Get("Allow"); allow != "GET, HEAD, PATCH, DELETE" {
		t.Errorf("allowed are %q", allow)
	}
}

// Whoever sends a file's text as it is learns what was wrong with it.
func TestContentThatIsNotBase64(t *testing.T) {
	s := newSite(t)
	for content, want := range map[string]string{`"six words"`: "content is not base64", `6`: "content has a value of another type"} {
		var got struct{ Error tracker.Error }
		w := s.ask("coder", "POST", "/tasks/TB-1/files", `{"filename":"a","content":`+content+`}`)
		must(t, json.Unmarshal(w.Body.Bytes(), &got))
		if got.Error.Message != want || got.Error.Hint == "" {
			t.Errorf("%s: %s", content, w.Body)
		}
	}
}

func TestAChunkedBodyIsBounded(t *testing.T) {
	s := newSite(t)
	w := s.ask("ann", "POST", "/tasks", "x", func(r *http.Request) {
		r.ContentLength = -1
		r.Body = io.NopCloser(io.LimitReader(endless{}, 1<<40))
	})
	if w.Code != 413 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte(" "), len(p))), nil }

func TestE1_15_AKeyInTheHeader(t *testing.T) {
	s := newSite(t)
	s.do("ann", "POST /projects", `{"slug":"team-board"}`)
	var first string
	for range 3 {
		w := s.ask("ann", "POST", "/tasks", `{"project_slug":"team-board","title":"once"}`, header("Idempotency-Key", "k"))
		if first == "" {
			first = w.Body.String()
		}
		if w.Code != 201 || w.Body.String() != first {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if w := s.ask("ann", "POST", "/tasks", `{"project_slug":"team-board","title":"twice"}`, header("Idempotency-Key", "k")); w.Code != 422 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func TestE1_05_ETags(t *testing.T) {
	s := newSite(t)
	s.do("ann", "POST /projects", `{"slug":"team-board"}`)
	tag := s.ask("ann", "POST", "/tasks", `{"project_slug":"team-board","title":"a"}`).Header().Get("ETag")
	w := s.ask("ann", "PATCH", "/tasks/TB-1", `{"title":"b"}`, header("If-Match", tag))
	if w.Code != 200 || tag != `"1"` || w.Header().Get("ETag") != `"2"` {
		t.Fatalf("%d %s %s", w.Code, tag, w.Header().Get("ETag"))
	}
	if w := s.ask("ann", "HEAD", "/tasks/TB-1", ""); w.Code != 200 || w.Header().Get("ETag") != `"2"` {
		t.Fatalf("%d %s", w.Code, w.Header().Get("ETag"))
	}
}

func TestE1_19_FilesAsTheyAre(t *testing.T) {
	s := newSite(t)
	s.do("ann", "POST /projects", `{"slug":"team-board"}`)
	s.do("ann", "POST /tasks", `{"project_slug":"team-board","title":"a"}`)
	content := "<html>" + strings.Repeat("\x00", tracker.MaxFile-6)
	w := s.ask("ann", "POST", "/tasks/TB-1/files?filename=%D1%84.html", content, header("Content-Type", "application/octet-stream"))
	var file tracker.AttachmentOut
	must(t, json.Unmarshal(w.Body.Bytes(), &file))
	w = s.ask("ann", "GET", "/attachments/"+file.ID, "", header("Accept", "application/octet-stream"))
	h := w.Header()
	if w.Body.String() != content || h.Get("Content-Type") != "application/octet-stream" || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Content-Security-Policy") != "sandbox; default-src 'none'" ||
		h.Get("Content-Disposition") != "attachment; filename*=utf-8''%D1%84.html" {
		t.Fatalf("%d bytes, %v", w.Body.Len(), h)
	}
}

// A request waits for an event as long as it says.
func TestEventsAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		began := time.Now()
		w := s.ask("coder", "GET", "/events?wait=7", "")
		if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"items":[]}` || time.Since(began) != 7*time.Second {
			t.Fatalf("%d %s after %v", w.Code, w.Body, time.Since(began))
		}
		var told atomic.Bool
		go func() {
			time.Sleep(time.Second)
			s.ask("ann", "POST", "/projects", `{"slug":"team-board"}`)
			s.ask("ann", "POST", "/tasks", `{"project_slug":"team-board","title":"a","assignee_slug":"coder"}`)
			told.Store(true)
		}()
		w = s.ask("coder", "GET", "/events?wait=30", "")
		if !strings.Contains(w.Body.String(), tracker.EventTaskAssigned) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		synctest.Wait()
		if !told.Load() {
			t.Error("it did not wait")
		}
	})
}

func TestPanicsAreAnswered(t *testing.T) {
	server, err := trackerrest.New(func(*http.Request) (tracker.Service, error) { panic("secret") }, trackerrest.Options{})
	must(t, err)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/tasks", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// Whatever a body is, it is answered, and never as a failure of the tracker.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		"", "{}", "null", `{"title":null}`, `{"project_slug":"team-board","title":"a","labels":["x"]}`, `{"title":"\ud800"}`, `{"a":1,"a":1}`,
		`{"status":"review","version":1}`, `{"blocked_by":["1"]}`, `{"content":"@a"}`, `{"filename":"a","content":"eA=="}`, "{\"\x00\":1}",
	} {
		f.Add(uint(0), body)
		f.Add(uint(3), body)
	}
	f.Fuzz(func(t *testing.T, n uint, body string) {
		s := newSite(t)
		s.do("ann", "POST /projects", `{"slug":"team-board"}`)
		s.do("ann", "POST /tasks", `{"project_slug":"team-board","title":"a"}`)
		all := trackerrest.Routes()
		r := all[n%uint(len(all))]
		w := s.ask("ann", r.Method, parts.ReplaceAllString(r.Path, "1"), body)
		if w.Code >= 500 {
			t.Fatalf("%s %s: %d %s", r.Method, r.Path, w.Code, w.Body)
		}
		if w.Code >= 400 {
			s.valid("https://tracker.example/openapi.json#/components/schemas/Error", w.Body.Bytes())
		}
	})
}

// C-02, C-03: a project and an assignee are named in either way, in bodies and in queries, and
// both names of an assignee come out.
func TestC_03_BothNamesOfAnAssignee(t *testing.T) {
	s := newSite(t)
	s.do("ann", "POST /projects", `{"slug":"test"}`)
	for i, body := range []string{
		`{"project_slug":"test","title":"a","assignee":"coder"}`, `{"project_id":"test","title":"b","assignee_slug":"coder"}`,
	} {
		task := s.do("ann", "POST /tasks", body)
		holder, _ := task["assignee"].(map[string]any)
		if task["assignee_slug"] != "coder" || holder["slug"] != "coder" {
			t.Errorf("%s makes %v", body, task)
		}
		name := []string{"assignee", "assignee_slug"}[i]
		key, _ := task["key"].(string)
		if task = s.do("ann", "PATCH /tasks/{id}", `{"`+name+`":"other"}`, key); task["assignee_slug"] != "other" {
			t.Errorf("%s in a change makes %v", name, task)
		}
	}
	for _, query := range []string{"project_id=test&assignee=other", "project_slug=test&assignee_slug=other"} {
		if page := s.do("ann", "GET /tasks?"+query, ""); len(page["items"].([]any)) != 2 {
			t.Errorf("%s finds %v", query, page)
		}
	}
	if got := s.ask("ann", "POST", "/tasks", `{"project_slug":"test","title":"c","assignee":"coder","assignee_slug":"other"}`); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("two names are answered with %d %s", got.Code, got.Body)
	}
}
