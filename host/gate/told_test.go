package gate_test

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Whoever reads the log learns what a tool was refused and which command allows it,
// once in each call however often it asks.
func TestRefusalsAreToldToTheOperator(t *testing.T) {
	w := newWorld(t, "    grant: {http: [{host: a.example}]}\n")
	host := w.begin()
	for range 3 {
		wants(t, ask(host, abi.OpHTTP, get("https://b.example/")), abi.Denied, "hutch tools grant x.wasm --http b.example")
		wants(t, ask(host, abi.OpKVGet, `{"key":"a"}`), abi.Denied, "run this in a terminal: hutch tools grant x.wasm")
	}
	for _, line := range []string{`allow="hutch tools grant x.wasm --http b.example"`, `allow="hutch tools grant x.wasm"`} {
		if n := strings.Count(w.log.String(), line); n != 1 {
			t.Errorf("%q stands %d times in the log:\n%s", line, n, w.log)
		}
	}
	wants(t, ask(w.begin(), abi.OpHTTP, get("https://b.example/")), abi.Denied, "b.example")
	if n := strings.Count(w.log.String(), "--http b.example\""); n != 2 {
		t.Errorf("another call is told of %d times in all:\n%s", n, w.log)
	}
}
