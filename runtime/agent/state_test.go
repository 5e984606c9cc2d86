package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/agent"
	"github.com/hutch-run/hutch/runtime/session"
)

// S3-019: the state is told at the beginning, and changed by tools that may.
func TestS3_019_State(t *testing.T) {
	for _, tt := range []struct {
		name, state string
		meta        string
		want        string // what is told of it
		kept        string
	}{
		{"changed", `{"a":1,"b":2,"c/~":3}`, `{"ag-ui/state":{"a":null,"b":2,"c/~":{"d":1},"e":[],"f":null}}`,
			`state changes [{"op":"remove","path":"/a"},{"op":"add","path":"/c~1~0","value":{"d":1}},{"op":"add","path":"/e","value":[]}]`, `{"b":2,"c/~":{"d":1},"e":[]}`},
		{"there was none", ``, `{"ag-ui/state":{"e":1}}`, `state {"e":1}`, `{"e":1}`},
		{"it was null", `null`, `{"ag-ui/state":{"e":1}}`, `state {"e":1}`, `{"e":1}`},
		{"it stays", `{"a":1}`, `{"ag-ui/state":{"a":1}}`, ``, `{"a":1}`},
		{"nothing of it", `{"a":1}`, `{"other":1}`, ``, `{"a":1}`},
		{"no object", `{"a":1}`, `{"ag-ui/state":[1]}`, `hutch.warning {"code":"state","message":"the tool \"put\" changes the state, which stays as it is: the change is no object"}`, `{"a":1}`},
		{"it was no object", `[1]`, `{"ag-ui/state":{"a":1}}`, `hutch.warning {"code":"state","message":"the tool \"put\" changes the state, which stays as it is: the state is no object"}`, `[1]`},
		{"too large", `{"a":1}`, `{"ag-ui/state":{"a":"` + strings.Repeat("x", 100) + `"}}`, `hutch.warning {"code":"state","message":"the tool \"put\" changes the state, which stays as it is:`, `{"a":1}`},
	} {
		for _, may := range []bool{true, false} {
			t.Run(fmt.Sprint(tt.name, " ", may), func(t *testing.T) {
				b := newBench(t, calls(`c put {}`), text("ok"))
				b.so.StateBytes = 100
				wanted, kept, in := tt.want, tt.kept, agent.Input{}
				if may {
					b.o.StateTools = []string{"put"}
				} else {
					wanted, kept = "", tt.state
				}
				if tt.state != "" {
					in.State = json.RawMessage(tt.state)
				}
				if tt.state != "" && tt.state != "null" {
					wanted = "state " + tt.state + "\n" + wanted
				}
				r := tool.Text("ok")
				r.Meta = json.RawMessage(tt.meta)
				b.tools.have["put"] = givesResult(r)
				var said []string
				for line := range strings.Lines(b.turn("r", "hi", in)) {
					if strings.HasPrefix(line, "state") || strings.HasPrefix(line, "hutch") {
						line, _, _ = strings.Cut(line, "limit: ")
						said = append(said, strings.TrimSpace(line))
					}
				}
				want(t, "told", strings.Join(said, "\n"), wanted)
				thread, err := b.store.Thread(t.Context(), session.Ref{Owner: "ann", ID: "t"})
				if err != nil || string(thread.State) != kept {
					t.Errorf("kept is %s, %v", thread.State, err)
				}
			})
		}
	}
}

// What a failed call says about the state counts for nothing.
func TestFailedCallsChangeNoState(t *testing.T) {
	b := newBench(t, calls(`c put {}`), text("ok"))
	b.o.StateTools = []string{"put"}
	r := tool.Failed("no")
	r.Meta = json.RawMessage(`{"ag-ui/state":{"a":1}}`)
	b.tools.have["put"] = givesResult(r)
	for _, e := range b.run("r", "hi", agent.Input{}) {
		if e.Type() == event.TypeStateSnapshot || e.Type() == event.TypeStateDelta {
			t.Errorf("%+v", e)
		}
	}
}
