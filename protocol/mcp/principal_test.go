package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// byHeader takes the principal from a header, as no server should.
func byHeader(r *http.Request) (string, bool) {
	who := r.Header.Get("X-Who")
	return who, who != "nobody"
}

// Calls and lists are those of whoever sent the request, in both eras.
func TestCallsHaveTheirPrincipal(t *testing.T) {
	f := newFakeTools()
	f.call = func(_ context.Context, c tool.Caller, _ tool.Call) (tool.Result, error) {
		return tool.Text("called by " + c.Principal), nil
	}
	url := newHTTP(t, newServer(t, f, Options{Principal: byHeader}))
	for _, who := range []string{"alice", "bob"} {
		body, headers := modernCall(1, "echo")
		if status, text := do(t, url, "POST", headers+"; X-Who: "+who, body); status != http.StatusOK || !strings.Contains(text, "called by "+who) {
			t.Errorf("modern: %s", text)
		}
		session := openSessionAs(t, url, who)
		call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`
		if status, text := do(t, url, "POST", "X-Who: "+who+"; Mcp-Session-Id: "+session, call); status != http.StatusOK || !strings.Contains(text, "called by "+who) {
			t.Errorf("legacy: %s", text)
		}
		list := `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
		if status, text := do(t, url, "POST", "X-Who: "+who+"; Mcp-Session-Id: "+session, list); status != http.StatusOK {
			t.Errorf("list: %s", text)
		}
		f.mu.Lock()
		if last := f.callers[len(f.callers)-1]; last.Principal != who {
			t.Errorf("the list is for %s", last.Principal)
		}
		f.mu.Unlock()
	}
}

func openSessionAs(t *testing.T, url, who string) string {
	t.Helper()
	req := newRequest(within(t), t, "POST", url, initialize)
	req.Header.Set("X-Who", who)
	resp, err := httpClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if text := responseText(t, resp); resp.StatusCode != http.StatusOK {
		t.Fatal(text)
	}
	return resp.Header.Get(sessionHeader)
}

// A session of somebody else is as good as none, to the byte.
func TestH11_SessionsOfOthers(t *testing.T) {
	f := newFakeTools()
	called := false
	f.call = func(context.Context, tool.Caller, tool.Call) (tool.Result, error) {
		called = true
		return tool.Text(""), nil
	}
	url := newHTTP(t, newServer(t, f, Options{Principal: byHeader}))
	session := openSessionAs(t, url, "alice")
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`
	for _, method := range []string{"POST", "GET", "DELETE"} {
		status, text := do(t, url, method, "X-Who: bob; Mcp-Session-Id: "+session, call)
		none, noText := do(t, url, method, "X-Who: bob; Mcp-Session-Id: "+strings.Repeat("A", len(session)), call)
		if status != http.StatusNotFound || status != none || text != noText {
			t.Errorf("%s: %d %q, of none %d %q", method, status, text, none, noText)
		}
	}
	if called {
		t.Error("a tool ran in the session of another")
	}
	if status, text := do(t, url, "POST", "X-Who: alice; Mcp-Session-Id: "+session, call); status != http.StatusOK || !called {
		t.Errorf("its owner: %s", text)
	}
}

// Who is nobody gets nothing.
func TestH18_NobodyIsLetIn(t *testing.T) {
	f := newFakeTools()
	url := newHTTP(t, newServer(t, f, Options{Principal: byHeader}))
	body, headers := modernCall(1, "echo")
	for _, who := range []string{"; X-Who: nobody", ""} {
		if status, text := do(t, url, "POST", headers+who, body); status != http.StatusForbidden {
			t.Errorf("%q: %s", who, text)
		}
	}
}
