package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// A request keeps the id that it brings if nothing can be done with that, and gets one
// otherwise.
func TestRequestIDs(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		own  []string
		kept bool
	}{
		{[]string{"a"}, true},
		{[]string{"A.b_c-1"}, true},
		{[]string{"0af76519-16cd-43dd-8448-eb211c80319c"}, true},
		{[]string{long}, true},
		{nil, false},
		{[]string{""}, false},
		{[]string{long + "a"}, false},
		{[]string{"-a"}, false},
		{[]string{"a b"}, false},
		{[]string{"a\"b"}, false},
		{[]string{"a\nlevel=ERROR"}, false},
		{[]string{"ä"}, false},
		{[]string{"a=b"}, false},
		{[]string{"a", "b"}, false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header[requestHeader] = c.own
		var inside []string
		w := answer(identified(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			inside = append(r.Header.Values(requestHeader), requestID(r.Context()))
		})), r)
		id := w.Header().Get(requestHeader)
		if kept := len(c.own) > 0 && id == c.own[0]; kept != c.kept || !goodRequestID.MatchString(id) {
			t.Errorf("%q: %q", c.own, id)
		}
		if len(inside) != 2 || inside[0] != id || inside[1] != id {
			t.Errorf("%q: %q outside, %q inside", c.own, id, inside)
		}
	}
}

// Every answer of every route has the id of its request, and every refusal says it, but for
// the answers of probes.
func TestEveryAnswerHasTheIDOfItsRequest(t *testing.T) {
	tok, text := madeToken(t, "ci", "alice")
	var reached atomic.Int32
	open, closed := testHandler(t, &reached, fmt.Errorf("loading")), testHandler(t, &reached, nil, tok)
	type asked struct {
		route, host, token string
		closed             bool
		code               int
	}
	all := []asked{
		{"GET /nothing", "localhost", "", false, 404}, {"PUT /healthz", "localhost", "", false, 405}, {"GET /healthz", "evil.example", "", false, 403},
		{"POST /mcp", "localhost", "", true, 401}, {"POST /mcp", "localhost", "hutch_wrong", true, 401}, {"GET /metrics", "localhost", text, true, 403},
		{"POST /agui", "localhost", "", true, 401}, {"GET /nothing", "localhost", text, true, 404}, {"GET /readyz", "localhost", "", false, 503},
	}
	for _, route := range everyRoute {
		if route != "GET /readyz" {
			all = append(all, asked{route, "localhost", "", false, 200})
		}
	}
	for i, c := range all {
		method, path, _ := strings.Cut(c.route, " ")
		r := httptest.NewRequest(method, path, nil)
		r.Host = c.host
		id := fmt.Sprintf("request-%d", i)
		r.Header.Set(requestHeader, id)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		h := open
		if c.closed {
			h = closed
		}
		w := answer(h, r)
		if w.Code != c.code || w.Header().Get(requestHeader) != id {
			t.Errorf("%+v: %d, id %q", c, w.Code, w.Header().Get(requestHeader))
		}
		if says := strings.Contains(w.Body.String(), id); says != (c.code >= 400 && path != "/readyz") {
			t.Errorf("%+v: %q", c, w.Body)
		}
	}
}

// asNumbered posts a request with an id, and returns its answer.
func (s *served) asNumbered(t *testing.T, path, id, body string, more http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	must(t, err)
	r.Header = more.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(requestHeader, id)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	all, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	return resp, string(all)
}

// The log of a request and what it is refused with have its id on every face, also where it
// came in a session that an earlier request began.
func TestLinesAndErrorsHaveTheIDOfTheirRequest(t *testing.T) {
	cfg, p := newTestConfig(t, nil)
	settled, err := readConfig(t, "agents:\n  parrot: {model: {kind: echo}}\n", nil)
	must(t, err)
	cfg.Agents = settled.Agents
	log := &transcript{}
	s := startServer(t, cfg, p, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer s.end(t)
	s.drop(t, "asks.wasm", dialecttest.Module{
		Tools:    []tool.Spec{dialecttest.Spec("asks")},
		Requests: tool.Requests{"http": []byte(`[{"reason":"It asks."}]`)},
		Do:       []dialecttest.Step{dialecttest.Log(abi.Warn, 1, "a line of the tool"), dialecttest.Op(abi.OpHTTP, 1, `{"method":"GET","url":"http://127.0.0.1:1/"}`)},
	}.Bytes())
	m := s.awaitModule(t, "asks.wasm")
	s.decideAll(t, letting(m, "{scheme: https, host: api.example}"))
	s.awaitReadyModule(t, "asks.wasm")

	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":{}}}`
	opened, _ := s.asNumbered(t, "/mcp", "first.1", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	session := http.Header{"Mcp-Session-Id": {opened.Header.Get("Mcp-Session-Id")}}
	s.asNumbered(t, "/mcp", "first.2", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session)
	if _, got := s.asNumbered(t, "/mcp", "second.1", fmt.Sprintf(call, "asks"), session); !strings.Contains(got, "result") {
		t.Errorf("a call: %s", got)
	}
	for _, line := range []string{"a tool was refused", "a line of the tool"} {
		if !strings.Contains(lineWith(log, line), "request=second.1") {
			t.Errorf("a call's line: %s", lineWith(log, line))
		}
	}
	for name, c := range map[string]struct {
		path, body string
		more       http.Header
		want       string
	}{
		"unknown tool":    {"/mcp", fmt.Sprintf(call, "none"), session, `"data":{"requestId":"ID"}`},
		"no session":      {"/mcp", fmt.Sprintf(call, "asks"), nil, `"data":{"requestId":"ID"}`},
		"no such session": {"/mcp", fmt.Sprintf(call, "asks"), http.Header{"Mcp-Session-Id": {"none"}}, `(request ID)`},
		"no JSON":         {"/mcp", `{`, nil, `"data":{"requestId":"ID"}`},
		"bad input":       {"/agui", `{"threadId":1}`, nil, `"requestId":"ID"`},
		"no such agent":   {"/agents/none/agui", `{}`, nil, `"requestId":"ID"`},
	} {
		id := "bad." + strings.ReplaceAll(name, " ", ".")
		resp, got := s.asNumbered(t, c.path, id, c.body, c.more)
		if want := strings.ReplaceAll(c.want, "ID", id); !strings.Contains(got, want) || resp.Header.Get(requestHeader) != id {
			t.Errorf("%s: %s %s, want %s", name, resp.Status, got, want)
		}
		if body := got; strings.HasPrefix(body, "{") && !json.Valid([]byte(body)) {
			t.Errorf("%s: %s", name, body)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/mcp", nil)
	must(t, err)
	r.Host = "evil.example"
	r.Header.Set(requestHeader, "evil.1")
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	must(t, resp.Body.Close())
	if !strings.Contains(lineWith(log, "request refused"), "request=evil.1") {
		t.Errorf("a refused one's line: %s", lineWith(log, "request refused"))
	}
}

// lineWith is the first line of a log that has a text.
func lineWith(log *transcript, text string) string {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
