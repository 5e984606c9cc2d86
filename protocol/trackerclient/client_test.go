package trackerclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/hutch-run/hutch/protocol/trackerrest"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// liveness is how long what must happen may take; it decides nothing else.
const liveness = 30 * time.Second

// A site is a whole tracker: routes and socket. Tokens are slugs.
type site struct {
	*testing.T
	b   atomic.Pointer[board.Board]
	hub *trackerhub.Hub
	url string

	noSocket, noRoutes atomic.Bool
	mu                 sync.Mutex
	hit                map[string]bool // routes
}

func newSite(t *testing.T, o trackerhub.Options) *site {
	t.Helper()
	s := &site{T: t, hit: map[string]bool{}}
	s.anew()
	open := func(token string) tracker.Service {
		if token != "ann" && token != "coder" {
			return nil
		}
		return s.as(token)
	}
	routes, err := trackerrest.New(func(r *http.Request) (tracker.Service, error) {
		return open(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")), nil
	}, trackerrest.Options{})
	must(t, err)
	s.hub = trackerhub.New(func(_ *http.Request, token string) (tracker.Service, error) { return open(token), nil }, o)
	mux := chi.NewMux()
	mux.Mount("/api/v1", s.unless(&s.noRoutes, s.noting(routes)))
	mux.Handle("/ws", s.unless(&s.noSocket, s.hub))
	server := httptest.NewServer(mux)
	s.url = server.URL
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), liveness)
		defer cancel()
		must(t, s.hub.Close(ctx))
		server.Close()
	})
	return s
}

// anew begins with an empty board.
func (s *site) anew() {
	s.Helper()
	b := board.New(&boardtest.Memory{}, board.Options{})
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent} {
		_, err := b.Ensure(s.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
		must(s.T, err)
	}
	s.b.Store(b)
	_, err := s.as("ann").CreateChat(s.Context(), tracker.CreateChat{Slug: "team"})
	must(s.T, err)
}

func (s *site) unless(off *atomic.Bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if off.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// noting notes which routes are asked.
func (s *site) noting(h *trackerrest.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := chi.NewRouteContext()
		path := strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1")
		pattern := h.Find(c, r.Method, path)
		s.mu.Lock()
		s.hit[r.Method+" "+pattern] = true
		s.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

func (s *site) as(slug string) tracker.Service {
	return s.b.Load().For(tracker.Caller{Slug: slug, Scopes: []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.TasksAssign, tracker.TasksForce, tracker.StepsRead,
		tracker.StepsWrite, tracker.MessagesRead, tracker.MessagesWrite, tracker.ProjectsRead, tracker.MembersRead,
		tracker.MembersSelf, tracker.FilesRead, tracker.FilesWrite, tracker.Admin,
	}})
}

func (s *site) say(content string) {
	s.Helper()
	_, err := s.as("ann").SendMessage(s.Context(), tracker.SendMessage{ChatID: "team", Content: content})
	must(s.T, err)
}

func (s *site) client(token string) *trackerclient.Client {
	s.Helper()
	return client(s.T, s.url+"/api/v1", token, trackerclient.Options{})
}

func client(t *testing.T, base, token string, o trackerclient.Options) *trackerclient.Client {
	t.Helper()
	c, err := trackerclient.New(base, token, o)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func got[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T { t.Helper(); must(t, err); return v }
}

func refused(t testing.TB, err error, code string) {
	t.Helper()
	var e *tracker.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// TestEveryRoute asks a real tracker for everything.
func TestEveryRoute(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	ctx, ann, coder := t.Context(), s.client("ann"), s.client("coder")
	p := got(ann.CreateProject(ctx, tracker.CreateProject{Slug: "team-board", Name: "Team"}))(t)
	got(ann.ListProjects(ctx, tracker.ProjectQuery{Archived: true}))(t)
	got(ann.GetProject(ctx, p.Slug))(t)
	got(ann.UpdateProject(ctx, p.ID, tracker.UpdateProject{Description: tracker.Some("d")}))(t)
	got(ann.CreateMember(ctx, tracker.CreateMember{Slug: "third"}))(t)
	got(ann.ListMembers(ctx, tracker.MemberQuery{Kind: "agent", Paging: tracker.Paging{Limit: 1}}))(t)
	got(ann.GetMember(ctx, "coder"))(t)
	got(ann.UpdateMember(ctx, "third", tracker.UpdateMember{Name: tracker.Some("Third")}))(t)
	if my := got(coder.UpdateMyStatus(ctx, tracker.MyStatus{Status: "here"}))(t); my.Status != "here" {
		t.Fatalf("got %+v", my)
	}
	a := got(ann.CreateTask(ctx, tracker.CreateTask{Project: p.Slug, Title: "a/b ?#%"}))(t)
	b := got(ann.CreateTask(ctx, tracker.CreateTask{Project: p.Slug, Title: "b"}))(t)
	if task := got(ann.GetTask(ctx, "#1"))(t); task.ID != a.ID || task.Title != "a/b ?#%" {
		t.Fatalf("#1 is %+v", task)
	}
	if page := got(ann.ListTasks(ctx, tracker.TaskQuery{Statuses: []string{"todo", "done"}, Text: "B ?#%"}))(t); len(page.Items) != 1 {
		t.Fatalf("got %+v", page)
	}
	_, err := ann.UpdateTask(ctx, a.Key, tracker.UpdateTask{Title: tracker.Some("x"), IfMatch: 99})
	refused(t, err, tracker.CodePrecondition)
	got(ann.UpdateTask(ctx, a.Key, tracker.UpdateTask{Title: tracker.Some("x"), ParentID: tracker.Null[string](), IfMatch: a.Version}))(t)
	got(ann.AddDependency(ctx, a.ID, tracker.AddDependency{BlockedBy: b.Key}))(t)
	got(ann.RemoveDependency(ctx, a.ID, b.Key))(t)
	got(coder.TakeTask(ctx, a.Key, tracker.TakeTask{}))(t)
	got(coder.ReleaseTask(ctx, a.Key, tracker.ReleaseTask{}))(t)
	got(coder.TakeTask(ctx, a.Key, tracker.TakeTask{}))(t)
	got(coder.RejectTask(ctx, a.Key, tracker.RejectTask{Reason: "no"}))(t)
	got(coder.WatchTask(ctx, a.Key, tracker.WatchTask{}))(t)
	got(coder.UnwatchTask(ctx, a.Key, "coder"))(t)
	got(ann.TaskActivity(ctx, a.Key, tracker.Paging{}))(t)
	step := got(coder.AddStep(ctx, a.Key, tracker.AddStep{Title: "one"}))(t)
	got(coder.GetStep(ctx, a.Key, "0"))(t)
	got(coder.UpdateStep(ctx, a.Key, step.ID, tracker.UpdateStep{}))(t)
	if steps := got(coder.ListSteps(ctx, a.Key))(t); len(steps) != 1 || !steps[0].Done {
		t.Fatalf("got %+v", steps)
	}
	must(t, coder.DeleteStep(ctx, a.Key, "0"))
	got(ann.CreateChat(ctx, tracker.CreateChat{Slug: "more"}))(t)
	got(ann.ListChats(ctx, tracker.ChatQuery{}))(t)
	got(ann.GetChat(ctx, "more"))(t)
	got(ann.UpdateChat(ctx, "more", tracker.UpdateChat{Name: tracker.Some("More")}))(t)
	m := got(coder.SendMessage(ctx, tracker.SendMessage{ChatID: "team", Content: "hi"}))(t)
	got(coder.SendMessage(ctx, tracker.SendMessage{TaskID: a.Key, Content: "done"}))(t)
	got(coder.GetMessage(ctx, m.ID))(t)
	got(coder.ReplyMessage(ctx, m.ID, tracker.Reply{Content: "again"}))(t)
	for _, q := range []tracker.MessageQuery{{ChatID: "team"}, {TaskID: a.Key}, {ParentID: m.ID}} {
		if page := got(coder.ListMessages(ctx, q))(t); len(page.Items) == 0 {
			t.Fatalf("%+v: nothing", q)
		}
	}
	f := got(coder.UploadFile(ctx, tracker.UploadFile{TaskID: a.Key, Filename: "a.txt", Content: []byte("text")}))(t)
	got(coder.UploadFile(ctx, tracker.UploadFile{MessageID: m.ID, Filename: "b.txt", Content: []byte("text")}))(t)
	for _, q := range []tracker.FileQuery{{TaskID: a.Key}, {ProjectID: p.Slug}, {MessageID: m.ID}} {
		got(coder.ListFiles(ctx, q))(t)
	}
	if file := got(coder.DownloadFile(ctx, f.ID))(t); string(file.Content) != "text" {
		t.Fatalf("got %+v", file)
	}
	got(coder.Parked(ctx, "me", tracker.Paging{}))(t)
	refused(t, coder.Redrive(ctx, "me", "x"), tracker.CodeNotFound)
	must(t, ann.DeleteTask(ctx, b.ID))
	_, err = ann.GetTask(ctx, b.ID)
	refused(t, err, tracker.CodeNotFound)

	// The last two are those of a subscription; the fourth is another spelling of the third.
	others := []string{"DELETE /tasks/{id}/dependencies", "GET /events", "POST /events/ack", "POST /members/me/heartbeat"}
	for _, r := range trackerrest.Routes() {
		if route := r.Method + " " + r.Path; !s.hit[route] && !slices.Contains(others, route) {
			t.Errorf("%s was not asked", route)
		}
	}
}

func TestPartsOfAPathLeadNowhereElse(t *testing.T) {
	s := newSite(t, trackerhub.Options{})
	for _, ref := range []string{"", ".", "..", strings.Repeat("x", 300), "../projects", "a/../../members", "%2e%2e", "x?y", "' or 1=1 --"} {
		_, err := s.client("ann").GetTask(t.Context(), ref)
		refused(t, err, tracker.CodeNotFound)
	}
	for route := range s.hit {
		if route != "GET /tasks/{id}" {
			t.Errorf("%s was asked", route)
		}
	}
}

func TestH_12_Tries(t *testing.T) {
	get := func(c *trackerclient.Client) error { _, err := c.GetTask(t.Context(), "T-1"); return err }
	create := func(c *trackerclient.Client) error {
		_, err := c.CreateTask(t.Context(), tracker.CreateTask{})
		return err
	}
	update := func(c *trackerclient.Client) error {
		_, err := c.UpdateTask(t.Context(), "T-1", tracker.UpdateTask{})
		return err
	}
	for _, tt := range []struct {
		name   string
		ask    func(*trackerclient.Client) error
		status []int // of the answers, the last one for ever
		wait   string
		tries  int
		code   string
	}{
		{"it comes back", get, []int{503, 502, 200}, "", 3, ""},
		{"it does not", get, []int{504}, "", 3, tracker.CodeUnavailable},
		{"what is made has a key", create, []int{503, 200}, "", 2, ""},
		{"a change may have been made", update, []int{503}, "", 1, tracker.CodeUnavailable},
		{"too often", get, []int{429, 200}, "0", 2, ""},
		{"later than the call may take", get, []int{429}, "3600", 1, tracker.CodeRateLimited},
		{"its own fault", get, []int{500}, "", 1, tracker.CodeInternal},
		{"ours", get, []int{404}, "", 1, tracker.CodeNotFound},
		{"elsewhere", get, []int{302}, "", 1, tracker.CodeInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tries int
			keys := map[string]bool{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				status := tt.status[min(tries, len(tt.status)-1)]
				tries++
				keys[r.Header.Get("Idempotency-Key")] = true
				w.Header().Set("Retry-After", tt.wait)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				fmt.Fprint(w, `{}`)
			}))
			defer server.Close()
			err := tt.ask(client(t, server.URL, "token", trackerclient.Options{}))
			if tt.code != "" {
				refused(t, err, tt.code)
			} else {
				must(t, err)
			}
			if tries != tt.tries || len(keys) != 1 {
				t.Fatalf("%d tries with %d keys, want %d with one", tries, len(keys), tt.tries)
			}
		})
	}
}

func TestNoTracker(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	c := client(t, server.URL, "secret-token", trackerclient.Options{Timeout: 5 * time.Second})
	_, err := c.GetTask(t.Context(), "T-1")
	refused(t, err, tracker.CodeUnavailable)
	server.Close()
	_, err = c.GetTask(t.Context(), "T-1")
	refused(t, err, tracker.CodeUnavailable)
	if strings.Contains(err.Error(), "127.0.0.1") || strings.Contains(err.Error(), "secret") {
		t.Fatalf("it tells too much: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		base string
		o    trackerclient.Options
		ok   bool
	}{
		{"https://tracker.example/api/v1", trackerclient.Options{}, true},
		{"http://localhost:8080", trackerclient.Options{}, true},
		{"http://[::1]:8080", trackerclient.Options{}, true},
		{"http://tracker.example", trackerclient.Options{}, false},
		{"http://tracker.example", trackerclient.Options{AllowPlain: true}, true},
		{"https://tracker.example", trackerclient.Options{Socket: "ws://tracker.example/ws"}, false},
		{"ftp://tracker.example", trackerclient.Options{}, false},
		{"https://u:p@tracker.example", trackerclient.Options{}, false},
		{"https://tracker.example?x", trackerclient.Options{}, false},
		{"tracker.example", trackerclient.Options{}, false},
	} {
		c, err := trackerclient.New(tt.base, "t", tt.o)
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.base, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
