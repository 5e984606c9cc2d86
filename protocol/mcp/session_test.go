package mcp

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// openSessions counts those that go-sdk keeps.
func openSessions(s *Server) int {
	n := 0
	for range s.sdk.Sessions() {
		n++
	}
	return n
}

const pingLine = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

// alive asks for something in a session.
func alive(s *Server, id string) bool {
	return askHandler(s, "Mcp-Session-Id: "+id, pingLine).Code == http.StatusOK
}

// openStream opens the stream of a session and returns when it is up.
func openStream(t *testing.T, url, id string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req := newRequest(ctx, t, "GET", url, "")
	req.Header.Set("Mcp-Session-Id", id)
	resp, err := httpClient(t).Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return resp
}

// go-sdk keeps idle MCP sessions for ever.
func TestIdleSessionsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		use  func(s *Server, id string)
		life time.Duration
	}{
		{"never used", func(*Server, string) {}, time.Minute},
		{"initialized", func(s *Server, id string) {
			askHandler(s, "Mcp-Session-Id: "+id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}, time.Hour},
		{"used and used again", func(s *Server, id string) {
			for range 3 {
				time.Sleep(50 * time.Second)
				askHandler(s, "Mcp-Session-Id: "+id, pingLine)
			}
		}, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(newFakeTools(), Options{})
				id := sessionByHandler(t, s)
				c.use(s, id)
				time.Sleep(c.life - time.Second)
				before := openSessions(s)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if after := openSessions(s); before != 1 || after != 0 || len(s.sessions.open) != 0 {
					t.Errorf("%d sessions, then %d", before, after)
				}
				if got := askHandler(s, "Mcp-Session-Id: "+id, pingLine); got.Code != http.StatusNotFound {
					t.Errorf("after its end: %d %s", got.Code, got.Body)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A call that outlasts every timeout does not lose its session, though nobody
// waits for it over HTTP any more.
func TestRunningCallsKeepTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := newFakeTools()
		f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
			<-release
			return tool.Text("late"), nil
		}
		s := New(f, Options{MaxSessions: 1})
		id := sessionByHandler(t, s)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			askHandlerWithin(ctx, s, "Mcp-Session-Id: "+id, callLine("7", "echo"))
		}()
		synctest.Wait()
		leave()
		<-left
		time.Sleep(2 * time.Hour)
		if got := askHandler(s, "", initialize); got.Code != http.StatusServiceUnavailable {
			t.Errorf("another session: %d %s", got.Code, got.Body)
		}
		if !alive(s, id) {
			t.Error("the session was ended under its call")
		}
		close(release)
		synctest.Wait()
		if got := askHandler(s, "", initialize); got.Code != http.StatusOK {
			t.Errorf("after the call: %d %s", got.Code, got.Body)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Clients that open sessions and forget them lock nobody out: not who opens
// one after them, and not who had one before.
func TestAbandonedSessionsMakeRoom(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{})
	url := newHTTP(t, s)
	streaming, working := openSession(t, url), openSession(t, url)
	openStream(t, url, streaming)
	if !alive(s, working) {
		t.Fatal("no session to begin with")
	}
	var first, last string
	for i := range 1100 {
		if last = sessionByHandler(t, s); last == "" {
			t.Fatalf("initialize %d was refused", i+1)
		}
		if i == 0 {
			first = last
		}
		if n := openSessions(s); n > 1000 {
			t.Fatalf("%d sessions after initialize %d", n, i+1)
		}
	}
	for name, id := range map[string]string{"with a stream": streaming, "at work": working, "last": last} {
		if !alive(s, id) {
			t.Errorf("the session %s was ended", name)
		}
	}
	got := askHandler(s, "Mcp-Session-Id: "+first, pingLine)
	if got.Code != http.StatusNotFound {
		t.Errorf("the oldest that was abandoned: %d %s", got.Code, got.Body)
	}
	if again := sessionByHandler(t, s); !alive(s, again) {
		t.Error("its client cannot begin anew")
	}
}

// Who was idle longest goes first; who has a stream, never.
func TestWhoMakesRoom(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{MaxSessions: 3})
	url := newHTTP(t, s)
	a, b, c := openSession(t, url), openSession(t, url), openSession(t, url)
	for _, id := range []string{a, b, c, a} { // b is idle longest
		if !alive(s, id) {
			t.Fatal(id)
		}
	}
	d := openSession(t, url)
	if alive(s, b) || !alive(s, c) || !alive(s, a) || !alive(s, d) {
		t.Error("not the one that was idle longest was ended")
	}
	for _, id := range []string{a, c, d} {
		openStream(t, url, id)
	}
	status, text := do(t, url, "POST", "", initialize)
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "3 sessions are open and in use, the most allowed") {
		t.Errorf("with three streams: %s", text)
	}
	if status, text := do(t, url, "POST", listenHeaders, listenLine("1")); status != http.StatusServiceUnavailable {
		t.Errorf("a subscription: %s", text)
	}
	body, headers := modernCall(1, "echo")
	if status, text := do(t, url, "POST", headers, body); status != http.StatusOK {
		t.Errorf("a modern call: %s", text)
	}
	if status, text := do(t, url, "DELETE", "Mcp-Session-Id: "+a, ""); status != http.StatusNoContent {
		t.Fatal(text)
	}
	for !hasRoom(s) { // the stream of a ends in its own time
		runtime.Gosched()
	}
	openSession(t, url)
}

func hasRoom(s *Server) bool {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.open)+s.sessions.taken < s.o.MaxSessions
}

const listenHeaders = "Mcp-Protocol-Version: 2026-07-28; Mcp-Method: subscriptions/listen"

// A subscription takes a place as long as it lasts.
func TestSubscriptionsTakePlaces(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{MaxSessions: 1})
	url := newHTTP(t, s)
	idle := openSession(t, url)
	ctx, cancel := context.WithCancel(within(t))
	req := newRequest(ctx, t, "POST", url, listenLine("1"))
	setHeaders(req, listenHeaders)
	resp, err := httpClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	if alive(s, idle) {
		t.Error("the idle session was kept")
	}
	if got := askHandler(s, "", initialize); got.Code != http.StatusServiceUnavailable {
		t.Errorf("a session beside it: %d %s", got.Code, got.Body)
	}
	cancel()
	for !hasRoom(s) {
		runtime.Gosched()
	}
	openSession(t, url)
}

// A DELETE that go-sdk refused ends nothing.
func TestRefusedDeleteKeepsTheSession(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{})
	url := newHTTP(t, s)
	id := openSession(t, url)
	if status, text := do(t, url, "DELETE", "Mcp-Protocol-Version: 1999-01-01; Mcp-Session-Id: "+id, ""); status != http.StatusBadRequest {
		t.Fatal(text)
	}
	if !alive(s, id) {
		t.Error("the session is gone")
	}
}

// Requests that race for the last places never get more than there are.
func TestRacingInitializesDoNotOvershoot(t *testing.T) {
	const most = 10
	s := newServer(t, newFakeTools(), Options{MaxSessions: most})
	var over sync.Once
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				got := askHandler(s, "", initialize)
				id := got.Header().Get("Mcp-Session-Id")
				if n := openSessions(s); n > most {
					over.Do(func() { t.Errorf("%d sessions", n) })
				}
				switch {
				case got.Code != http.StatusOK:
					t.Errorf("%d %s", got.Code, got.Body)
				case i%3 == 1:
					alive(s, id)
				case i%3 == 2:
					askHandlerMethod(s, "DELETE", "Mcp-Session-Id: "+id)
				}
			}
		})
	}
	all.Wait()
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	open := len(s.sessions.open)
	if queued := s.sessions.used.Len() + s.sessions.unused.Len(); s.sessions.taken != 0 || queued != open || openSessions(s) != open {
		t.Errorf("%d places are taken, %d of %d sessions wait, go-sdk has %d", s.sessions.taken, queued, open, openSessions(s))
	}
}

// A client that leaves during initialize leaves nothing behind.
func TestInitializeWithoutAListener(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{MaxSessions: 4})
	for i := range 200 {
		ctx, leave := context.WithCancel(t.Context())
		if i%2 == 0 {
			leave()
		} else {
			go leave()
		}
		askHandlerWithin(ctx, s, "", initialize)
		leave()
	}
	s.sessions.mu.Lock()
	taken, open := s.sessions.taken, len(s.sessions.open)
	s.sessions.mu.Unlock()
	if taken != 0 || open > 4 {
		t.Errorf("%d places are taken, %d sessions open", taken, open)
	}
	deadline := time.Now().Add(liveness)
	for openSessions(s) > 4 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := openSessions(s); n > 4 {
		t.Errorf("go-sdk keeps %d sessions", n)
	}
}

// BenchmarkSessionMemory says what an idle session costs.
func BenchmarkSessionMemory(b *testing.B) {
	const n = 1000
	for b.Loop() {
		s := New(newFakeTools(), Options{})
		before := memory()
		for range n {
			if got := askHandler(s, "", initialize); got.Code != http.StatusOK {
				b.Fatal(fmt.Sprint(got.Code))
			}
		}
		b.ReportMetric(float64(memory()-before)/n, "B/session")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// memory returns what is in use of heap and stacks, in bytes.
func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
