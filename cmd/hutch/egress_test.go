package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/host/guestlog"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/registry"
)

// letting is what a policy says of a module that gets these rules for HTTP and no
// more.
func letting(m registry.Module, rules string) string {
	return fmt.Sprintf("  %s:\n    digest: sha256:%s\n    definitions: sha256:%s\n    grant: {http: [%s]}\n", m.Name, m.Digest, m.Definitions, rules)
}

// decideAll puts a policy of such entries in force.
func (s *served) decideAll(t *testing.T, entries ...string) {
	t.Helper()
	s.decide(t, "version: 1\nmodules:\n"+strings.Join(entries, ""))
}

// reach is the rule for a server of this test, with more keys of it.
func reach(t *testing.T, base, more string) string {
	t.Helper()
	u, err := url.Parse(base)
	must(t, err)
	return fmt.Sprintf("{scheme: http, host: 127.0.0.1, ports: [%s], allow_private: [127.0.0.1/32]%s}", u.Port(), more)
}

// ended is what happens at a server whose answer is never finished.
type ended struct {
	*httptest.Server
	came, gone chan struct{}
}

// newEnded is a server that writes half an answer, if told to, and then waits for
// the end of the connection.
func newEnded(half bool) *ended {
	e := &ended{came: make(chan struct{}, 10), gone: make(chan struct{}, 10)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if half {
			_, _ = io.WriteString(w, strings.Repeat("x", 1<<16))
			_ = http.NewResponseController(w).Flush()
		}
		e.came <- struct{}{}
		<-r.Context().Done()
		e.gone <- struct{}{}
	}))
	return e
}

// E26: a client that cancels a call, or goes away, ends the request that the tool
// makes: the server sees its connection closed, through the worker, on every wire.
func TestE26_ClientsThatLeaveCloseWhatTheirCallsOpened(t *testing.T) {
	eachWay(t, func(t *testing.T, s *served, c *client) {
		apis := map[string]*ended{"early": newEnded(false), "late": newEnded(true)}
		var entries []string
		for name, api := range apis {
			s.drop(t, name+".wasm", native(name, api.URL, ""))
			entries = append(entries, letting(s.awaitModule(t, name+".wasm"), reach(t, api.URL, "")))
		}
		s.decideAll(t, entries...)
		for name, api := range apis {
			s.awaitListed(t, name, true)
			inTime(t, name, func() time.Duration {
				ctx, cancel := context.WithCancel(t.Context())
				answers := launch(func() error {
					_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: name})
					return err
				})
				await(t, api.came)
				left := time.Now()
				cancel()
				await(t, api.gone)
				took := time.Since(left)
				if err := <-answers; !errors.Is(err, context.Canceled) {
					t.Errorf("%s: the call ended with %v", name, err)
				}
				return took
			})
			api.Close()
		}
	})
}

// inTime fails unless an upstream's connection is closed soon after the client left:
// 100 ms are aimed at, in one of three attempts, since the machine may be busy; ten
// times as long is an error.
func inTime(t *testing.T, what string, attempt func() time.Duration) {
	t.Helper()
	const aim = 100 * time.Millisecond
	fastest := attempt()
	for range 2 {
		if fastest > aim {
			fastest = min(fastest, attempt())
		}
	}
	switch {
	case fastest > 10*aim:
		t.Errorf("%s: the connection was closed after %v, aimed at are %v", what, fastest, aim)
	case fastest > aim:
		t.Logf("%s: the connection was closed after %v, aimed at are %v: the machine is busy, or this is slow", what, fastest, aim)
	}
}

// E26: what a tool would have kept after its request is not written once the client
// has left, and is if it stays.
func TestE26_NothingIsKeptAfterACancel(t *testing.T) {
	api := newEnded(false)
	quick := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s := startServe(t, developing)
	defer s.end(t)
	defer api.Close()
	defer quick.Close()
	var entries []string
	for name, target := range map[string]string{"stays": quick.URL, "leaves": api.URL} {
		s.drop(t, name+".wasm", dialecttest.Module{Tools: []tool.Spec{dialecttest.Spec(name)}, Do: []dialecttest.Step{
			dialecttest.Op(abi.OpHTTP, 1, `{"url":"`+target+`"}`), dialecttest.Op(abi.OpKVSet, 1, `{"key":"k","value":"v"}`),
		}}.Bytes())
		entry := letting(s.awaitModule(t, name+".wasm"), reach(t, target, ""))
		entries = append(entries, strings.Replace(entry, "]}\n", "], kv: {}}\n", 1))
	}
	s.decideAll(t, entries...)
	session, _ := s.connect(t)
	defer closeSession(t, session)
	kept := func(name string) int64 {
		t.Helper()
		_, values, err := s.app.db.KVUsage(t.Context(), name+".wasm/local")
		must(t, err)
		return values
	}
	s.awaitListed(t, "stays", true)
	if got := callText(t, session, "stays"); kept("stays") != 1 {
		t.Errorf("a call that nobody cancels keeps %d values: %s", kept("stays"), got)
	}
	s.awaitListed(t, "leaves", true)
	ctx, cancel := context.WithCancel(t.Context())
	answers := launch(func() error {
		_, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "leaves"})
		return err
	})
	await(t, api.came)
	cancel()
	await(t, api.gone)
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	if got := callText(t, session, "stays"); kept("stays") != 1 || kept("leaves") != 0 {
		t.Errorf("%d values are kept of the call that was cancelled, and of the one that came after it: %s", kept("leaves"), got)
	}
}

// A client that does not cancel and only closes its connection counts as well.
func TestE26_DroppedConnections(t *testing.T) {
	api := newEnded(false)
	s := startServe(t, nil)
	defer s.end(t)
	defer api.Close()
	s.drop(t, "ask.wasm", native("ask", api.URL, ""))
	s.decideAll(t, letting(s.awaitModule(t, "ask.wasm"), reach(t, api.URL, "")))
	s.awaitListed(t, "ask", true)
	inTime(t, "a dropped connection", func() time.Duration {
		ctx, cancel := context.WithCancel(t.Context())
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		answers := launch(func() error {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{` +
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
				`"io.modelcontextprotocol/clientCapabilities":{}}}}`
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/mcp", strings.NewReader(body))
			if err != nil {
				return err
			}
			for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask"} {
				req.Header.Set(name, value)
			}
			answer, err := transport.RoundTrip(req)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(answer.Body)
			return errors.Join(fmt.Errorf("%s: %s", answer.Status, text), err, answer.Body.Close())
		})
		select {
		case <-api.came:
		case err := <-answers:
			t.Fatalf("answered: %v", err)
		case <-time.After(patientFor):
			t.Fatal("the tool asked nobody")
		}
		left := time.Now()
		cancel()
		await(t, api.gone)
		took := time.Since(left)
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Errorf("the request ended with %v", err)
		}
		return took
	})
}

// apiAnswer is what testdata/apiguest tells of the answer that it got.
type apiAnswer struct {
	Status int
	Body   string
}

func (s *served) asks(t *testing.T, target string) apiAnswer {
	t.Helper()
	res, err := s.app.tools.Call(t.Context(), tool.Caller{Principal: "local", CallID: "7"},
		tool.Call{Name: "call_api", Arguments: json.RawMessage(fmt.Sprintf(`{"url":%q,"disguised":"/w=="}`, target))})
	must(t, err)
	var got apiAnswer
	if len(res.Content) != 1 || json.Unmarshal([]byte(res.Content[0].Text), &got) != nil {
		t.Fatalf("%s: %+v", target, res)
	}
	return got
}

// http_request of a plugin that was made with another kit goes through the same
// door: where we let it through it gets the answer that it gets from that kit's own
// host. That follows a redirect to anywhere.
func TestS08_ForeignGuestsGoThroughTheSameDoor(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inner") }))
	innerPort := inner.URL[strings.LastIndex(inner.URL, ":"):]
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.RequestURI)
	}))
	s := startServe(t, nil)
	defer s.end(t)
	defer inner.Close()
	defer api.Close()
	guest := apiGuest(t)
	s.drop(t, "api.wasm", guest)
	s.decideAll(t, letting(s.awaitModule(t, "api.wasm"), reach(t, api.URL, ", paths: [/projects/]")))
	s.awaitListed(t, "call_api", true)
	tests := []struct {
		target string
		want   apiAnswer
	}{
		{api.URL + "/projects/a%2Fb?c=d", apiAnswer{200, "/projects/a%2Fb?c=d"}},
		{api.URL + "/projects/x?to=/projects/y", apiAnswer{200, "/projects/y"}},
		{api.URL + "/projects/?q=%C3%A9+b", apiAnswer{200, "/projects/?q=%C3%A9+b"}},
		{api.URL + "/other", apiAnswer{}},
		{api.URL + "/projects/..%2fother", apiAnswer{}},
		{api.URL + "/projects/%2e%2e/other", apiAnswer{}},
		{api.URL + "/projects/x?to=/other", apiAnswer{}},
		{api.URL + "/projects/x?to=" + inner.URL, apiAnswer{}},
		{api.URL + "/projects/x?to=http://localhost" + innerPort + "/projects/", apiAnswer{}},
		{api.URL + "/projects/x?to=file:///etc/passwd", apiAnswer{}},
		{inner.URL + "/projects/", apiAnswer{}},
		{"http://[::ffff:7f00:1]" + innerPort + "/projects/", apiAnswer{}},
		{"http://169.254.169.254/projects/", apiAnswer{}},
		{"http://user@127.0.0.1" + innerPort + "/projects/", apiAnswer{}},
		{"file:///etc/passwd", apiAnswer{}},
	}
	var allowed []string
	for _, tt := range tests {
		if tt.want != (apiAnswer{}) {
			allowed = append(allowed, tt.target)
		}
	}
	reference := byExtism(t, guest, allowed)
	if got := s.asks(t, api.URL+"/projects/../projects/z"); got != (apiAnswer{200, "/projects/z"}) { // its own sends that as it is
		t.Errorf("dot segments: %+v", got)
	}
	for i, tt := range tests {
		if i < len(allowed) && reference[i] != tt.want {
			t.Errorf("%s: %+v from its own host, want %+v", tt.target, reference[i], tt.want)
		}
		if got := s.asks(t, tt.target); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.target, got, tt.want)
		}
	}
}

// byExtism is what the guest tells of its answers when its own kit's host runs it.
func byExtism(t *testing.T, guest []byte, targets []string) []apiAnswer {
	t.Helper()
	folder := t.TempDir()
	host, wasm := filepath.Join(folder, "extismhost"), filepath.Join(folder, "api.wasm")
	must(t, os.WriteFile(wasm, guest, 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", host, "./testdata/extismhost")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	input, err := json.Marshal(targets)
	must(t, err)
	run := exec.CommandContext(t.Context(), host, wasm)
	run.Stdin, run.Stderr = bytes.NewReader(input), os.Stderr
	out, err := run.Output()
	must(t, err)
	var answers []string
	must(t, json.Unmarshal(out, &answers))
	all := make([]apiAnswer, len(answers))
	for i, answer := range answers {
		if answer == "" {
			continue
		}
		var result struct{ Content []struct{ Text string } }
		must(t, json.Unmarshal([]byte(answer), &result))
		must(t, json.Unmarshal([]byte(result.Content[0].Text), &all[i]))
	}
	return all
}

// S21: a module that is replaced, revoked or removed leaves neither a connection nor
// its log to what comes by its name.
func TestS21_ModulesThatGoLeaveNoConnection(t *testing.T) {
	closed := make(chan struct{}, 10)
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	api.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	api.Start()
	s := startServe(t, developing)
	defer s.end(t)
	defer api.Close()
	used := func() {
		t.Helper()
		s.decideAll(t, letting(s.awaitServing(t, "one.wasm"), reach(t, api.URL, "")))
		s.awaitListed(t, "one", true)
		if got, err := s.call(t.Context(), "one", map[string]any{}); err != nil || !strings.Contains(got, "200") {
			t.Fatalf("%s, %v", got, err)
		}
		select {
		case <-closed:
			t.Error("the connection is closed while the module serves")
		default:
		}
		lines := s.app.logs.Call(guestlog.Head{Module: "one.wasm"}, s.app.cfg.Limits.Call)
		lines.Write(abi.Info, "a line")
		lines.Close()
	}
	gone := func(how string) {
		t.Helper()
		select {
		case <-closed:
		case <-time.After(patientFor):
			t.Errorf("%s: the connection stays", how)
		}
		if left := s.app.logs.Tail("one.wasm", 10); len(left) != 0 {
			t.Errorf("%s: its log stays: %v", how, left)
		}
	}
	s.drop(t, "one.wasm", native("one", api.URL, ""))
	used()
	s.drop(t, "one.wasm", native("one", api.URL+"/?second", ""))
	gone("replaced")
	used()
	s.decideAll(t, "  other.wasm: {grant: {}}\n")
	gone("revoked")
	used()
	must(t, os.Remove(filepath.Join(s.tools, "one.wasm")))
	gone("removed")
}

// What waits for a person is refused on every wire and on the command line, with
// what to do, since nobody can be asked yet.
func TestAskingRefusesOnEveryFace(t *testing.T) {
	eachWay(t, func(t *testing.T, s *served, c *client) {
		api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
		defer api.Close()
		s.drop(t, "rule.wasm", native("rule", api.URL, ""))
		s.drop(t, "ask.wasm", native("ask", api.URL, ""))
		m := s.awaitModule(t, "ask.wasm")
		s.decideAll(t, letting(s.awaitModule(t, "rule.wasm"), reach(t, api.URL, ", approval: ask")),
			letting(m, reach(t, api.URL, ""))+"    tools: {ask: {approval: ask}}\n")
		s.awaitListed(t, "rule", true)
		if got := callText(t, c.ClientSession, "rule"); !strings.Contains(got, "not allowed yet") {
			t.Errorf("a rule that asks: %s", got)
		}
		s.awaitListed(t, "ask", false)
		const why = "waits for a person before each call, as the policy says, and nobody can be asked here: ask for it with \"hutch chat\" or at /agui, or the operator allows it, with approval: allow for this tool"
		if got := callText(t, c.ClientSession, "ask"); got != `tool "ask" `+why {
			t.Errorf("a tool that asks: %s", got)
		}
		if d := s.app.book.Decide(tool.Caller{}, tool.Module{Name: m.Name, Digest: m.Digest, Definitions: m.Definitions}, tool.Spec{Name: "ask"}); d.Status != tool.Held ||
			d.Reason != why {
			t.Errorf("the reason: %+v", d)
		}
		_, p := newTestConfig(t, nil)
		for _, args := range [][]string{{"tools", "call", "ask"}, {"tools", "list"}} {
			out, err := printed(t, s.app.cfg, p, args...)
			if text := fmt.Sprint(out, err); !strings.Contains(text, "waits for a person before each call") {
				t.Errorf("%s: %s", args, text)
			} else if args[1] == "list" && !regexp.MustCompile(`(?m)^ask +ask\.wasm +asks +.*"hutch chat" and pages at /agui ask, over MCP it is held$`).MatchString(text) {
				t.Errorf("who is asked where: %s", text)
			}
		}
	})
}
