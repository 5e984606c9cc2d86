package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hutch-run/hutch/cmd/hutch/telemetry"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/tool"
)

var _ gate.Audit = (*telemetry.T)(nil)

// collector keeps the spans that come, and answers as told.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	spans   []*traces.Span
	answers []int // of the next posts; none is 200
	posts   int
}

func newCollector(t *testing.T, answers ...int) *collector {
	t.Helper()
	c := &collector{answers: answers}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		raw, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path != "/base/v1/traces" {
			return
		}
		c.posts++
		if len(c.answers) > 0 {
			code := c.answers[0]
			c.answers = c.answers[1:]
			if code != http.StatusOK {
				w.WriteHeader(code)
				return
			}
		}
		var all traces.TracesData
		if err := proto.Unmarshal(raw, &all); err != nil {
			t.Error(err)
			return
		}
		c.spans = append(c.spans, all.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	return c
}

// attribute is that of the only span, as text.
func (c *collector) attribute(t *testing.T, key string) string {
	t.Helper()
	if len(c.spans) != 1 {
		t.Fatalf("%d spans", len(c.spans))
	}
	for _, a := range c.spans[0].Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// open is telemetry for c.
func open(t *testing.T, c *collector, change func(*telemetry.Options)) *telemetry.T {
	t.Helper()
	o := telemetry.Options{
		Endpoint: c.URL + "/base/", Service: "test", Sample: 1, Every: time.Hour,
		Redact:    func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
		RequestID: func(context.Context) string { return "" },
		Status: func(_ tool.Result, err error) string {
			if err != nil {
				return "failed"
			}
			return "ok"
		},
		Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	told, err := telemetry.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// finish sends what is left, and checks that nothing is.
func finish(t *testing.T, told *telemetry.T, c *collector) {
	t.Helper()
	if err := told.Close(); err != nil {
		t.Error(err)
	}
	c.Close()
	goleak.VerifyNone(t)
}

// said is a model that says these, and then fails with err if it is not nil.
type said struct {
	deltas []chat.Delta
	err    error
}

func (s said) Stream(context.Context, chat.Request) iter.Seq2[chat.Delta, error] {
	return func(yield func(chat.Delta, error) bool) {
		for _, d := range s.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if s.err != nil {
			yield(chat.Delta{}, s.err)
		}
	}
}

// asked has a model answer, of which most pieces are taken.
func asked(told *telemetry.T, m telemetry.Streamer, r chat.Request, most int) (got []chat.Delta, err error) {
	for d, failed := range told.Model(m, telemetry.Model{Provider: "openai", URL: "http://models.example:8080/v1"}).Stream(context.Background(), r) {
		if err = failed; failed == nil {
			got = append(got, d)
		}
		if len(got) == most {
			break
		}
	}
	return got, err
}

// Every way in which an answer ends has a name, and the text of none is told.
func TestEndsOfAnswers(t *testing.T) {
	text, end := chat.Delta{Text: "hi"}, chat.Delta{Stop: chat.StopEnd, Usage: &chat.Usage{Model: "m-1", InputTokens: 3, OutputTokens: 4}}
	for name, c := range map[string]struct {
		model  said
		most   int
		failed string
	}{
		"answered":       {said{deltas: []chat.Delta{text, end}}, 0, ""},
		"over":           {said{err: &chat.OverflowError{Which: chat.OverflowContext}}, 0, "overflow"},
		"refused":        {said{err: errors.Join(chat.ErrRefused, errors.New("confidential"))}, 0, "refused"},
		"unavailable":    {said{err: chat.ErrUnavailable}, 0, "unavailable"},
		"too slow":       {said{err: chat.ErrTimeout}, 0, "timeout"},
		"too large":      {said{err: chat.ErrLimit}, 0, "limit"},
		"cut":            {said{deltas: []chat.Delta{text}, err: chat.ErrCut}, 0, "cut"},
		"cut in silence": {said{deltas: []chat.Delta{text}}, 0, "cut"},
		"malformed":      {said{err: chat.ErrMalformed}, 0, "malformed"},
		"cancelled":      {said{err: context.Canceled}, 0, "cancelled"},
		"out of time":    {said{err: context.DeadlineExceeded}, 0, "timeout"},
		"something else": {said{err: errors.New("confidential")}, 0, "_OTHER"},
		"nobody listens": {said{deltas: []chat.Delta{text, text, end}}, 1, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			to := newCollector(t)
			told := open(t, to, nil)
			got, err := asked(told, c.model, chat.Request{Model: "m"}, c.most)
			if want := c.model.deltas; c.most == 0 && !slices.EqualFunc(got, want, func(a, b chat.Delta) bool { return a == b }) {
				t.Errorf("got %v, want %v", got, want)
			}
			if !errors.Is(err, c.model.err) {
				t.Errorf("got %v, want %v", err, c.model.err)
			}
			finish(t, told, to)
			if got := to.attribute(t, "error.type"); got != c.failed {
				t.Errorf("failed with %q, want %q", got, c.failed)
			}
			span := to.spans[0]
			if span.Name != "chat m" || span.Kind != traces.Span_SPAN_KIND_CLIENT || to.attribute(t, "server.address") != "models.example" {
				t.Errorf("span %v", span)
			}
			if failed := span.GetStatus().GetCode() == traces.Status_STATUS_CODE_ERROR; failed != (c.failed != "") || span.GetStatus().GetMessage() != "" {
				t.Errorf("status %v", span.GetStatus())
			}
			if name == "answered" && to.attribute(t, "gen_ai.response.model") != "m-1" {
				t.Errorf("span %v", span)
			}
			if strings.Contains(span.String(), "confidential") {
				t.Errorf("told: %v", span)
			}
		})
	}
}

// What is told of contents is bounded, loses secrets before it is cut, and stays JSON.
func TestContentsAreBounded(t *testing.T) {
	c := newCollector(t)
	told := open(t, c, func(o *telemetry.Options) { o.Content = true })
	r := chat.Request{Messages: []chat.Message{{Role: chat.System, Content: chat.Text("be kind")}}}
	for range 1000 {
		r.Messages = append(r.Messages, chat.Message{Role: chat.User, Content: chat.Text(strings.Repeat("ä", 2000) + "hunter2")})
	}
	// The cut would go through the secret.
	last := strings.Repeat("x", 2045) + "hunter2" + strings.Repeat("y", 1000)
	r.Messages = append(r.Messages, chat.Message{Role: chat.User, Content: chat.Text(last)})
	deltas := []chat.Delta{
		{Text: strings.Repeat("z", 3000)}, {Call: &chat.CallDelta{Index: 0, ID: "a", Name: "one", Arguments: "{"}}, {Call: &chat.CallDelta{Index: 1, ID: "b", Name: "two", Arguments: "{"}},
		{Call: &chat.CallDelta{Index: 0, Arguments: "1}"}}, {Call: &chat.CallDelta{Index: 1, Arguments: "2}"}}, {Stop: chat.StopCalls},
	}
	if _, err := asked(told, said{deltas: deltas}, r, 0); err != nil {
		t.Fatal(err)
	}
	finish(t, told, c)
	in, out := c.attribute(t, "gen_ai.input.messages"), c.attribute(t, "gen_ai.output.messages")
	for _, text := range []string{in, out} {
		if len(text) == 0 || len(text) > 8<<10 || !utf8.ValidString(text) || !json.Valid([]byte(text)) {
			t.Errorf("%d bytes: %.80s", len(text), text)
		}
	}
	if strings.Contains(in, "hunt") || !strings.Contains(in, "x***") && !strings.Contains(in, "x**") {
		t.Errorf("input ends in %s", in[len(in)-200:])
	}
	if got := c.attribute(t, "gen_ai.system_instructions"); !strings.Contains(got, "be kind") {
		t.Errorf("instructions %q", got)
	}
	if !strings.Contains(out, `"arguments":"{1}"`) || !strings.Contains(out, `"arguments":"{2}"`) {
		t.Errorf("calls: %s", out)
	}
}

// A post is tried again where that can be of use, and the log is told once if it is not.
func TestPostsAreTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int
		posts   int
		taken   bool
	}{
		"taken":      {[]int{200}, 1, true},
		"busy once":  {[]int{503, 200}, 2, true},
		"of no use":  {[]int{400, 200}, 1, false},
		"not let in": {[]int{401, 200}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			to := newCollector(t, c.answers...)
			var log bytes.Buffer
			told := open(t, to, func(o *telemetry.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			_, _ = asked(told, said{}, chat.Request{}, 0)
			finish(t, told, to)
			if to.posts != c.posts || (len(to.spans) == 1) != c.taken {
				t.Errorf("%d posts, %d spans", to.posts, len(to.spans))
			}
			if n := strings.Count(log.String(), "telemetry is not taken"); (n == 0) != c.taken || n > 1 {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// An endpoint that could hold a secret, or is none, is refused.
func TestEndpoints(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://127.0.0.1:4318": true, "https://collector.example/otlp": true, "http://[::1]:4318/": true,
		"": false, "127.0.0.1:4318": false, "collector:4318": false, "grpc://collector:4317": false, "http://": false, "http:///v1": false,
		"http://user:hunter2@collector": false, "http://collector?key=hunter2": false, "http://collector#hunter2": false, "http://%zz/hunter2": false,
	} {
		err := telemetry.CheckEndpoint(text)
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Headers are asked for each time, and without them nothing is sent.
func TestHeadersThatAreMissing(t *testing.T) {
	c := newCollector(t)
	told := open(t, c, func(o *telemetry.Options) {
		o.Headers = func() (http.Header, error) { return nil, errors.New("the secret is not set") }
	})
	_, _ = asked(told, said{}, chat.Request{}, 0)
	finish(t, told, c)
	if c.posts > 0 {
		t.Error("something was sent without them")
	}
}

// Telemetry that is off returns what it was given, and allocates nothing.
func TestOff(t *testing.T) {
	var told *telemetry.T
	ctx, model := context.Background(), said{}
	if told.Model(&model, telemetry.Model{}) != telemetry.Streamer(&model) || told.Tools(nil) != nil || told.Within(ctx, nil) != ctx || told.Close() != nil {
		t.Error("something is wrapped")
	}
	r := telemetry.Request{Header: http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}
	run := telemetry.Run{Agent: "a"}
	if n := testing.AllocsPerRun(100, func() {
		got, end := told.Request(ctx, r)
		end(200)
		got, over := told.Run(telemetry.PlaceOf(got).Continue(got), telemetry.Model{}, run)
		over(telemetry.Ended{})
		told.Gated(got, gate.Record{})
		if got != ctx {
			t.Error("another context")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What a tool asked of the host is told by whom, where to, and how it ended.
func TestHostCalls(t *testing.T) {
	c := newCollector(t)
	told := open(t, c, nil)
	told.Gated(context.Background(), gate.Record{
		Module: "a.wasm", Op: abi.OpHTTP, Host: "[2001:db8::1]:8443", Addr: netip.MustParseAddr("2001:db8::1"), Code: abi.Denied, Took: time.Second,
	})
	finish(t, told, c)
	span := c.spans[0]
	if span.Name != "host_call http_request" || c.attribute(t, "server.address") != "2001:db8::1" || c.attribute(t, "error.type") != "denied" {
		t.Errorf("span %v", span)
	}
	if took := time.Duration(span.EndTimeUnixNano - span.StartTimeUnixNano); took != time.Second {
		t.Errorf("it took %v", took)
	}
}

// A share of the traces is told, whole ones alone.
func TestSampling(t *testing.T) {
	c := newCollector(t)
	told := open(t, c, func(o *telemetry.Options) { o.Sample = 0 })
	ctx, end := told.Request(context.Background(), telemetry.Request{
		Method: "POST", Route: "/mcp", Known: true, Header: http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
	})
	_, over := told.Run(ctx, telemetry.Model{}, telemetry.Run{Agent: "a"})
	over(telemetry.Ended{})
	end(200)
	finish(t, told, c)
	if len(c.spans) > 0 {
		t.Errorf("told: %v", c.spans)
	}
}

// What a request says of its trace goes no further than its span: behind is that of the
// span, and nothing that is for others.
func TestWhatIsBehindARequest(t *testing.T) {
	c := newCollector(t)
	told := open(t, c, nil)
	for _, known := range []bool{true, false} {
		h := http.Header{
			"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"vendor=confidential"}, "Baggage": {"a=confidential"},
		}
		ctx, end := told.Request(context.Background(), telemetry.Request{Method: "made up", Route: "/mcp", Header: h, Known: known})
		if len(h) != 1 || strings.Contains(h.Get("Traceparent"), "b7ad6b7169203331") || h.Get("Traceparent") == "" {
			t.Errorf("known %v: behind it is %v", known, h)
		}
		own, message := trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(told.Within(context.Background(), h))
		if !own.Equal(message) || !own.IsValid() {
			t.Errorf("known %v: a message is at %v, its request at %v", known, message, own)
		}
		end(500)
	}
	finish(t, told, c)
	for _, span := range c.spans {
		if span.Name != "_OTHER /mcp" || span.Status.GetCode() != traces.Status_STATUS_CODE_ERROR {
			t.Errorf("span %v", span)
		}
	}
}
