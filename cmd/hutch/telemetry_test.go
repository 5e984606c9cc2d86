package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/hutch-run/hutch/host/secrets"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// tellingServer serves an agent, and a tool that asks a server with a secret, and tells c.
func tellingServer(t *testing.T, c *collector, log *slog.Logger, upstream string, change func(*Config)) *served {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.yaml")
	must(t, os.WriteFile(script, []byte(asksScript), 0o600))
	settled, err := readConfig(t, fmt.Sprintf("agents:\n  player: {model: {script: %q}, prompt: a confidential prompt}\n", script), nil)
	must(t, err)
	cfg, p := newTestConfig(t, change)
	cfg.Agents, cfg.Telemetry = settled.Agents, settled.Telemetry
	cfg.Telemetry.Endpoint = c.URL
	if change != nil {
		change(&cfg)
	}
	p.env = func(string) string { return "" }
	p.environ = func() []string {
		return []string{"HUTCH_SECRET_KEY=" + aSecret, "HUTCH_SECRET_COLLECTOR=let-me-in-let-me-in"}
	}
	s := startServer(t, cfg, p, log)
	asks := dialecttest.Module{
		Tools:    []tool.Spec{dialecttest.Spec("asks")},
		Requests: tool.Requests{"http": []byte(`[{"reason":"It asks."}]`), "secrets": []byte(`[{"reason":"It may."}]`)},
		Do: []dialecttest.Step{dialecttest.Op(abi.OpHTTP, 1, fmt.Sprintf(
			`{"method":"GET","url":%q,"headers":{"Authorization":"secret://key"}}`, upstream+"/a-confidential-path?q=a-confidential-query"))},
	}
	s.drop(t, "asks.wasm", asks.Bytes())
	m := s.awaitModule(t, "asks.wasm")
	s.decideAll(t, strings.Replace(letting(m, reach(t, upstream, "")), "]}\n", "], secrets: [{name: key, header: Authorization, host: 127.0.0.1}]}\n", 1))
	s.awaitReadyModule(t, "asks.wasm")
	return s
}

// endWith is end for a server beside others of the test, which are closed after it.
func (s *served) endWith(t *testing.T, others ...*httptest.Server) {
	t.Helper()
	s.halt(t)
	leaveNothing(t, others...)
}

// leaveNothing closes servers of a test, and checks that nothing of it is left.
func leaveNothing(t *testing.T, others ...*httptest.Server) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	for _, o := range others {
		o.Close()
	}
	goleak.VerifyNone(t)
}

// converse has the agent answer, and returns all that is streamed.
func (s *served) converse(t *testing.T, run, text string, header http.Header) string {
	t.Helper()
	body := fmt.Sprintf(`{"threadId":"t","runId":%q,"messages":[{"id":%q,"role":"user","content":%q}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`, run, run+"-m", text)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/agui", strings.NewReader(body))
	must(t, err)
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	all, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return string(all)
}

// echoingUpstream says back what it was sent, and remembers the headers.
func echoingUpstream() (*httptest.Server, *atomic.Pointer[http.Header]) {
	var seen atomic.Pointer[http.Header]
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := r.Header.Clone()
		seen.Store(&h)
		sayBack(w, r)
	})), &seen
}

const someTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// A request, the run that it begins, the model, the tool that the model calls and what
// that asks of the host are one trace, and none of it says what was said.
func TestTelemetryTellsATraceOfARun(t *testing.T) {
	c := newCollector(t)
	defer c.Close()
	upstream, seen := echoingUpstream()
	defer upstream.Close()
	log := &transcript{}
	s := tellingServer(t, c, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), upstream.URL, func(cfg *Config) {
		cfg.Telemetry.Headers = []secrets.Value{secrets.Hide("headers", "Authorization=Bearer secret://collector")}
		cfg.Telemetry.Attributes = []string{"deployment.environment.name=a%20test"}
	})
	got := s.converse(t, "run-1", "please go", http.Header{"X-Request-Id": {"of-mine.1"}, "Traceparent": {someTrace}, "Baggage": {"a=confidential"}})
	if !strings.Contains(got, "RUN_FINISHED") {
		t.Fatalf("streamed: %s", got)
	}
	mcpClient := s.clientOf(t, "2025-11-25", "")
	if got := mcpClient.says(t, "asks"); !strings.Contains(got, "for") {
		t.Errorf("over MCP: %s", got)
	}
	if got := mcpClient.says(t, "confidential_name"); !strings.Contains(got, "confidential_name") {
		t.Errorf("an unknown one over MCP: %s", got)
	}
	mcpClient.close(t)
	s.endWith(t, c.Server, upstream)

	if want := `POST /agui
  invoke_agent player
    chat
    execute_tool asks
      host_call http_request
    chat
`; !strings.HasPrefix(c.tree(), want) {
		t.Errorf("tree:\n%s\nwant it to begin with\n%s", c.tree(), want)
	}
	if want := "POST /mcp\n  execute_tool asks\n    host_call http_request\n"; !strings.Contains(c.tree(), want) {
		t.Errorf("tree:\n%s\nwant in it\n%s", c.tree(), want)
	}
	if !strings.Contains(c.tree(), "POST /mcp\n  execute_tool\n") {
		t.Errorf("an unknown tool:\n%s", c.tree())
	}
	request, about := c.named(t, "POST /agui")
	if len(request.ParentSpanId) > 0 || len(request.Links) != 1 || fmt.Sprintf("%x", request.Links[0].TraceId) != someTrace[3:35] {
		t.Errorf("a caller without a token: parent %x, links %v", request.ParentSpanId, request.Links)
	}
	hasAttributes(t, "request", about, map[string]string{"http.request.method": "POST", "http.route": "/agui", "http.response.status_code": "200", "hutch.request.id": "of-mine.1"})
	run, about := c.named(t, "invoke_agent player")
	hasAttributes(t, "run", about, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "hutch", "gen_ai.agent.name": "player", "gen_ai.conversation.id": "t",
		"hutch.run.id": "run-1", "hutch.run.outcome": "success", "hutch.request.id": "of-mine.1", "hutch.face": "agui", "gen_ai.request.model": "script",
	})
	if !bytes.Equal(run.TraceId, request.TraceId) {
		t.Error("the run is of another trace than its request")
	}
	_, about = c.named(t, "chat")
	hasAttributes(t, "model", about, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "hutch", "gen_ai.agent.name": "player", "gen_ai.conversation.id": "t",
		"gen_ai.response.finish_reasons": "tool_call", "gen_ai.response.time_to_first_chunk": "a number", "hutch.request.id": "of-mine.1",
	})
	_, about = c.named(t, "execute_tool asks")
	hasAttributes(t, "tool", about, map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "asks", "gen_ai.tool.type": "extension", "hutch.call.status": "ok",
		"hutch.call.host_calls": "1", "gen_ai.agent.name": "player", "hutch.run.id": "run-1", "hutch.request.id": "of-mine.1",
	})
	call, about := c.named(t, "host_call http_request")
	hasAttributes(t, "host call", about, map[string]string{
		"hutch.host_call.op": "http_request", "hutch.host_call.code": "ok", "hutch.module.name": "asks.wasm", "server.address": "127.0.0.1",
		"network.peer.address": "127.0.0.1", "hutch.host_call.redactions": "1", "hutch.request.id": "of-mine.1",
	})
	if call.Kind != traces.Span_SPAN_KIND_CLIENT || call.EndTimeUnixNano <= call.StartTimeUnixNano {
		t.Errorf("host call: %v, %d to %d", call.Kind, call.StartTimeUnixNano, call.EndTimeUnixNano)
	}
	hasAttributes(t, "hutch", c.about, map[string]string{"service.name": "hutch", "deployment.environment.name": "a test"})
	if got := c.header.Get("Authorization"); got != "Bearer let-me-in-let-me-in" {
		t.Errorf("the collector was shown %q", got)
	}
	for _, not := range []string{"confidential", aSecret, "let-me-in", "please go", "one moment"} {
		if c.says(not) {
			t.Errorf("%q was told", not)
		}
	}
	if h := *seen.Load(); h.Get("Traceparent") != "" || h.Get("Tracestate") != "" || h.Get("Baggage") != "" || h.Get("X-Request-Id") != "" {
		t.Errorf("what a tool asked saw %v", h)
	}
	if strings.Contains(log.String(), "let-me-in") || strings.Contains(log.String(), aSecret) {
		t.Error("a secret is in the log")
	}
	c.counted(t)
}

// counted checks the figures of that run.
func (c *collector) counted(t *testing.T) {
	t.Helper()
	counts := map[string]uint64{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, points := range c.series {
		for _, p := range points {
			about := attributesOf(p.Attributes)
			counts[name+" "+about["gen_ai.operation.name"]+about["hutch.host_call.op"]+about["http.route"]+" "+about["error.type"]] += p.Count
			if p.GetSum() <= 0 || uint64(len(p.BucketCounts)) != uint64(len(p.ExplicitBounds)+1) {
				t.Errorf("%s: %v", name, p)
			}
		}
	}
	for name, want := range map[string]uint64{
		"gen_ai.client.operation.duration invoke_agent ":          1,
		"gen_ai.client.operation.duration chat ":                  2,
		"gen_ai.client.operation.duration execute_tool ":          2,
		"gen_ai.client.operation.duration execute_tool not_found": 1,
		"hutch.host_call.duration http_request ":                  2,
		"http.server.request.duration /agui ":                     1,
	} {
		if counts[name] != want {
			t.Errorf("%s: %d, want %d; there are %v", name, counts[name], want, counts)
		}
	}
}

func hasAttributes(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %s is %q, want %q; there are %v", what, key, got[key], value, got)
		}
	}
}

// What is said is told when a setting says so, without the values of secrets.
func TestTelemetryTellsContents(t *testing.T) {
	c := newCollector(t)
	defer c.Close()
	upstream, _ := echoingUpstream()
	defer upstream.Close()
	s := tellingServer(t, c, quiet, upstream.URL, func(cfg *Config) { cfg.Telemetry.Content = true })
	s.converse(t, "run-1", "please go, "+aSecret, nil)
	s.endWith(t, c.Server, upstream)
	_, about := c.named(t, "chat")
	for key, want := range map[string]string{
		"gen_ai.system_instructions": "a confidential prompt", "gen_ai.input.messages": `"content":"please go, [redacted:key]"`, "gen_ai.output.messages": "one moment",
	} {
		if !strings.Contains(about[key], want) {
			t.Errorf("model: %s is %q, want %q in it", key, about[key], want)
		}
	}
	if want := `"type":"tool_call"`; !strings.Contains(about["gen_ai.output.messages"], want) {
		t.Errorf("model: answered %q, want %q in it", about["gen_ai.output.messages"], want)
	}
	_, about = c.named(t, "execute_tool asks")
	if !strings.Contains(about["gen_ai.tool.call.arguments"], "a confidential argument") || !strings.Contains(about["gen_ai.tool.call.result"], "redacted") {
		t.Errorf("tool: %v", about)
	}
	if c.says(aSecret) {
		t.Error("the value of a secret was told")
	}
}

// A caller with a token has its trace gone on with; what it says of sampling does not count.
func TestTelemetryGoesOnWithTracesOfKnownCallers(t *testing.T) {
	c := newCollector(t)
	defer c.Close()
	upstream, _ := echoingUpstream()
	defer upstream.Close()
	s := tellingServer(t, c, quiet, upstream.URL, nil)
	tok, text := madeToken(t, "ci", "alice", access.Admin)
	must(t, s.app.keys.Add(t.Context(), tok))
	for run, sampled := range map[string]string{"run-1": "01", "run-2": "00"} {
		h := http.Header{"Authorization": {"Bearer " + text}, "Traceparent": {strings.TrimSuffix(someTrace, "01") + sampled}, "Tracestate": {"vendor=confidential"}}
		if got := s.converse(t, run, "hello", h); !strings.Contains(got, "RUN_FINISHED") {
			t.Fatal(got)
		}
	}
	s.converse(t, "run-3", "hello", http.Header{"Traceparent": {someTrace}}) // is turned away, and not told
	s.endWith(t, c.Server, upstream)
	requests := 0
	for _, span := range c.spans {
		if fmt.Sprintf("%x", span.TraceId) != someTrace[3:35] || span.TraceState != "" {
			t.Errorf("%s is of the trace %x, state %q", span.Name, span.TraceId, span.TraceState)
		}
		if span.Name == "POST /agui" {
			requests++
			if fmt.Sprintf("%x", span.ParentSpanId) != someTrace[36:52] {
				t.Errorf("parent %x", span.ParentSpanId)
			}
		}
	}
	if requests != 2 {
		t.Errorf("%d requests were told, want 2:\n%s", requests, c.tree())
	}
}

// Without an endpoint nothing is made, and nothing wrapped.
func TestTelemetryThatIsOff(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"not configured": func(*Config) {},
		"disabled": func(cfg *Config) {
			cfg.Telemetry = telemetryConfig{Endpoint: "http://127.0.0.1:1", Disabled: true, Interval: time.Second}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServe(t, change)
			if s.app.telemetry != nil {
				t.Error("there is telemetry")
			}
			if _, ok := s.app.waiting().(waitingTools); !ok {
				t.Errorf("tools are wrapped: %T", s.app.waiting())
			}
			next := http.NewServeMux()
			if traced(s.app.telemetry)(next) != http.Handler(next) {
				t.Error("handlers are wrapped")
			}
			s.end(t)
		})
	}
}

// badCollectors are ways in which one can be of no use.
var badCollectors = map[string]http.HandlerFunc{
	"hangs": func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	},
	"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
	"is busy": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	},
	"floods": flood(1 << 62),
	"leads elsewhere": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/elsewhere", http.StatusTemporaryRedirect)
	},
}

// flood answers with so many bytes.
func flood(most int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for sent := 0; sent < most && r.Context().Err() == nil; sent += 1 << 20 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}
}

// Of an answer without an end little is read: the connection is closed.
func TestTelemetryReadsLittleOfAnAnswer(t *testing.T) {
	const most = 1 << 30 // far more than all buffers on the way
	whole := make(chan bool, 8)
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flood(most)(w, r)
		whole <- r.Context().Err() == nil
	}))
	s := startServe(t, func(cfg *Config) {
		cfg.Telemetry = telemetryConfig{Endpoint: bad.URL, Service: "hutch", Sample: 1, Interval: time.Second}
	})
	if _, err := s.app.waiting().Call(t.Context(), tool.Caller{Face: "mcp"}, tool.Call{Name: "none"}); err == nil {
		t.Error("there is a tool")
	}
	select {
	case all := <-whole:
		if all {
			t.Errorf("%d bytes were read", most)
		}
	case <-time.After(patientFor):
		t.Error("nothing was sent")
	}
	s.halt(t)
	leaveNothing(t, bad)
}

// A collector of no use keeps nothing from being answered, and hutch from ending no longer
// than its flush takes.
func TestTelemetryWithBadCollectors(t *testing.T) {
	for name, handle := range badCollectors {
		t.Run(name, func(t *testing.T) {
			var elsewhere atomic.Int32
			bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/elsewhere" {
					elsewhere.Add(1)
					return
				}
				handle(w, r)
			}))
			defer bad.Close()
			s := startServe(t, func(cfg *Config) {
				cfg.Telemetry = telemetryConfig{Endpoint: bad.URL, Service: "hutch", Sample: 1, Interval: time.Minute}
			})
			client := s.clientOf(t, "2026-07-28", "")
			for range 1200 { // more than may wait
				if _, err := s.app.waiting().Call(t.Context(), tool.Caller{Face: "mcp"}, tool.Call{Name: "none"}); err == nil {
					t.Fatal("there is a tool")
				}
			}
			if got := client.says(t, "none"); !strings.Contains(got, "none") {
				t.Errorf("answered %s", got)
			}
			client.close(t)
			began := time.Now()
			s.halt(t)
			if took := time.Since(began); took > 60*time.Second { // it is to take 2 s
				t.Errorf("it took %v to end", took)
			}
			leaveNothing(t, bad)
			if elsewhere.Load() > 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// A run that is under way when hutch is asked to end is cut off within its grace, and told.
func TestTelemetryIsFlushedAtTheEnd(t *testing.T) {
	c := newCollector(t)
	defer c.Close()
	script := filepath.Join(t.TempDir(), "script.yaml")
	must(t, os.WriteFile(script, []byte("- delay: 600s\n"), 0o600))
	settled, err := readConfig(t, fmt.Sprintf("agents:\n  player: {model: {script: %q}}\n", script), nil)
	must(t, err)
	cfg, p := newTestConfig(t, nil)
	cfg.Agents, cfg.Telemetry = settled.Agents, settled.Telemetry
	cfg.Telemetry.Endpoint, cfg.Telemetry.Interval = c.URL, time.Hour
	p.env = func(string) string { return "" }
	s := startServer(t, cfg, p, quiet)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/agui", strings.NewReader(
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"hi"}],"tools":[],"context":[],"state":{},"forwardedProps":{}}`))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	first := make([]byte, 1)
	_, err = io.ReadFull(resp.Body, first)
	must(t, err)
	ended := launch(func() error { _, err := io.Copy(io.Discard, resp.Body); return err })
	s.stop()
	must(t, <-ended) // the stream ends in order, or this test does not
	must(t, resp.Body.Close())
	s.endWith(t, c.Server)
	_, about := c.named(t, "invoke_agent player")
	hasAttributes(t, "run", about, map[string]string{"error.type": "cancelled", "hutch.run.outcome": "error"})
	if c.tree() != "POST /agui\n  invoke_agent player\n    chat\n" || len(c.series["gen_ai.client.operation.duration"]) == 0 {
		t.Errorf("told: %s, %v", c.tree(), c.series)
	}
}

// Where the log says that nothing is sent because a secret is not there, it says what sets it.
func TestTelemetryNamesTheSecretThatIsMissing(t *testing.T) {
	vault, err := secrets.Open(secrets.Options{})
	must(t, err)
	c := telemetryConfig{Headers: []secrets.Value{secrets.Hide(keyHeaders, "Authorization=Bearer secret://otlp_token")}}
	if _, err := c.header(vault); err == nil || err.Error() != `telemetry.headers: the secret otlp_token is not set: set it with "hutch secrets set otlp_token"` {
		t.Errorf("found: %v", err)
	}
}
