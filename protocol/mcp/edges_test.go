package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/tool"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// modernCall is a tools/call of revision 2026-07-28 and its headers.
func modernCall(id int, name string) (body, headers string) {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, name),
		"Mcp-Protocol-Version: 2026-07-28; Mcp-Method: tools/call; Mcp-Name: " + name
}

// do sends one request and returns status and body.
func do(t *testing.T, url, method, headers, body string) (int, string) {
	t.Helper()
	req := newRequest(within(t), t, method, url, body)
	setHeaders(req, headers)
	resp, err := httpClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, responseText(t, resp)
}

func openSession(t *testing.T, url string) string {
	t.Helper()
	resp, err := httpClient(t).Do(newRequest(within(t), t, "POST", url, initialize))
	if err != nil {
		t.Fatal(err)
	}
	id := resp.Header.Get("Mcp-Session-Id")
	if text := responseText(t, resp); resp.StatusCode != http.StatusOK || id == "" {
		t.Fatal(text)
	}
	return id
}

// A counted body says how much of it was asked for.
type counted struct{ n int }

func (c *counted) Read(p []byte) (int, error) {
	c.n += len(p)
	return copy(p, strings.Repeat(" ", len(p))), nil
}

func TestH08_EndlessBodiesAreNotRead(t *testing.T) {
	var body counted
	req := httptest.NewRequest("POST", "/", &body)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	newServer(t, newFakeTools(), Options{}).Handler().ServeHTTP(rec, req)
	if rec.Code != http.StatusRequestEntityTooLarge || body.n > 2*maxBody {
		t.Errorf("%d after %d bytes", rec.Code, body.n)
	}
}

func TestH08_BodiesHaveALimit(t *testing.T) {
	url := newHTTP(t, newServer(t, newFakeTools(), Options{}))
	fill := func(n int) string {
		frame := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	if status, text := do(t, url, "POST", "", fill(maxBody)); status != http.StatusOK {
		t.Errorf("4 MiB: %.200s", text)
	}
	for _, headers := range []string{"", "Mcp-Protocol-Version: 2026-07-28"} {
		if status, text := do(t, url, "POST", headers, fill(maxBody+1)); status != http.StatusRequestEntityTooLarge {
			t.Errorf("4 MiB and 1: %.200s", text)
		}
	}
}

func TestH07_HeadersSentTwice(t *testing.T) {
	url := newHTTP(t, newServer(t, newFakeTools(), Options{}))
	body, headers := modernCall(1, "echo")
	for _, name := range []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name", "Content-Type"} {
		req := newRequest(within(t), t, "POST", url, body)
		setHeaders(req, headers)
		req.Header[name] = append(req.Header[name], "a", "b")
		resp, err := httpClient(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if text := responseText(t, resp); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Without the header nginx holds a stream back.
func TestStreamsAreNotBuffered(t *testing.T) {
	web := httptest.NewRecorder()
	newServer(t, newFakeTools(), Options{}).Handler().ServeHTTP(web, httptest.NewRequest("GET", "/", nil))
	if got := web.Header().Get("X-Accel-Buffering"); got != "no" {
		t.Errorf("X-Accel-Buffering is %q", got)
	}
}

func TestH17_IdsInUseOverHTTP(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	f := newFakeTools()
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
		close(started)
		<-release
		return tool.Text("first"), nil
	}
	url := newHTTP(t, newServer(t, f, Options{}))
	legacy := "Mcp-Session-Id: " + openSession(t, url)
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`
	first := make(chan string)
	go func() {
		_, text := do(t, url, "POST", legacy, call)
		first <- text
	}()
	<-started
	if _, text := do(t, url, "POST", legacy, call); !strings.Contains(text, `"id":7,"error":{"code":-32600`) {
		t.Errorf("second: %s", text)
	}
	close(release)
	if text := <-first; !strings.Contains(text, `"first"`) {
		t.Errorf("first: %s", text)
	}
}

// Nothing opens an MCP session but initialize, and none leaks.
func TestRequestsLeaveNothingBehind(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{})
	url := newHTTP(t, s)
	body, headers := modernCall(1, "echo")
	for range 50 {
		do(t, url, "POST", headers, body)
		do(t, url, "POST", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		do(t, url, "POST", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		do(t, url, "POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}`)
	}
	if n := openSessions(s); n != 0 || s.sessions.taken != 0 {
		t.Errorf("%d sessions are open", n)
	}
}

// http.Server.Shutdown waits for open streams until its deadline.
func TestShutdownEndsStreams(t *testing.T) {
	f := newFakeTools()
	s := newServer(t, f, Options{})
	web := httptest.NewServer(s.Handler())
	client := httpClient(t)
	open := func(method, headers, body string) *http.Response {
		req := newRequest(context.Background(), t, method, web.URL, body)
		setHeaders(req, headers)
		resp, err := client.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil { // the stream is up
			t.Fatal(err)
		}
		return resp
	}
	get := open("GET", "Mcp-Session-Id: "+openSession(t, web.URL), "")
	listen := open("POST", listenHeaders, listenLine("1"))

	done := make(chan error, 1)
	go func() { done <- web.Config.Shutdown(within(t)) }()
	if err := s.Shutdown(within(t)); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	client.CloseIdleConnections()
	if err := <-done; err != nil {
		t.Errorf("http shutdown: %v", err)
	}
	for _, resp := range []*http.Response{get, listen} {
		responseText(t, resp)
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("POST", "/", nil))
	if rec.Code != http.StatusServiceUnavailable {
		t.Errorf("after shutdown: %d", rec.Code)
	}
}

func TestShutdownWaitsForCallsThenCancelsThem(t *testing.T) {
	// Over HTTP without a network, which would keep a bubble awake.
	modern, headers := modernCall(1, "echo")
	const legacy = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`
	for name, call := range map[string]func(*testing.T, *Server){
		"http/" + lastLegacy:   func(t *testing.T, s *Server) { askHandler(s, "Mcp-Session-Id: "+sessionByHandler(t, s), legacy) },
		"http/" + firstModern:  func(_ *testing.T, s *Server) { askHandler(s, headers, modern) },
		"stdio/" + lastLegacy:  func(t *testing.T, s *Server) { callByPipe(t, s, lastLegacy) },
		"stdio/" + firstModern: func(t *testing.T, s *Server) { callByPipe(t, s, firstModern) },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { shutdownDuring(t, call) }) })
	}
}

// shutdownDuring shuts a server down while a call runs, in a bubble.
func shutdownDuring(t *testing.T, call func(*testing.T, *Server)) {
	f := newFakeTools()
	started := make(chan struct{})
	f.call = func(ctx context.Context, _ tool.Caller, _ tool.Call) (tool.Result, error) {
		close(started)
		<-ctx.Done()
		return tool.Result{}, tool.ErrCancelled
	}
	s := newServer(t, f, Options{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		call(t, s)
	}()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(ctx) }()
	synctest.Wait()
	select {
	case err := <-stopped:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-stopped; err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("shutdown: %v", err)
	}
	<-answered
}

func sessionByHandler(t *testing.T, s *Server) string {
	id := askHandler(s, "", initialize).Header().Get("Mcp-Session-Id")
	if id == "" {
		t.Error("no session")
	}
	return id
}

func askHandler(s *Server, headers, body string) *httptest.ResponseRecorder {
	return askHandlerWithin(context.Background(), s, headers, body)
}

func askHandlerWithin(ctx context.Context, s *Server, headers, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(body))
	setHeaders(req, "Content-Type: application/json; Accept: */*")
	setHeaders(req, headers)
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	return rec
}

func askHandlerMethod(s *Server, method, headers string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "/", nil)
	setHeaders(req, headers)
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	return rec
}

// callByPipe makes one call over stdio, and gets an answer or a closed pipe.
func callByPipe(t *testing.T, s *Server, version string) {
	p := newStdio(t.Context(), t, s)
	c := newClient(t.Context(), t, &sdk.IOTransport{Reader: p.out, Writer: p.in}, version, nil)
	_, _ = c.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo"})
}

// Over HTTP a call that the shutdown cancelled gets an answer, not a cut
// connection.
func TestShutdownAnswersWhatItCancels(t *testing.T) {
	for _, era := range []string{lastLegacy, firstModern} {
		t.Run(era, func(t *testing.T) {
			started := make(chan struct{})
			f := newFakeTools()
			f.call = func(ctx context.Context, _ tool.Caller, _ tool.Call) (tool.Result, error) {
				close(started)
				<-ctx.Done()
				return tool.Result{}, tool.ErrCancelled
			}
			s := newServer(t, f, Options{})
			url := newHTTP(t, s)
			body, headers := callLine("1", "echo"), ""
			if era == firstModern {
				body, headers = modernCall(1, "echo")
			} else {
				headers = "Mcp-Session-Id: " + openSession(t, url)
			}
			answer := make(chan string, 1)
			go func() {
				_, text := do(t, url, "POST", headers, body)
				answer <- text
			}()
			<-started
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if got := <-answer; !strings.Contains(got, "the server is shutting down, the call was cancelled") || !strings.Contains(got, `"isError":true`) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// go-sdk panics on these; hosts drop the whole list for them.
func TestToolsThatHostsChokeOnAreLeftOut(t *testing.T) {
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		var log logged
		f := newFakeTools()
		for i, schema := range []string{`null`, `[]`, `{}`, `{"type":"array"}`, `{"type":"object"`, `{"type":"object","type":"object"}`,
			`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a\r\nb"}}}`, `{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"a"}}}`} {
			f.specs = append(f.specs, tool.Spec{Name: fmt.Sprintf("bad%d", i), InputSchema: json.RawMessage(schema)})
		}
		f.specs = append(f.specs, tool.Spec{Name: "", InputSchema: json.RawMessage(`{"type":"object"}`)}, tool.Spec{Name: "bare"}) // the last one is listed, as models are told of it
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{Logger: log.logger()})), version, nil)
		list, err := c.ListTools(ctx, nil)
		if err != nil || len(list.Tools) != 3 {
			t.Fatalf("got %+v, %v", list, err)
		}
		if got := strings.Count(log.String(), "tool left out"); got != 9 {
			t.Errorf("%d warnings:\n%s", got, &log)
		}
	})
}

// C-19: older clients take an output that is no object wrapped into one, and the schema of
// it that way too, where it can be said.
func TestC_19_OutputsThatAreNoObject(t *testing.T) {
	const list = `{"type":"array","items":{}}`
	eachWay(t, func(t *testing.T, version string, connect func(*testing.T, *Server) sdk.Transport) {
		ctx := within(t)
		f := newFakeTools()
		f.specs = named("list", "union", "refers", "object", "silent")
		for i, schema := range []string{list, `{"type":["array","object"]}`, `{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":{}}}`, `{"type":"object"}`} {
			f.specs[i].OutputSchema = json.RawMessage(schema)
		}
		f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
			structured := map[string]string{"object": `{"a":1}`, "silent": `"x"`}[c.Name]
			return tool.Result{Structured: json.RawMessage(cmp.Or(structured, "[1]")), IsError: c.Name == "error"}, nil
		}
		c := newClient(ctx, t, connect(t, newServer(t, f, Options{})), version, nil)
		found, err := c.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, listed := range found.Tools {
			schema, err := json.Marshal(listed.OutputSchema)
			want := map[string]string{"list": `{"properties":{"result":{"items":{},"type":"array"}},"required":["result"],"type":"object"}`, "object": `{"type":"object"}`}[listed.Name]
			if !isModern(version) && (err != nil || string(schema) != cmp.Or(want, "null")) {
				t.Errorf("%s: the schema is %s, %v", listed.Name, schema, err)
			}
			if isModern(version) && (listed.OutputSchema == nil) != (listed.Name == "silent") {
				t.Errorf("%s: the schema is %s", listed.Name, schema)
			}
		}
		for name, want := range map[string][2]string{
			"list": {`{"result":[1]}`, "[1]"}, "union": {`{"result":[1]}`, "[1]"}, "refers": {`{"result":[1]}`, "[1]"}, "object": {`{"a":1}`, `{"a":1}`}, "silent": {`{"result":"x"}`, `"x"`},
		} {
			res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			structured, err := json.Marshal(res.StructuredContent)
			wanted := want[0]
			if isModern(version) {
				wanted = want[1]
			}
			if err != nil || string(structured) != wanted || text(t, res) != want[1] {
				t.Errorf("%s: got %s beside %s, %v", name, structured, text(t, res), err)
			}
		}
		if res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "error"}); err != nil || !res.IsError || res.StructuredContent != nil {
			t.Errorf("an error with %+v, %v", res, err)
		}
	})
}

// What a host wrote reaches the tool, and what the tool wrote the host.
func TestArgumentsAndResultsKeepEveryByte(t *testing.T) {
	const args = `{"z":12345678901234567890,"a":1.0e2,"s":"<&>\u2028 é 😀","n":[-0.0,1E5],"":null}`
	f := newFakeTools()
	var got []string
	f.call = func(_ context.Context, _ tool.Caller, c tool.Call) (tool.Result, error) {
		got = append(got, string(c.Arguments))
		return tool.Result{Structured: c.Arguments, Content: []tool.Content{{Type: "text", Text: "t"}}}, nil
	}
	url := newHTTP(t, newServer(t, f, Options{}))
	body, modern := modernCall(1, "echo")
	body = strings.Replace(body, `"name":`, `"arguments":`+args+`,"name":`, 1)
	legacy := "Mcp-Session-Id: " + openSession(t, url)
	for i, c := range []struct{ headers, body string }{
		{modern, body},
		{legacy, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":` + args + `}}`},
	} {
		_, answer := do(t, url, "POST", c.headers, c.body)
		if got[i] != args {
			t.Errorf("the tool got %s", got[i])
		}
		if !strings.Contains(answer, `"structuredContent":`+args) {
			t.Errorf("the host got %s", answer)
		}
	}
}

func TestLogsHoldNoSessionIDs(t *testing.T) {
	var log logged
	url := newHTTP(t, newServer(t, newFakeTools(), Options{Logger: log.logger()}))
	id := openSession(t, url)
	do(t, url, "POST", "Mcp-Session-Id: "+id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"token":"hunter2"}}}`)
	do(t, url, "DELETE", "Mcp-Session-Id: "+id, "")
	if log.String() == "" || strings.Contains(log.String(), id) || strings.Contains(log.String(), "hunter2") {
		t.Errorf("logged:\n%s", &log)
	}
}
