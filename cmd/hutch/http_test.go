package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerhub"
	"github.com/hutch-run/hutch/protocol/trackerrest"
)

var quiet = slog.New(slog.DiscardHandler)

// someTokens is a store of tokens.
type someTokens []access.Token

func (s someTokens) Tokens(context.Context) ([]access.Token, error) { return s, nil }
func (someTokens) AddToken(context.Context, access.Token) error     { return nil }
func (someTokens) RevokeToken(context.Context, string) (bool, error) {
	return false, nil
}

// testHandler is the listener's handler with a face that says it was reached.
func testHandler(t *testing.T, reached *atomic.Int32, ready error, tokens ...access.Token) http.Handler {
	t.Helper()
	keys, err := access.OpenKeys(t.Context(), someTokens(tokens), nil)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := defaultLimits()
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	a := &App{cfg: Config{Addr: "127.0.0.2:8420", Limits: limits}, log: quiet, metrics: m, keys: keys}
	nobody := func(*http.Request) (tracker.Service, error) { reached.Add(1); return nil, nil }
	rest, err := trackerrest.New(nobody, trackerrest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hub := trackerhub.New(func(r *http.Request, _ string) (tracker.Service, error) { return nobody(r) }, trackerhub.Options{})
	return newHandler(a.cfg, faces{
		tracker: &embedded{rest: rest, hub: hub},
		door:    a.door(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}), mcp: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reached.Add(1)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		}),
		agents: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached.Add(1) }), metrics: m.handler(), ready: func() error { return ready }, counted: m.request,
	}, quiet)
}

// everyRoute that answers with 200.
var everyRoute = []string{"GET /mcp", "POST /mcp", "OPTIONS /mcp", "POST /agui", "GET /agui/threads", "POST /agents/a/agui", "GET /agents/a/agui/threads/t/events", "GET /healthz", "GET /readyz", "GET /metrics"}

// H01: a name that was rebound to this machine reaches no route.
func TestH01_ForeignHostIsRefused(t *testing.T) {
	for host, want := range map[string]int{
		"localhost:8420": 200, "LOCALHOST:8420": 200, "localhost": 200, "127.0.0.1:1": 200, "[::1]:8420": 200, "[::1]": 200,
		"127.0.0.2:8420": 200,
		"evil.test":      403, "evil.test:8420": 403, "localhost.evil.test": 403, "localhost.": 403, "localhost:8420.evil.test": 403,
		"sub.localhost": 403, "127.0.0.1.evil.test": 403, "127.0.0.3": 403, "0.0.0.0:8420": 403, "2130706433": 403, "[::1": 403,
		"[::ffff:127.0.0.1]": 403, "localhost@evil.test": 403, "192.168.1.7:8420": 403, "": 403,
	} {
		for _, route := range everyRoute {
			var reached atomic.Int32
			method, path, _ := strings.Cut(route, " ")
			r := httptest.NewRequest(method, path, nil)
			r.Host = host
			if got := answer(testHandler(t, &reached, nil), r).Code; got != want {
				t.Errorf("%s with host %q: %d, want %d", route, host, got, want)
			}
			if want == 403 && reached.Load() != 0 {
				t.Errorf("%s with host %q reached the face", route, host)
			}
		}
	}
}

// H02: an Origin is absent or exactly the host that was asked.
func TestH02_ForeignOriginIsRefused(t *testing.T) {
	for _, c := range []struct {
		origins []string
		want    int
	}{
		{nil, 200},
		{[]string{"http://localhost:8420"}, 200},
		{[]string{"null"}, 403},
		{[]string{""}, 403},
		{[]string{"http://evil.test"}, 403},
		{[]string{"http://localhost:8420.evil.test"}, 403},
		{[]string{"http://localhost.evil.test:8420"}, 403},
		{[]string{"http://sub.localhost:8420"}, 403},
		{[]string{"http://localhost"}, 403},
		{[]string{"http://localhost:8421"}, 403},
		{[]string{"http://127.0.0.1:8420"}, 403},
		{[]string{"https://localhost:8420"}, 403},
		{[]string{"http://localhost:8420/"}, 403},
		{[]string{"http://localhost:8420", "http://evil.test"}, 403},
	} {
		for _, route := range everyRoute {
			var reached atomic.Int32
			method, path, _ := strings.Cut(route, " ")
			r := httptest.NewRequest(method, path, nil)
			r.Host, r.Header["Origin"] = "localhost:8420", c.origins
			if got := answer(testHandler(t, &reached, nil), r).Code; got != c.want {
				t.Errorf("%s with origins %q: %d, want %d", route, c.origins, got, c.want)
			}
			if want := c.want == 200 && (path == "/mcp" || strings.Contains(path, "/agui")); want != (reached.Load() == 1) {
				t.Errorf("%s with origins %q reached the face: %t", route, c.origins, !want)
			}
		}
	}
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	notReady := errors.New("loading 3 modules")
	const nothing = `{"error":{"code":"not_found","message":"no such route: hutch serves /mcp, /agui, /agents/NAME/agui, /api/v1, /ws, /healthz, /readyz and /metrics"}}` + "\n"
	for _, c := range []struct {
		route string
		ready error
		code  int
		body  string
	}{
		{"GET /healthz", notReady, 200, "ok\n"},
		{"GET /readyz", nil, 200, "ready\n"},
		{"GET /readyz", notReady, 503, "loading 3 modules\n"},
		{"POST /healthz", nil, 405, `{"error":{"code":"method_not_allowed","message":"allowed here is GET"}}` + "\n"},
		{"GET /", nil, 404, nothing},
		{"GET /mcp/", nil, 404, nothing},
		{"GET /agents/a", nil, 404, nothing},
		{"GET /metrics/../x", nil, 404, nothing},
	} {
		method, path, _ := strings.Cut(c.route, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Host = "localhost"
		var reached atomic.Int32
		w := answer(testHandler(t, &reached, c.ready), r)
		id := w.Header().Get("X-Request-Id")
		body := strings.NewReplacer(" (request "+id+")", "", `,"requestId":"`+id+`"`, "").Replace(w.Body.String())
		if w.Code != c.code || body != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.route, w.Code, w.Body, c.code, c.body)
		}
		if allow := w.Header().Get("Allow"); (allow == "GET") != (c.code == 405) {
			t.Errorf("%s: Allow: %s", c.route, allow)
		}
		if says := body != w.Body.String(); says != (c.code >= 400 && c.code != 503) { // a probe's answer is only its own
			t.Errorf("%s: %q", c.route, w.Body)
		}
		if w.Header().Get("X-Request-Id") == "" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", c.route, w.Header())
		}
	}
}

// H08: a body over the limit is refused, by what it says or by what comes.
func TestH08_BodyIsBounded(t *testing.T) {
	const most = 4 << 20
	for _, c := range []struct {
		size, declared int64
		want           int
		reached        int32
	}{
		{most, most, 200, 1},
		{most + 1, most + 1, 413, 0},
		{1 << 30, 1 << 30, 413, 0},
		{most, -1, 200, 1},
		{most + 1, -1, 400, 1},
	} {
		var reached atomic.Int32
		r := httptest.NewRequest("POST", "/mcp", io.LimitReader(zeroes{}, c.size))
		r.Host, r.ContentLength = "localhost", c.declared
		if w := answer(testHandler(t, &reached, nil), r); w.Code != c.want || reached.Load() != c.reached || c.reached == 0 && !strings.Contains(w.Body.String(), `{"error":{"code":"too_large"`) {
			t.Errorf("%d bytes, declared %d: %d %q, want %d", c.size, c.declared, w.Code, w.Body, c.want)
		}
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A deadline for the body must not outlive it: an answer may stream for longer.
func TestBodyDeadlineEndsWithTheBody(t *testing.T) {
	conn := &deadlineWriter{ResponseWriter: httptest.NewRecorder()}
	h := boundedBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if conn.deadline.IsZero() {
			t.Error("no deadline before the body was read")
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if !conn.deadline.IsZero() {
			t.Error("a deadline is left after the body was read")
		}
	}), 10)
	h.ServeHTTP(conn, httptest.NewRequest("POST", "/", strings.NewReader("{}")))
}

type deadlineWriter struct {
	http.ResponseWriter
	deadline time.Time
}

func (w *deadlineWriter) SetReadDeadline(t time.Time) error {
	w.deadline = t
	return nil
}

func TestBrokenHandlerAnswers(t *testing.T) {
	var log strings.Builder
	h := identified(recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic("secret detail")
	}), slog.New(numbered{slog.NewTextHandler(&log, nil)})))
	w := answer(h, httptest.NewRequest("GET", "/", nil))
	id := w.Header().Get("X-Request-Id")
	if w.Code != 500 || w.Body.String() != `{"error":{"code":"internal","message":"hutch could not answer: its log says why","requestId":"`+id+`"}}`+"\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "secret detail") || !strings.Contains(log.String(), "request="+id) {
		t.Errorf("log: %s", log.String())
	}
}

// H08: connections over the cap are closed at once and counted; a slot is free
// again when its connection ends.
func TestH08_ConnectionsAreCapped(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	cl := capped(l, 2, func() { refused.Add(1) })
	var reached atomic.Int32
	srv := newServer(context.Background(), testHandler(t, &reached, nil), quiet)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(cl) }()
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()

	first, second := get(t, l.Addr()), get(t, l.Addr())
	third, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := third.Read(make([]byte, 1)); err == nil {
		t.Error("the third connection is open")
	}
	if refused.Load() != 1 {
		t.Errorf("%d refused, want 1", refused.Load())
	}
	for _, c := range []net.Conn{first, second, third} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	// The server notices in its own time; meanwhile there is no free slot.
	for {
		c, err := tryGet(l.Addr())
		if err != nil {
			continue
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		return
	}
}

// get sends one request and keeps the connection.
func get(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	c, err := tryGet(addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryGet(addr net.Addr) (net.Conn, error) {
	c, err := net.Dial("tcp", addr.String())
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && !strings.Contains(line, "200") {
		err = errors.New(line)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
