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
	o := gate.NewObserver(gate.Observation{})
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
		{abi.OpTracker, `{"method":"POST","path":"/tasks/TE-1/take","body":{}}`},
		{abi.OpTracker, `{"method":"POST","path":"/tasks/TE-2/take","body":{}}`},
		{abi.OpTracker, `{"method":"GET","path":"/tasks"}`},
		{abi.OpTracker, `{"method":"POST","path":"/projects"}`},
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
	if got := strings.Join(about[:2], "; "); got != "http_request POST https://API.example.org./v1/items; http_request GET https://api.example.org/v1/items/7" || len(about) != len(steps) || about[9] != "tracker_request POST /tasks/TE-1/take" {
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
      tracker: ["tasks:read", "tasks:take"]
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
	o := gate.NewObserver(gate.Observation{Recording: kept})
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

// A module that leaves its key to the host never writes a placeholder: what it
// announced goes into the policy, where it made the request.
func TestObserverKnowsSecretsThatTheHostPutsIn(t *testing.T) {
	header := capability.SecretRule{Name: "token", Header: "Authorization", Prefix: "Bearer ", Host: "api.example.org", Paths: []string{"/v1/"}, Reason: "It is theirs."}
	elsewhere := capability.SecretRule{Name: "other", Header: "Authorization", Host: "example.com"}
	open := capability.SecretRule{Header: "X-Key", Host: "api.example.org"}
	o := gate.NewObserver(gate.Observation{Requested: capability.Grant{Secrets: []capability.SecretRule{header, elsewhere, open}}})
	ask(o.Host, abi.OpHTTP, get("https://api.example.org/v2/items"))
	if g := o.Grant(); len(g.Secrets) != 0 {
		t.Errorf("for another path: %+v", g.Secrets)
	}
	ask(o.Host, abi.OpHTTP, get("https://api.example.org/v1/items"))
	header.Reason = ""
	want := fmt.Sprint([]capability.SecretRule{header})
	if got := fmt.Sprint(o.Grant().Secrets); got != want {
		t.Errorf("left to the host: %s, want %s", got, want)
	}
	ask(o.Host, abi.OpHTTP, `{"url":"https://api.example.org/v1/items","headers":{"authorization":"secret://token"}}`)
	if got := fmt.Sprint(o.Grant().Secrets); got != want {
		t.Errorf("asked for as well: %s, want %s", got, want)
	}
}

// Values may be served where there is a storage for it, and hosts that a redirect
// led to are part of the policy.
func TestObserverServesValuesAndFollowsRecordedRedirects(t *testing.T) {
	asked := 0
	values := func(context.Context, abi.Request) abi.Response {
		asked++
		return abi.Response{Body: []byte(`{"found":false}`)}
	}
	moved := gate.Exchange{Op: abi.OpHTTP, Request: []byte(`{"url":"http://localhost:81/a","method":"POST"}`),
		Answer: []byte(`{"status":200,"url":"https://www.example.org/b","body":"c"}`)}
	o := gate.NewObserver(gate.Observation{Recording: []gate.Exchange{moved}, Values: values, Config: map[string]string{"region": "eu"}})
	wants(t, ask(o.Host, abi.OpKVGet, `{"key":"a"}`), abi.OK, "found")
	wants(t, ask(o.Host, abi.OpTracker, `{}`), abi.Denied, "only observed")
	wants(t, ask(o.Host, abi.OpHTTP, `{"method":"POST","url":"http://localhost:81/a"}`), abi.OK, "200")
	wants(t, ask(o.Host, abi.OpConfig, `"region"`), abi.OK, `"eu"`)
	wants(t, ask(o.Host, abi.OpConfig, `"other"`), abi.OK, `null`)
	wants(t, ask(o.Host, abi.OpConfig, `7`), abi.Invalid, "no JSON string")
	if asked != 1 {
		t.Errorf("the storage was asked %d times", asked)
	}
	if a := o.Attempts(); !a[0].Answered || a[1].Answered || a[1].Code != abi.Denied || a[2].HTTP.Method != "POST" ||
		a[3].Key != "region" || !a[3].Answered || a[4].Key != "other" || a[4].Answered {
		t.Errorf("attempts %+v", a)
	}
	const want = `    grant:
      http:
        - {host: www.example.org, methods: [GET], paths: [/b]}
        - {scheme: http, host: localhost, methods: [POST], paths: [/a], ports: [81], allow_private: ["127.0.0.1/32", "::1/128"]}
      kv: {}
`
	if text := o.Policy("x.wasm", capability.Binding{}); !strings.HasSuffix(text, want) {
		t.Errorf("got\n%s\nwant at its end\n%s", text, want)
	}
}
