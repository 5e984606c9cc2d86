package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/host/gate"
	"github.com/hutch-run/hutch/protocol/abi"
)

// What is observed under nothing gives the policy under which it works.
func TestObserverFindsTheSmallestPolicy(t *testing.T) {
	o := gate.NewObserver(nil)
	steps := []struct {
		op   abi.Op
		body string
	}{
		{abi.OpHTTP, `{"method":"post","url":"https://API.example.org./v1/items?q=1&key=secret://query_key","headers":{"Authorization":"Bearer secret://token"}}`},
		{abi.OpHTTP, `{"url":"https://api.example.org/v1/items/7","headers":{"Authorization":"Bearer secret://token"}}`},
		{abi.OpHTTP, `{"url":"http://[::1]:8080/"}`},
		{abi.OpHTTP, `{"url":"%"}`},
		{abi.OpHTTP, `{}`},
		{abi.OpKVSet, `{"key":"a/b","value":"c"}`},
		{abi.OpKVGet, `{"prefix":"a"}`},
		{abi.OpConversation, `{}`},
		{abi.OpTracker, `{}`},
	}
	for _, s := range steps {
		wants(t, ask(o.Host, s.op, s.body), abi.Denied, "only observed")
	}
	wants(t, ask(o.Host, "launch", `{}`), abi.Invalid, "unknown operation")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wants(t, o.Host(ended, abi.Request{Op: abi.OpKVGet}), abi.Cancelled, "ended")
	var about []string
	for _, a := range o.Attempts() {
		about = append(about, fmt.Sprintf("%s %s", a.Op, a.About))
	}
	if got := strings.Join(about[:2], "; "); got != "http_request POST https://API.example.org./v1/items; http_request GET https://api.example.org/v1/items/7" || len(about) != len(steps) {
		t.Errorf("attempts %q", about)
	}
	text := o.Policy("x.wasm", capability.Binding{Digest: digest})
	const want = `    grant:
      http:
        - {host: api.example.org, methods: [GET, POST], paths: [/v1/items]}
        - {scheme: http, host: "::1", methods: [GET], paths: [/], ports: [8080], allow_private: ["::1/128"]}
      secrets:
        - {name: query_key, query: key, host: api.example.org}
        - {name: token, header: Authorization, host: api.example.org}
      kv: {}
      conversation: [send]
`
	if !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant at its end\n%s", text, want)
	}
	if _, err := capability.Parse("policy.yaml", []byte(text)); err != nil {
		t.Errorf("it is no policy: %v", err)
	}
}

// A recording that was made at a gate answers without one.
func TestObserverAnswersFromARecording(t *testing.T) {
	n := 0
	base, entry := server(t, "", func(w http.ResponseWriter, _ *http.Request) { n++; fmt.Fprintf(w, "%d %s", n, theSecret) })
	w := newWorld(t, entry)
	var kept []gate.Exchange
	host := gate.Recorded(w.begin(), func(e gate.Exchange) { kept = append(kept, e) })
	for range 2 {
		wants(t, ask(host, abi.OpHTTP, get(base)), abi.OK, "[redacted:token]")
	}
	wants(t, ask(host, abi.OpHTTP, get("https://example.org")), abi.Denied, "not granted")
	wants(t, ask(host, abi.OpHTTP, `broken`), abi.Invalid, "")
	if len(kept) != 3 || strings.Contains(fmt.Sprint(kept), "hunter2") {
		t.Fatalf("kept %v", kept)
	}
	o := gate.NewObserver(kept)
	for _, want := range []string{`"1 [redacted`, `"2 [redacted`, `"2 [redacted`} {
		wants(t, ask(o.Host, abi.OpHTTP, ` { "url" : "`+base+`" } `), abi.OK, want)
	}
	wants(t, ask(o.Host, abi.OpHTTP, get("https://example.org")), abi.Denied, "not granted")
	wants(t, ask(o.Host, abi.OpHTTP, get("https://example.com")), abi.Denied, "only observed")
	if n != 2 {
		t.Errorf("the server was asked %d times", n)
	}
	if a := o.Attempts(); !a[0].Answered || a[4].Answered {
		t.Errorf("attempts %+v", a)
	}
}
