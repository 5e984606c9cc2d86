// Package sdktest runs tools in plain go test: the same decoding, checking and
// encoding as inside a host, with a fake host that keeps what a tool tells it, and
// has a web and a storage of your making.
//
//	got := sdktest.Call(t, module, "greet", `{"name":"Ada"}`)
//	if got.Text != "Hello, Ada!" { ... }
//
//	host := sdktest.Host{Web: sdktest.Pages{"GET https://example.org/": {Body: "..."}}}
//	got := host.Call(t, module, "fetch", `{"url":"https://example.org/"}`)
package sdktest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/protocol/abi"
)

// Result is what a tool answered and what it told the host meanwhile.
type Result struct {
	sdk.Result
	// Text is the text blocks of the result, joined by newlines.
	Text string
	// Logs are the lines the tool logged, each as "info: text".
	Logs []string
	// Progress are the tool's reports, in order.
	Progress []sdk.Progress
}

// Into decodes the structured content into v, a pointer, and fails the test if
// there is none or it does not fit.
func (r Result) Into(t testing.TB, v any) {
	t.Helper()
	if r.Structured == nil {
		t.Fatalf("no structured content; the text is %q", r.Text)
	}
	if err := json.Unmarshal(r.Structured, v); err != nil {
		t.Fatalf("structured content %s: %v", r.Structured, err)
	}
}

// Host is a host to call tools in. Its zero value has no configuration, no web and
// an empty storage. It grants what the module declares in its Requests, and denies
// the rest as a host would.
type Host struct {
	// Config is what [sdk.Call.Config] finds.
	Config map[string]string
	// Web answers requests: [Pages], or any handler, which sees absolute URLs and
	// whatever host. Redirects are followed. With nil no server can be reached.
	Web http.Handler
	// Secrets are values by name. They are put where the module's Requests say, so
	// that Web can look; the tool sees none.
	Secrets map[string]string
	// KV keeps values from call to call; with nil each call begins without any.
	KV *KV
	// Tracker answers what tools ask of the tracker, below the path that they name, such as
	// /tasks; with nil there is none. What the scopes of Requests stand for is a host's to
	// check: here all requests of a module that asks for one come through.
	Tracker http.Handler
}

// Call calls a tool of m in a host without configuration; see [Host.Call].
func Call(t testing.TB, m *sdk.Module, name string, args any) Result {
	t.Helper()
	return Host{}.Call(t, m, name, args)
}

// Call calls the tool called name of m. args is JSON in a string, or any value
// that encoding/json writes as an object. As in a host, arguments that do not
// fit the tool's schema come back as a result that is an error. A module that
// cannot describe itself, or has no such tool, fails the test.
func (h Host) Call(t testing.TB, m *sdk.Module, name string, args any) Result {
	t.Helper()
	if _, err := m.Describe(); err != nil {
		t.Fatalf("describe: %v", err)
	}
	if h.KV == nil {
		h.KV = &KV{}
	}
	r := &recorder{host: h, requests: m.Requests}
	out, err := m.Call(r, envelope(t, name, args))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &r.result.Result); err != nil {
		t.Fatalf("result %s: %v", out, err)
	}
	r.result.Text = texts(r.result.Content)
	return r.result
}

// envelope writes the input of a call as a host does.
func envelope(t testing.TB, name string, args any) []byte {
	t.Helper()
	if s, ok := args.(string); ok {
		args = json.RawMessage(s)
	}
	b, err := json.Marshal(map[string]any{
		"method": "tools/call",
		"params": map[string]any{"name": name, "arguments": args},
	})
	if err != nil {
		t.Fatalf("arguments of %s: %v", name, err)
	}
	return b
}

func texts(content []sdk.Content) string {
	var texts []string
	for _, c := range content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// recorder is the fake host of one call.
type recorder struct {
	host     Host
	requests sdk.Requests
	result   Result
}

var levels = [...]string{"trace", "debug", "info", "warn", "error"}

func (r *recorder) Log(level abi.LogLevel, text string) {
	r.result.Logs = append(r.result.Logs, levels[level]+": "+text)
}

func (r *recorder) Progress(p sdk.Progress) {
	r.result.Progress = append(r.result.Progress, p)
}

func (r *recorder) Config(key string) (string, bool) {
	value, ok := r.host.Config[key]
	return value, ok
}

// Gated answers what the module declared, and denies the rest.
func (r *recorder) Gated(op sdk.Gated, body []byte) abi.Response {
	switch op.Op.Capability() {
	case "http":
		return r.fetch(body)
	case "kv":
		if r.requests.KV == nil {
			return deny(op.Op, "the module's Requests have no KV: declare it, or a host denies it")
		}
		return r.host.KV.serve(op.Op, body, r.requests.KV)
	case "tracker":
		return r.track(op.Op, body)
	}
	return deny(op.Op, "this fake host does not have it")
}

func deny(op abi.Op, text string) abi.Response { return abi.Refuse(abi.Denied, string(op)+": "+text) }

func invalid(op abi.Op, text string) abi.Response {
	return abi.Refuse(abi.Invalid, string(op)+": "+text)
}
