package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// newcomer is somebody who has just started hutch in an empty folder, with the
// modules that come with it, and an MCP client.
type newcomer struct {
	*testing.T
	cfg     Config
	shipped *toolswasm.Set
	session *sdk.ClientSession
	log     *transcript
}

// shippedConfig is a configuration whose hutch comes with what is built.
func shippedConfig(t *testing.T) (Config, program) {
	t.Helper()
	cfg, p := newTestConfig(t, nil)
	set, err := toolswasm.Shipped()
	must(t, err)
	if len(set.Modules()) == 0 {
		skipUnlessRequired(t, "no module is built: make tools")
	}
	p.shipped = set
	return cfg, p
}

// overHTTP starts hutch serve.
func overHTTP(t *testing.T, cfg Config, p program) (n *newcomer, end func()) {
	n = &newcomer{T: t, cfg: cfg, shipped: p.shipped, log: &transcript{}}
	s := startServer(t, cfg, p, slog.New(slog.NewTextHandler(n.log, nil)))
	n.session, _ = s.connect(t)
	return n, func() { closeSession(t, n.session); s.end(t) }
}

// overStdio starts hutch mcp.
func overStdio(t *testing.T, cfg Config, p program) (n *newcomer, end func()) {
	n = &newcomer{T: t, cfg: cfg, shipped: p.shipped, log: &transcript{}}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	home := &tenant{cfg: cfg, p: p, log: slog.New(slog.NewTextHandler(n.log, nil))}
	done := launch(func() error { return errors.Join(home.ServeStdio(context.Background(), in, out), out.Close()) })
	var err error
	n.session, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	must(t, err)
	return n, func() {
		closeSession(t, n.session)
		must(t, errors.Join(toServer.Close(), <-done))
	}
}

// lists reports whether the client is offered a tool.
func (n *newcomer) lists(name string) bool {
	n.Helper()
	all, err := n.session.ListTools(n.Context(), &sdk.ListToolsParams{})
	must(n.T, err)
	return slices.ContainsFunc(all.Tools, func(tool *sdk.Tool) bool { return tool.Name == name })
}

// call returns the text of an answer, and whether it is an error.
func (n *newcomer) call(name string, args map[string]any) (string, bool) {
	n.Helper()
	r, err := n.session.CallTool(n.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	must(n.T, err)
	if len(r.Content) != 1 {
		n.Fatalf("%d blocks", len(r.Content))
	}
	return r.Content[0].(*sdk.TextContent).Text, r.IsError
}

// awaitCall repeats a call until it is no error.
func (n *newcomer) awaitCall(name string, args map[string]any) string {
	n.Helper()
	deadline := time.After(patientFor)
	for tick := time.Tick(50 * time.Millisecond); ; {
		text, failed := n.call(name, args)
		if !failed {
			return text
		}
		select {
		case <-tick:
		case <-deadline:
			n.Fatalf("%s %v goes on to fail: %s", name, args, text)
		}
	}
}

// decide allows a module something, as the command does that refusals name: it
// writes the operator's entry, bound to the bytes that are there.
func (n *newcomer) decide(module, grant string) {
	n.Helper()
	i := slices.IndexFunc(n.shipped.Modules(), func(m toolswasm.Module) bool { return m.Name == module })
	policy := fmt.Sprintf("version: 1\nmodules:\n  %s:\n    digest: sha256:%s\n    grant: %s\n", module, n.shipped.Modules()[i].Digest, grant)
	must(n.T, os.WriteFile(n.cfg.Policy, []byte(policy), 0o600))
}

// site is a web site of this machine, with a page to read.
func site(t *testing.T) (base, port string, close func()) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/old":
			http.Redirect(w, r, "/tides", http.StatusMovedPermanently)
		case "/tides":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<title>Tides</title><script>x</script><h1>How tides work</h1><p>The <a href="/moon">Moon</a> pulls.</p>`)
		case "/api":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"method":%q,"q":%q}`, r.Method, r.URL.Query().Get("q"))
		default:
			http.Error(w, "no such page here", http.StatusNotFound)
		}
	}))
	at, err := url.Parse(s.URL)
	must(t, err)
	return s.URL, at.Port(), s.Close
}

// What an operator decides about a shipped module takes the place of what it came
// with, also where that is less.
func TestOperatorsReplaceTheShippedPolicy(t *testing.T) {
	base, port, closeSite := site(t)
	cfg, p := shippedConfig(t)
	n, end := overHTTP(t, cfg, p)
	defer end()
	defer closeSite()
	ask := map[string]any{"url": base + "/api", "method": "POST", "query": map[string]any{"q": "a b"}}
	if got, failed := n.call("http_json", ask); !failed || !strings.HasSuffix(got, "hutch tools grant httpjson.wasm --http POST:http://127.0.0.1:"+port) {
		t.Errorf("before anybody decided: %s", got)
	}
	n.decide("httpjson.wasm", "{http: [{scheme: http, host: 127.0.0.1, ports: ["+port+"], methods: [POST], allow_private: [127.0.0.1/32]}]}")
	if got := n.awaitCall("http_json", ask); !strings.Contains(got, `"json":{"method":"POST","q":"a b"}`) {
		t.Errorf("granted: %s", got)
	}
	if _, failed := n.call("note_add", map[string]any{"title": "a", "text": "b"}); failed {
		t.Error("notes lost what they came with, though nobody decided about them")
	}
	n.decide("notes.wasm", "{}")
	deadline := time.After(patientFor)
	for tick := time.Tick(50 * time.Millisecond); ; {
		got, failed := n.call("note_list", nil)
		if failed && strings.HasSuffix(got, "hutch tools grant notes.wasm") {
			break
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("notes still have what they came with: %s", got)
		}
	}
}

// Notes work at once, on every face and by hand, and are there after a restart.
func TestNotesSurviveARestart(t *testing.T) {
	cfg, p := shippedConfig(t)
	n, end := overHTTP(t, cfg, p)
	if got, failed := n.call("note_add", map[string]any{"title": "tides", "text": "the Moon pulls"}); failed || got != `{"id":1}` {
		t.Errorf("got %s", got)
	}
	end()
	n, end = overStdio(t, cfg, p)
	if got, failed := n.call("note_search", map[string]any{"query": "moon"}); failed || !strings.Contains(got, `"title":"tides"`) {
		t.Errorf("after a restart: %s", got)
	}
	end()
	if got, err := printed(t, cfg, p, "tools", "call", "note_get", `{"id":1}`); err != nil || !strings.Contains(got, `"text":"the Moon pulls"`) {
		t.Errorf("by hand: %s, %v", got, err)
	}
}

// The policy that modules are shipped with speaks of modules that are shipped and of
// no others, and none of them has to be decided about first.
func TestShippedPolicyFitsTheModules(t *testing.T) {
	cfg, p := shippedConfig(t)
	app, err := NewApp(cfg, p, quiet, false)
	must(t, err)
	defer func() { must(t, app.Close()) }()
	must(t, app.Load(t.Context()))
	for _, m := range app.modules.Modules() {
		if m.Status != "ready" {
			t.Errorf("%s: %s: %s", m.Name, m.Status, m.Reason)
		}
	}
	text, err := p.shipped.Policy()
	must(t, err)
	policy, err := readShippedPolicy(text)
	must(t, err)
	for _, name := range policy.Modules() {
		if _, err := os.Stat(filepath.Join("../../tools-wasm", name)); err != nil {
			t.Errorf("%s is granted something and is not shipped", name)
		}
		if e, _ := policy.Entry(name); e.Digest != "" {
			t.Errorf("%s: a digest stands in the source, where no build can know it", name)
		}
	}
}
