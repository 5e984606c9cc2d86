package mcp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// What readers of JSON take differently is answered, and the next message works.
func TestTextsThatReadersDifferOn(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{})
	p := newStdio(within(t), t, s)
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	for _, c := range []struct{ name, line, want string }{
		{"id with NUL", `{"jsonrpc":"2.0","id":"a\u0000b","method":"ping"}`, `"id":"a\u0000b","result":{}`},
		{"id of two lines", `{"jsonrpc":"2.0","id":"a\nb","method":"ping"}`, `"id":"a\nb","result":{}`},
		{"id with a raw NUL", "{\"jsonrpc\":\"2.0\",\"id\":\"a\x00b\",\"method\":\"ping\"}", `"id":null,"error":{"code":-32700`},
		{"id of -0", `{"jsonrpc":"2.0","id":-0,"method":"ping"}`, `"id":0,"result":{}`},
		{"id of 1e2", `{"jsonrpc":"2.0","id":1e2,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"id that is huge", `{"jsonrpc":"2.0","id":` + strings.Repeat("9", 1<<20) + `,"method":"ping"}`, `"id":null,"error":{"code":-32700`},
		{"id that is true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{"no UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}", `"id":null,"error":{"code":-32700`},
		{"half a surrogate", `{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":"\ud800"}}`, `"id":null,"error":{"code":-32700`},
		{"a key twice below", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}`, `"id":null,"error":{"code":-32700`},
		{"a key twice, escaped", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","n\u0061me":"fail"}}`, `"id":null,"error":{"code":-32700`},
		{"deep", strings.Repeat(`{"a":`, 1<<19), `"id":null,"error":{"code":-32700`},
	} {
		if got := talk(t, p, in, 1, c.line)[0]; !strings.Contains(got, c.want) || len(got) > 1000 {
			t.Errorf("%s: %.300s", c.name, got)
		}
		rec := askHandler(s, "Mcp-Session-Id: "+sessionByHandler(t, s), c.line)
		if !strings.Contains(rec.Body.String(), c.want) || rec.Body.Len() > 1000 {
			t.Errorf("%s over HTTP: %d %.300s", c.name, rec.Code, rec.Body)
		}
	}
	if got := talk(t, p, in, 1, pingLine)[0]; !strings.Contains(got, `"id":2,"result":{}`) {
		t.Errorf("after it: %s", got)
	}
}

// Headers that make no sense are refused, and cost the session nothing.
func TestHeadersThatMakeNoSense(t *testing.T) {
	s := newServer(t, newFakeTools(), Options{})
	url := newHTTP(t, s)
	id := openSession(t, url)
	session := "Mcp-Session-Id: " + id
	long := strings.Repeat("x", 20000)
	modern, _ := modernCall(1, "echo")
	for _, c := range []struct {
		name, method, headers, body string
		want                        int
	}{
		{"stream after garbage", "GET", session + "; Last-Event-ID: garbage", "", 400},
		{"stream after an event", "GET", session + "; Last-Event-ID: AAAA_0", "", 400},
		{"stream after event -1", "GET", session + "; Last-Event-ID: AAAA_-1", "", 400},
		{"stream after event 2^80", "GET", session + "; Last-Event-ID: _1208925819614629174706176", "", 400},
		{"stream after much", "GET", session + "; Last-Event-ID: " + long, "", 400},
		{"post after an event", "POST", session + "; Last-Event-ID: AAAA_0", pingLine, 400},
		{"no such session", "POST", "Mcp-Session-Id: " + id + "x", pingLine, 404},
		{"session in lower case", "POST", "Mcp-Session-Id: " + strings.ToLower(id), pingLine, 404},
		{"session with a path", "POST", "Mcp-Session-Id: ../" + id, pingLine, 404},
		{"session of 20,000 bytes", "POST", "Mcp-Session-Id: " + long, pingLine, 404},
		{"stream of no session", "GET", "Mcp-Session-Id: nobody", "", 404},
		{"end of no session", "DELETE", "Mcp-Session-Id: nobody", "", 404},
		{"stream without a session", "GET", "Accept: text/event-stream", "", 400},
		{"end without a session", "DELETE", "Accept: */*", "", 400},
		{"old unknown revision", "POST", session + "; Mcp-Protocol-Version: 1999-01-01", pingLine, 400},
		{"no revision", "POST", session + "; Mcp-Protocol-Version: 2025", pingLine, 400},
		{"new unknown revision", "POST", "Mcp-Protocol-Version: 2099-01-01; Mcp-Method: tools/call; Mcp-Name: echo", strings.ReplaceAll(modern, firstModern, "2099-01-01"), 400},
		{"revision zzz", "POST", session + "; Mcp-Protocol-Version: zzz", pingLine, 400},
		{"revision of 20,000 bytes", "POST", session + "; Mcp-Protocol-Version: " + long, pingLine, 400},
	} {
		status, text := do(t, url, c.method, c.headers, c.body)
		if status != c.want || strings.Contains(text, "goroutine") {
			t.Errorf("%s: %.300s", c.name, text)
		}
	}
	if !alive(s, id) {
		t.Error("the session is gone")
	}
	openStream(t, url, id) // nothing holds its place
}

// Request ids belong to their session: nobody cancels what another one asked.
func TestNobodyCancelsForOthers(t *testing.T) {
	started, release := make(chan struct{}, 2), make(chan struct{})
	var cancelled atomic.Bool
	f := newFakeTools()
	f.call = func(ctx context.Context, _ tool.Caller, _ tool.Call) (tool.Result, error) {
		started <- struct{}{}
		select {
		case <-ctx.Done():
			cancelled.Store(true)
		case <-release:
		}
		return tool.Text("mine"), nil
	}
	s := newServer(t, f, Options{})
	url := newHTTP(t, s)
	victim, other := openSession(t, url), openSession(t, url)
	modern, modernHeaders := modernCall(7, "echo")
	answers := make(chan string, 2)
	go func() {
		_, text := do(t, url, "POST", "Mcp-Session-Id: "+victim, callLine("7", "echo"))
		answers <- text
	}()
	go func() { _, text := do(t, url, "POST", modernHeaders, modern); answers <- text }()
	<-started
	<-started
	foreign := newStdio(within(t), t, s)
	talk(t, foreign, bufio.NewReader(foreign.out), 2, initialize, cancelLine("7"), pingLine)
	for _, headers := range []string{"Mcp-Session-Id: " + other, "Mcp-Protocol-Version: 2026-07-28; Mcp-Method: notifications/cancelled"} {
		if status, text := do(t, url, "POST", headers, cancelLine("7")); status != http.StatusAccepted {
			t.Errorf("%s: %s", headers, text)
		}
	}
	if !alive(s, other) { // its cancellation was handled by now
		t.Error("the other session is gone")
	}
	close(release)
	for range 2 {
		if text := <-answers; !strings.Contains(text, `"mine"`) {
			t.Errorf("got %s", text)
		}
	}
	if cancelled.Load() {
		t.Error("a call was cancelled")
	}
}

// Ten thousand requests at once are ten thousand answers, in bounds: so many
// calls run, the others are told to come again.
func TestTenThousandAtOnce(t *testing.T) {
	const n, most = 10000, 8
	var running, peak atomic.Int32
	f := newFakeTools()
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
		for now, seen := running.Add(1), peak.Load(); now > seen && !peak.CompareAndSwap(seen, now); seen = peak.Load() {
		}
		defer running.Add(-1)
		return tool.Text("done"), nil
	}
	s := newServer(t, f, Options{MaxCalls: most})
	t.Run("stdio", func(t *testing.T) {
		p := newStdio(within(t), t, s)
		in := bufio.NewReader(p.out)
		talk(t, p, in, 1, initialize)
		go func() {
			for i := range n {
				if _, err := io.WriteString(p.in, callLine(fmt.Sprint(i), "echo")+"\n"); err != nil {
					return // the test sees that answers are missing
				}
			}
		}()
		for range n {
			wantDoneOrBusy(t, talk(t, p, in, 1)[0])
		}
	})
	t.Run("http", func(t *testing.T) {
		session := "Mcp-Session-Id: " + sessionByHandler(t, s)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { wantDoneOrBusy(t, askHandler(s, session, callLine(fmt.Sprint(i), "echo")).Body.String()) })
		}
		all.Wait()
	})
	if peak.Load() > most {
		t.Errorf("%d calls ran at once", peak.Load())
	}
}

func wantDoneOrBusy(t *testing.T, answer string) {
	t.Helper()
	if !strings.Contains(answer, `"done"`) && !strings.Contains(answer, "8 calls are running") && !strings.Contains(answer, "1024 requests were not answered yet") {
		t.Errorf("got %s", answer)
	}
}

// A stdio client that asks and does not listen is not listened to.
func TestStdioUnansweredHaveALimit(t *testing.T) {
	release := make(chan struct{})
	f := newFakeTools()
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
		<-release
		return tool.Text("done"), nil
	}
	p := newStdio(within(t), t, newServer(t, f, Options{MaxCalls: 2 * maxUnanswered}))
	in := bufio.NewReader(p.out)
	talk(t, p, in, 1, initialize)
	for i := range maxUnanswered {
		talk(t, p, in, 0, callLine(fmt.Sprint(i), "echo"))
	}
	if got := talk(t, p, in, 1, callLine("9999", "echo"))[0]; !strings.Contains(got, `"id":9999,"error":{"code":-32603,"message":"1024 requests were not answered yet`) {
		t.Errorf("got %s", got)
	}
	close(release)
	for range maxUnanswered {
		if got := talk(t, p, in, 1)[0]; !strings.Contains(got, `"done"`) {
			t.Errorf("got %s", got)
		}
	}
	if got := talk(t, p, in, 1, pingLine)[0]; !strings.Contains(got, `"result":{}`) {
		t.Errorf("after it: %s", got)
	}
}
