package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/owner"
)

// A person asks a tracker as curl would.
type person struct {
	*testing.T
	base, token string
	by          *http.Client // nil is the usual one
}

// ask sends one request and returns the status, and the answer in out if that is not nil.
func (p person) ask(method, path string, body, out any) int {
	p.Helper()
	raw, err := json.Marshal(body)
	must(p, err)
	if body == nil {
		raw = nil
	}
	r, err := http.NewRequestWithContext(p.Context(), method, p.base+path, bytes.NewReader(raw))
	must(p, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	resp, err := cmp.Or(p.by, http.DefaultClient).Do(r)
	must(p, err)
	text, err := io.ReadAll(resp.Body)
	must(p, errors.Join(err, resp.Body.Close()))
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			p.Errorf("%s %s: %d %s: %v", method, path, resp.StatusCode, text, err)
		}
	}
	return resp.StatusCode
}

// does is ask for what has to come out well.
func (p person) does(method, path string, body, out any) {
	p.Helper()
	var said json.RawMessage
	if status := p.ask(method, path, body, &said); status < 200 || status > 299 {
		p.Fatalf("%s %s: %d %s", method, path, status, said)
	}
	if out != nil {
		must(p, json.Unmarshal(said, out))
	}
}

type values map[string]any

// setUp makes the project team-board and tasks in it.
func (p person) setUp(titles ...string) (tasks []tracker.TaskOut) {
	p.Helper()
	p.does("POST", "/projects", values{"slug": "team-board"}, nil)
	for _, title := range titles {
		var out tracker.TaskOut
		p.does("POST", "/tasks", values{"project_slug": "team-board", "title": title}, &out)
		tasks = append(tasks, out)
	}
	return tasks
}

// person is somebody at the tracker of a server.
func (s *served) person(t *testing.T, token string) person {
	return person{t, s.url + trackerPath, token, nil}
}

// atOwner is the person at the machine, who asks whoever owns a state folder.
func atOwner(t *testing.T, cfg Config) person {
	t.Helper()
	info, err := owner.Look(cfg.State)
	must(t, err)
	return person{t, "http://hutch" + trackerPath, "", &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", info.Socket)
		},
	}}}
}

// admit makes a token.
func (s *served) admit(t *testing.T, principal string, scopes ...string) (token string) {
	t.Helper()
	tok, text := madeToken(t, principal, principal, scopes...)
	must(t, s.app.keys.Add(t.Context(), tok))
	return text
}

// The tracker of a serve is used as local as long as there is no token, and from the first
// on as whoever a token says, with its scopes.
func TestTrackerKnowsWhoAsks(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t)
	local := s.person(t, "")
	task := local.setUp("first")[0]
	if task.Key != "TB-1" || task.Creator.Slug != access.Local || task.Creator.Kind != tracker.Human {
		t.Errorf("%+v", task)
	}
	coder := s.person(t, s.admit(t, "coder", tracker.TasksRead, tracker.TasksTake))
	reader := s.person(t, s.admit(t, "reader", tracker.TasksRead))
	admin := s.person(t, s.admit(t, "boss", tracker.Admin, tracker.MembersRead))
	var no struct{ Error tracker.Error }
	if status := local.ask("GET", "/tasks", nil, &no); status != 401 || no.Error.Code != tracker.CodeUnauthorized {
		t.Errorf("without a token: %d %+v", status, no)
	}
	if status := reader.ask("POST", "/tasks/TB-1/take", values{}, &no); status != 403 || no.Error.Code != tracker.CodeForbidden || no.Error.Details["scope"] != tracker.TasksTake {
		t.Errorf("a reader takes: %d %+v", status, no)
	}
	if status := coder.ask("POST", "/tasks/TB-1/take", values{"agent_slug": "reader"}, &no); status != 403 {
		t.Errorf("a coder takes for another: %d %+v", status, no)
	}
	coder.does("POST", "/tasks/TB-1/take", values{"agent_slug": "coder"}, &task)
	if task.AssigneeSlug == nil || *task.AssigneeSlug != "coder" || task.Status != tracker.InProgress {
		t.Errorf("taken: %+v", task)
	}
	if status := reader.ask("GET", "/tasks/TB-1", nil, &task); status != 200 {
		t.Errorf("a reader reads: %d", status)
	}
	if status := coder.ask("POST", "/projects", values{"slug": "other"}, &no); status != 403 || no.Error.Details["scope"] != tracker.Admin {
		t.Errorf("a coder makes a project: %d %+v", status, no)
	}
	admin.does("POST", "/projects", values{"slug": "other"}, nil)
	var members tracker.Page[tracker.MemberOut]
	admin.does("GET", "/members", nil, &members)
	var slugs []string
	for _, m := range members.Items {
		slugs = append(slugs, m.Slug)
	}
	if want := []string{"boss", "coder", "local", "reader"}; !slices.Equal(slugs, want) {
		t.Errorf("members are %q, want %q", slugs, want)
	}
}

// A principal that can be no member is told so, over HTTP, the socket and by a tool.
func TestPrincipalsThatAreNoMembers(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t)
	s.person(t, "").setUp("first")
	s.dropAskers(t, []string{tracker.TasksRead}, map[string]string{"list": `{"method":"GET","path":"/tasks"}`})
	for _, name := range []string{"Alice", "ci.bot", "all", "me", "none", "-x", "01a22d9c-c11d-7003-856f-62faabe121c4"} {
		if access.CheckName(name) != nil {
			continue
		}
		token := s.admit(t, name, access.Scopes()...)
		const want = "can be no member of a tracker"
		var no struct{ Error tracker.Error }
		if status := s.person(t, token).ask("GET", "/tasks", nil, &no); status != 403 || !strings.Contains(no.Error.Message, want) {
			t.Errorf("%s: %d %+v", name, status, no.Error)
		}
		if got := s.mustDial(t, "Authorization", "Bearer "+token).hello("", ""); got["type"] != tracker.FrameAuthError || !strings.Contains(fmt.Sprint(got["message"]), want) {
			t.Errorf("%s: %v", name, got)
		}
		c := s.clientOf(t, "2026-07-28", token)
		if got := c.says(t, "list"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
		c.close(t)
	}
}

// H-23: what is wrong is said in one form, wherever it is found.
func TestH_23_ErrorsOfAServe(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	p := s.person(t, "")
	p.setUp("first")
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{"GET", "/tasks/TB-9", nil, 404, tracker.CodeNotFound},
		{"GET", "/nothing", nil, 404, tracker.CodeNotFound},
		{"PUT", "/tasks", nil, 405, tracker.CodeMethod},
		{"POST", "/tasks", values{"project_slug": "team-board", "title": "t", "priority": "soon"}, 422, tracker.CodeInvalid},
		{"POST", "/tasks", values{"project_slug": "team-board", "title": strings.Repeat("t", int(s.app.cfg.Limits.Body))}, 413, tracker.CodeTooLarge},
	} {
		var no struct{ Error tracker.Error }
		if status := p.ask(c.method, c.path, c.body, &no); status != c.status || no.Error.Code != c.code {
			t.Errorf("%s %s: %d %+v", c.method, c.path, status, no.Error)
		}
	}
	var about struct{ OpenAPI string }
	if p.does("GET", "/openapi.json", nil, &about); about.OpenAPI != "3.1.0" {
		t.Errorf("%+v", about)
	}
}

// H-19: a route that carries a file has room for the largest one, and no other has.
func TestH_19_FilesAreLargerThanRequests(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	p := s.person(t, "")
	p.setUp("first")
	content := bytes.Repeat([]byte("x"), tracker.MaxFile)
	var file tracker.AttachmentOut
	p.does("POST", "/tasks/TB-1/files", values{"filename": "big.txt", "content": content}, &file)
	if file.Size != tracker.MaxFile {
		t.Errorf("%+v", file)
	}
	if status := p.ask("POST", "/tasks/TB-1/files", values{"filename": "big.txt", "content": append(content, 'x')}, nil); status != 413 {
		t.Errorf("one byte more: %d", status)
	}
	if status := p.ask("POST", "/tasks/TB-1/comments", values{"content": string(content)}, nil); status != 413 {
		t.Errorf("a comment as large: %d", status)
	}
}

// A hundred take one task at once over HTTP, each with its own token.
func TestE1_01_AHundredTakeATaskOverHTTP(t *testing.T) {
	const many = 100
	s := startServe(t, nil)
	defer s.halt(t)
	s.person(t, "").setUp("first")
	people := make([]person, many)
	for i := range people {
		people[i] = s.person(t, s.admit(t, fmt.Sprintf("agent-%d", i), tracker.TasksRead, tracker.TasksTake))
	}
	type answer struct {
		status int
		body   struct {
			AssigneeSlug *string `json:"assignee_slug"`
			Error        tracker.Error
		}
	}
	answers := make([]answer, many)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() { answers[i].status = people[i].ask("POST", "/tasks/TB-1/take", values{}, &answers[i].body) })
	}
	all.Wait()
	winner := slices.IndexFunc(answers, func(a answer) bool { return a.status == 200 })
	if winner < 0 {
		t.Fatalf("nobody has it: %+v", answers[0])
	}
	who := fmt.Sprintf("agent-%d", winner)
	for i, a := range answers {
		if i != winner && (a.status != 409 || a.body.Error.Code != tracker.CodeTaken || !strings.Contains(fmt.Sprint(a.body.Error.Details), who)) {
			t.Errorf("agent-%d: %d %+v", i, a.status, a.body.Error)
		}
	}
	if status := people[winner].ask("POST", "/tasks/TB-1/take", values{}, nil); status != 200 {
		t.Errorf("%s once more: %d", who, status)
	}
}

// A wire is an agent's socket.
type wire struct {
	*testing.T
	*websocket.Conn
}

// dial opens a socket, with headers.
func (s *served) dial(t *testing.T, headers ...string) (*wire, *http.Response, error) {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), socketURL(s.url), h)
	if err != nil {
		return nil, resp, err
	}
	must(t, conn.SetReadDeadline(time.Now().Add(patientFor)))
	t.Cleanup(func() { _ = conn.Close() }) // most have ended
	return &wire{t, conn}, resp, nil
}

func (s *served) mustDial(t *testing.T, headers ...string) *wire {
	t.Helper()
	w, _, err := s.dial(t, headers...)
	must(t, err)
	return w
}

// hello sends the first frame, and returns the answer.
func (w *wire) hello(slug, token string) map[string]any {
	w.Helper()
	must(w, w.WriteJSON(tracker.Auth{Type: tracker.FrameAuth, Token: token, Agent: tracker.AuthAgent{Slug: slug}}))
	return w.next()
}

func (w *wire) next() (frame map[string]any) {
	w.Helper()
	must(w, w.ReadJSON(&frame))
	return frame
}

// ends returns the code that the socket is closed with.
func (w *wire) ends() int {
	w.Helper()
	for {
		_, _, err := w.ReadMessage()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return closed.Code
		}
		must(w, err)
	}
}

// H-01, H-20: an agent comes in with its token in the header or in the first frame, and in no
// other way. It is cut off when the token is revoked.
func TestH_01_SocketThroughTheDoor(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t)
	s.person(t, "").setUp("first")
	if got := s.mustDial(t).hello("local", ""); got["type"] != tracker.FrameAuthError {
		t.Errorf("a person without a token: %v", got)
	}
	scopes := []string{tracker.TasksRead, tracker.TasksTake, tracker.MembersRead, tracker.MembersSelf, tracker.MessagesRead}
	open := s.mustDial(t)
	coder, other := s.admit(t, "coder", scopes...), s.admit(t, "other", scopes...)
	if code := open.ends(); code != tracker.CloseAuth {
		t.Errorf("a socket from before the first token ends with %d", code)
	}
	for name, c := range map[string]struct {
		headers     []string
		slug, token string
		want        string
	}{
		"header":          {[]string{"Authorization", "Bearer " + coder}, "coder", "", tracker.FrameAuthOK},
		"frame":           {nil, "coder", coder, tracker.FrameAuthOK},
		"both":            {[]string{"Authorization", "Bearer " + coder}, "coder", coder, tracker.FrameAuthOK},
		"neither":         {nil, "coder", "", tracker.FrameAuthError},
		"wrong frame":     {nil, "coder", coder[:len(coder)-1] + "_", tracker.FrameAuthError},
		"another's name":  {nil, "other", coder, tracker.FrameAuthError},
		"another's frame": {[]string{"Authorization", "Bearer " + coder}, "other", other, tracker.FrameAuthError},
	} {
		w := s.mustDial(t, c.headers...)
		if got := w.hello(c.slug, c.token); got["type"] != c.want {
			t.Errorf("%s: %v", name, got)
		} else if c.want == tracker.FrameAuthError {
			if code := w.ends(); code != tracker.CloseAuth {
				t.Errorf("%s ends with %d", name, code)
			}
		}
		_ = w.Close()
	}
	for name, header := range map[string]string{"wrong token": "Bearer " + coder[:len(coder)-1] + "_", "no token": "Bearer"} {
		if _, resp, err := s.dial(t, "Authorization", header); err == nil || resp == nil || resp.StatusCode != 401 {
			t.Errorf("%s in the header: %v", name, err)
		}
	}
	if _, resp, err := s.dial(t, "Origin", "https://evil.test"); err == nil || resp == nil || resp.StatusCode != 403 {
		t.Errorf("a page of another site: %v", err)
	}
	byHeader, byFrame := s.mustDial(t, "Authorization", "Bearer "+coder), s.mustDial(t)
	if got := byHeader.hello("coder", ""); got["type"] != tracker.FrameAuthOK {
		t.Fatal(got)
	}
	if got := byFrame.hello("other", other); got["type"] != tracker.FrameAuthOK {
		t.Fatal(got)
	}
	if status, text := s.get(t, "/metrics"); status != 401 {
		t.Errorf("%d %s", status, text)
	}
	must(t, s.app.keys.Revoke(t.Context(), "coder", false))
	if code := byHeader.ends(); code != tracker.CloseAuth {
		t.Errorf("a revoked token of a header ends with %d", code)
	}
	s.admit(t, "spare")
	must(t, s.app.keys.Revoke(t.Context(), "other", false))
	if code := byFrame.ends(); code != tracker.CloseAuth {
		t.Errorf("a revoked token of a frame ends with %d", code)
	}
}

// An agent is told over the socket what happens, and to come back when the server stops.
func TestSocketTellsWhatHappens(t *testing.T) {
	s := startServe(t, nil)
	s.person(t, "").setUp("first")
	coder := s.admit(t, "coder", tracker.TasksRead, tracker.MembersRead, tracker.MembersSelf, tracker.MessagesRead)
	boss := s.person(t, s.admit(t, "boss", tracker.TasksWrite, tracker.TasksAssign, tracker.Admin))
	w := s.mustDial(t, "Authorization", "Bearer "+coder)
	if got := w.hello("coder", ""); got["type"] != tracker.FrameAuthOK {
		t.Fatal(got)
	}
	boss.does("PATCH", "/tasks/TB-1", values{"assignee_slug": "coder"}, nil)
	for frame := w.next(); frame["event"] != tracker.EventTaskAssigned; frame = w.next() {
		t.Log(frame)
	}
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.halt(t) }()
	if code := w.ends(); code != websocket.CloseGoingAway {
		t.Errorf("a server that stops ends with %d", code)
	}
	<-stopped
}

// What pages may do is configured for the tracker as for the rest.
func TestTrackerForPages(t *testing.T) {
	const page = "https://app.example.org"
	s := startServe(t, func(cfg *Config) { cfg.Origins = []string{page} })
	defer s.halt(t)
	if w, _, err := s.dial(t, "Origin", page); err != nil || w.hello("coder", "")["type"] != tracker.FrameAuthError {
		t.Errorf("a socket of a page: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.url+trackerPath+"/tasks/TB-1", nil)
	must(t, err)
	for name, value := range map[string]string{"Origin": page, "Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "if-match,idempotency-key"} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, resp.Body.Close())
	h := resp.Header
	if resp.StatusCode != 204 || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "PATCH") || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "If-Match") ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Idempotency-Key") || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "ETag") {
		t.Errorf("%d %v", resp.StatusCode, h)
	}
}

// Agents of this program reach the tracker in memory, each as itself, and nobody else does.
func TestClientsInMemory(t *testing.T) {
	a := newOwningApp(t, nil)
	admin := a.tracker.board.For(everything().Caller)
	_, err := admin.CreateProject(t.Context(), tracker.CreateProject{Slug: "team-board"})
	must(t, err)
	_, err = admin.CreateTask(t.Context(), tracker.CreateTask{Project: "team-board", Title: "first"})
	must(t, err)
	for i := range 2 {
		slug := fmt.Sprintf("agent-%d", i)
		c, err := a.trackerOf(slug)
		must(t, err)
		task, err := c.TakeTask(t.Context(), "TB-1", tracker.TakeTask{})
		if i == 0 && (err != nil || task.Assignee.Slug != slug || task.Assignee.Kind != tracker.Agent) || i == 1 && !errors.Is(err, tracker.Errorf(tracker.CodeTaken, "")) {
			t.Errorf("%s: %+v, %v", slug, task, err)
		}
		if _, err := c.CreateProject(t.Context(), tracker.CreateProject{Slug: "mine"}); !errors.Is(err, tracker.Errorf(tracker.CodeForbidden, "")) {
			t.Errorf("%s makes a project: %v", slug, err)
		}
		c.Close()
	}
	for _, header := range []string{"", "Bearer ", "Bearer agent-0", "Basic agent-0"} {
		r := httptest.NewRequest("GET", trackerPath+"/tasks", nil)
		r.Header.Set("Authorization", header)
		if w := answer(a.tracker.served(), r); w.Code != 401 {
			t.Errorf("%q: %d %s", header, w.Code, w.Body)
		}
	}
}

// newOwningApp is an App that owns its state folder and answers nobody.
func newOwningApp(t *testing.T, change func(*Config)) *App {
	t.Helper()
	cfg, p := newTestConfig(t, change)
	o, err := cfg.takeOver(t.Context())
	must(t, err)
	a, err := NewApp(cfg, p, quiet, true)
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(a.Close(), o.Release())) })
	return a
}

// A door that waits for a token is none for anything else.
func TestOnlySocketsMayWait(t *testing.T) {
	s := startServe(t, nil)
	defer s.halt(t)
	s.admit(t, "coder")
	for path, header := range map[string]string{socketPath: "", "/mcp": "websocket", trackerPath + "/tasks": "websocket", socketPath + "/": "websocket", "/%77s": "websocket"} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url+path, nil)
		must(t, err)
		if header != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", header)
		}
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != 401 {
			t.Errorf("%s with %q: %d", path, header, resp.StatusCode)
		}
	}
}
