package capability_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

func requests(names ...string) tool.Requests {
	r := tool.Requests{}
	for _, name := range names {
		r[name] = json.RawMessage(`{}`)
	}
	return r
}

func TestDecide(t *testing.T) {
	const listed = ": known capabilities are http, secrets, kv, tracker, conversation, bridge, tool, fs"
	tests := []struct {
		name     string
		requests tool.Requests
		want     tool.Decision
	}{
		{"nothing", nil, tool.Decision{Status: tool.Ready}},
		{"an empty list", tool.Requests{}, tool.Decision{Status: tool.Ready}},
		{"one", requests("http"), tool.Decision{Status: tool.Held,
			Reason: "asks for http: this version of hutch grants no capability"}},
		{"several, in a fixed order", requests("kv", "http", "fs"), tool.Decision{Status: tool.Held,
			Reason: "asks for fs, http, kv: this version of hutch grants no capability"}},
		{"one that does not exist", requests("http", "telepathy"), tool.Decision{Status: tool.Rejected,
			Reason: `asks for "telepathy"` + listed}},
		{"another case is another name", requests("HTTP"), tool.Decision{Status: tool.Rejected,
			Reason: `asks for "HTTP"` + listed}},
		{"text that would break the line", requests("a\nb\u202e"), tool.Decision{Status: tool.Rejected,
			Reason: `asks for "a\nb\u202e"` + listed}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, shipped := range []bool{false, true} {
				m := tool.Module{Name: "x.wasm", Shipped: shipped, Requests: tt.requests}
				got := capability.Policy{}.Decide(tool.Caller{Principal: "local"}, m, tool.Spec{Name: "x"})
				if got != tt.want {
					t.Errorf("shipped %t: Decide = %+v, want %+v", shipped, got, tt.want)
				}
			}
		})
	}
}

func TestDecideKeepsReasonsShort(t *testing.T) {
	r := tool.Requests{}
	for i := range 1000 {
		r[fmt.Sprintf("%s%03d", strings.Repeat("x", 1000), i)] = nil
	}
	d := capability.Policy{}.Decide(tool.Caller{}, tool.Module{Requests: r}, tool.Spec{})
	if d.Status != tool.Rejected || len(d.Reason) > 500 || !strings.Contains(d.Reason, "995 more") {
		t.Errorf("Decide = %s, %d bytes: %s", d.Status, len(d.Reason), d.Reason)
	}
}

// Every gated operation asks for something that a policy can name.
func TestEveryOperationHasAKnownCapability(t *testing.T) {
	for _, op := range []abi.Op{abi.OpHTTP, abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete, abi.OpTracker,
		abi.OpConversation, abi.OpMCP, abi.OpA2A, abi.OpTool} {
		d := capability.Policy{}.Decide(tool.Caller{}, tool.Module{Requests: requests(op.Capability())}, tool.Spec{})
		if d.Status != tool.Held {
			t.Errorf("%s asks for %q: %+v", op, op.Capability(), d)
		}
	}
}
