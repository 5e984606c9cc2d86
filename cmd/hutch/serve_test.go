package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/reload"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// patient bounds what must happen in a moment; it never decides a test that
// passes.
const patientFor = 30 * time.Second

// served is a running [App] on a port of its own.
type served struct {
	app   *App
	tools string // its folder
	url   string
	stop  context.CancelFunc
	done  chan error
}

// newTestApp returns an App over a folder of its own, with nothing shipped.
func newTestApp(t testing.TB, change func(*Config)) *App {
	t.Helper()
	cfg, p := newTestConfig(t, change)
	app, err := NewApp(cfg, p, quiet, false)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// newTestConfig has folders and a state of its own, and no shipped modules.
func newTestConfig(t testing.TB, change func(*Config)) (Config, program) {
	t.Helper()
	none, err := toolswasm.Open(fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	limits, err := defaultLimits()
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Tools: []string{t.TempDir()}, State: filepath.Join(t.TempDir(), "state"), Addr: "127.0.0.1:0", Limits: limits}
	cfg.Policy, cfg.Secrets.File = state{cfg.State}.policy(), state{cfg.State}.secrets()
	if change != nil {
		change(&cfg)
	}
	return cfg, program{worker: workertest.Command(t), shipped: none}
}

func startServe(t testing.TB, change func(*Config)) *served {
	t.Helper()
	cfg, p := newTestConfig(t, change)
	return startServer(t, cfg, p, quiet)
}

// startServer is startServe with the configuration of a server before, for one.
func startServer(t testing.TB, cfg Config, p program, log *slog.Logger) *served {
	t.Helper()
	return startChanged(t, cfg, p, log, func(*App) {})
}

// startChanged is startServer with something changed before anybody is answered.
func startChanged(t testing.TB, cfg Config, p program, log *slog.Logger, change func(*App)) *served {
	t.Helper()
	o, err := cfg.takeOver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	app, err := NewApp(cfg, p, log, true)
	if err != nil {
		t.Fatal(err)
	}
	change(app)
	l, err := app.listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &served{app: app, tools: app.cfg.Tools[0], url: app.base(l.Addr()), stop: stop}
	s.done = launch(func() error { return errors.Join(app.Serve(ctx, l, o), o.Release()) })
	return s
}

// end stops the server and checks that nothing of it is left, or of clients.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.halt(t)
	http.DefaultClient.CloseIdleConnections()
	goleak.VerifyNone(t)
}

func (s *served) halt(t testing.TB) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
	if err := s.app.Close(); err != nil {
		t.Error(err)
	}
}

// drop puts a module into the folder as a careful program does.
func (s *served) drop(t testing.TB, name string, body []byte) {
	t.Helper()
	if err := writeAtomic(filepath.Join(s.tools, name), body); err != nil {
		t.Fatal(err)
	}
}

func (s *served) get(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := http.Get(s.url + path)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// connect returns a client, and a channel that gets a value for each change of
// the list.
func (s *served) connect(t testing.TB) (*sdk.ClientSession, chan struct{}) {
	t.Helper()
	changed := make(chan struct{}, 100)
	session, err := connectTo(t.Context(), s.url, func() { changed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	return session, changed
}

// connectTo connects as a host of the time before 2026-07-28 does.
func connectTo(ctx context.Context, url string, changed func()) (*sdk.ClientSession, error) {
	return connectBy(ctx, &http.Transport{}, url, changed)
}

// connectBy is connectTo over connections that are the caller's to close.
func connectBy(ctx context.Context, transport *http.Transport, url string, changed func()) (*sdk.ClientSession, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		Capabilities:           &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed() },
	})
	return client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: transport}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
}

func greeter(name, text string) []byte {
	return fixedModule(`{"tools":[{"name":"`+name+`","description":"Says something.","inputSchema":{"type":"object","properties":{}}}]}`,
		`{"content":[{"type":"text","text":"`+text+`"}]}`)
}

func callText(t *testing.T, session *sdk.ClientSession, name string) string {
	t.Helper()
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{}})
	if err != nil {
		return err.Error()
	}
	if len(r.Content) != 1 {
		t.Fatalf("%d blocks", len(r.Content))
	}
	return r.Content[0].(*sdk.TextContent).Text
}

func await(t *testing.T, changed chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patientFor):
		t.Fatal("no change was told")
	}
}

func closeSession(t *testing.T, session *sdk.ClientSession) {
	t.Helper()
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// awaitModule waits until the server has made up its mind about a file.
func (s *served) awaitModule(t testing.TB, name string) registry.Module {
	t.Helper()
	deadline := time.After(4 * patientFor)
	for tick := time.Tick(5 * time.Millisecond); ; {
		for _, m := range s.app.modules.Modules() {
			if m.Name == name && (m.Serving != "" || m.Status == tool.Rejected) {
				return m
			}
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("%s was never looked at", name)
		}
	}
}

// A module that is put into the folder is there, one that is written over is
// another, and one that is taken away is gone: without a restart, and told.
func TestServeFollowsTheFolder(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	<-s.app.ready
	if code, body := s.get(t, "/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("readyz: %d %q", code, body)
	}
	session, changed := s.connect(t)
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	if got := callText(t, session, "hi"); !strings.Contains(got, "Tool not found: hi") {
		t.Errorf("before: %q", got)
	}

	s.drop(t, "hi.wasm", greeter("hi", "one"))
	await(t, changed)
	if got := callText(t, session, "hi"); got != "one" {
		t.Errorf("dropped: %q", got)
	}
	s.drop(t, "hi.wasm", []byte("not a module"))
	s.drop(t, "ho.wasm", greeter("ho", "two"))
	await(t, changed)
	if got := callText(t, session, "hi") + callText(t, session, "ho"); got != "onetwo" {
		t.Errorf("a broken version took the place of a good one: %q", got)
	}
	for _, name := range []string{"hi.wasm", "ho.wasm"} {
		if err := os.Remove(filepath.Join(s.tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, changed)
	if got := callText(t, session, "hi"); !strings.Contains(got, "Tool not found: hi") {
		t.Errorf("removed: %q", got)
	}
}

// What a scrape shows is bounded and true.
// The version before goes on serving although no folder offers it any more: its
// bytes must outlive the day that unneeded ones are kept.
func TestServingBytesAreNotPruned(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	s.drop(t, "hi.wasm", greeter("hi", "one"))
	session, changed := s.connect(t)
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	await(t, changed)
	s.drop(t, "hi.wasm", []byte("not a module"))
	serving := func() string {
		for t.Context().Err() == nil {
			for _, m := range s.app.modules.Modules() {
				if m.Name == "hi.wasm" && m.Serving != "" && m.Serving != m.Digest {
					return m.Serving
				}
			}
		}
		t.Fatal("the broken file is not noticed")
		return ""
	}()
	path := filepath.Join(s.app.cfg.State, "modules", serving+".wasm")
	old := time.Now().Add(-2 * reload.BlobTTL)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	s.app.prune()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the serving version's bytes: %v", err)
	}
	if got := callText(t, session, "hi"); got != "one" {
		t.Errorf("the version before says %q", got)
	}
}

func TestServeCounts(t *testing.T) {
	s := startServe(t, nil)
	defer s.end(t)
	s.drop(t, "bad.wasm", []byte("not a module"))
	s.drop(t, "hi.wasm", greeter("hi", "one"))
	session, _ := s.connect(t)
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	for callText(t, session, "hi") != "one" {
		<-s.app.ready // the folder may have been read before the file was there
	}
	for _, name := range []string{"nothing", "nothing2"} {
		callText(t, session, name)
	}
	_, body := s.get(t, "/metrics")
	for _, line := range []string{
		`hutch_calls_total{status="ok",tool="hi"} 1`,
		`hutch_calls_total{status="not_found",tool="other"} `,
		`hutch_modules{status="ready"} 1`,
		`hutch_modules{status="rejected"} 1`,
		`hutch_tools 1`,
		`hutch_workers 1`,
		`hutch_worker_starts_total 1`,
		`hutch_http_requests_total{code="200",route="/mcp"} `,
		`hutch_reloads_total `,
		`hutch_call_duration_seconds_count `,
		`go_goroutines `,
		`process_open_fds `,
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(body, "nothing") {
		t.Error("a caller's name is a label")
	}
}

// A call that is running when hutch is told to stop gets its answer, and an
// open stream does not hold hutch up.
func TestServeLetsCallsFinish(t *testing.T) {
	s := startServe(t, func(cfg *Config) { cfg.Limits.Call.Wall = time.Second })
	said := `{"tools":[{"name":"e","description":"Never ends.","inputSchema":{"type":"object","properties":{}}}]}`
	s.drop(t, "e.wasm", endlessModule(said))
	session, _ := s.connect(t) // keeps a GET stream open
	for t.Context().Err() == nil {
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) == 1 {
			break
		}
	}
	answer := make(chan string, 1)
	go func() { answer <- callText(t, session, "e") }()
	for s.app.pool.Stats().Running == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the call does not start")
		}
	}
	s.halt(t)
	if got := <-answer; !strings.Contains(got, "1s") && !strings.Contains(got, "time") {
		t.Errorf("the running call got %q", got)
	}
	_ = session.Close() // its server is gone
	goleak.VerifyNone(t)
}

// What was found out about a module under one memory limit does not hold under
// another.
func TestMemoryLimitIsAskedAnew(t *testing.T) {
	onePage, four := wasmSection(5, wasmList("\x00\x01")), wasmSection(5, wasmList("\x00\x04"))
	state, tools := filepath.Join(t.TempDir(), "state"), t.TempDir()
	if err := writeAtomic(filepath.Join(tools, "hi.wasm"), bytes.Replace(greeter("hi", "one"), onePage, four, 1)); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		limit int64
		want  tool.Status
	}{{4, tool.Ready}, {3, tool.Rejected}, {4, tool.Ready}} {
		app := newTestApp(t, func(cfg *Config) {
			cfg.State, cfg.Tools, cfg.Limits.Call.MemoryBytes = state, []string{tools}, c.limit*abi.PageBytes
		})
		if err := app.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := app.modules.Modules()[0]
		if m.Status != c.want || c.want == tool.Rejected && !strings.Contains(m.Reason, "4 pages of 64 KiB, at most 3") {
			t.Errorf("%d: %s: %s", i, m.Status, m.Reason)
		}
		if err := app.Close(); err != nil {
			t.Error(err)
		}
	}
}
