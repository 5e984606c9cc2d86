package gate_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/host/trackerproxy"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Whoever reads the log learns what a tool was refused and which command allows it,
// once in each call however often it asks.
func TestRefusalsAreToldToTheOperator(t *testing.T) {
	w := newWorld(t, "    grant: {http: [{host: a.example}]}\n")
	host := w.begin()
	for range 3 {
		wants(t, ask(host, abi.OpHTTP, get("https://b.example/")), abi.Denied, "hutch tools grant x.wasm --http b.example")
		wants(t, ask(host, abi.OpKVGet, `{"key":"a"}`), abi.Denied, "run this in a terminal: hutch tools grant x.wasm")
	}
	for _, line := range []string{`allow="hutch tools grant x.wasm --http b.example"`, `allow="hutch tools grant x.wasm"`} {
		if n := strings.Count(w.log.String(), line); n != 1 {
			t.Errorf("%q stands %d times in the log:\n%s", line, n, w.log)
		}
	}
	wants(t, ask(w.begin(), abi.OpHTTP, get("https://b.example/")), abi.Denied, "b.example")
	if n := strings.Count(w.log.String(), "--http b.example\""); n != 2 {
		t.Errorf("another call is told of %d times in all:\n%s", n, w.log)
	}
}

// What a tool was refused at the tracker is logged, by whoever refused it: once in each call
// for a scope. What it gets is not.
func TestRefusalsAtTheTrackerAreLogged(t *testing.T) {
	w := newWorld(t, "    grant: {tracker: [\"tasks:read\", \"tasks:take\"]}\n")
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			rw.WriteHeader(http.StatusForbidden)
		}
		_, _ = rw.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.Gate = gate.New(gate.Options{Logger: slog.New(slog.NewTextHandler(w.log, nil)), Tracker: trackerproxy.New(trackerproxy.Options{
		Account: func(context.Context, trackerproxy.Access) (trackerproxy.Account, error) {
			return trackerproxy.Account{Base: base, Token: "t"}, nil
		},
	})})
	host := w.begin()
	for range 3 {
		wants(t, ask(host, abi.OpTracker, `{"method":"GET","path":"/tasks"}`), abi.OK, `"status":200`)
		wants(t, ask(host, abi.OpTracker, `{"method":"GET","path":"/metrics"}`), abi.Denied, "open to no module")
		wants(t, ask(host, abi.OpTracker, `{"method":"GET","path":"/members"}`), abi.Denied, "needs the scope members:read")
		wants(t, ask(host, abi.OpTracker, `{"method":"POST","path":"/tasks/T-1/take","body":{"agent_slug":"boss"}}`), abi.OK, `"status":403`)
	}
	for _, part := range []string{
		`tool=take principal=local agent="" asked="GET /metrics" scope=""`,
		`asked="GET /members" scope=members:read`, `asked="POST /tasks/T-1/take" scope=tasks:take`,
	} {
		if n := strings.Count(w.log.String(), part); n != 1 {
			t.Errorf("%q stands %d times in the log:\n%s", part, n, w.log)
		}
	}
	if n := strings.Count(w.log.String(), "\n"); n != 3 {
		t.Errorf("the log has %d lines:\n%s", n, w.log)
	}
}
