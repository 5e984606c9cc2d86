package sdk

import (
	"encoding/json"
	"reflect"
	"runtime"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// room is how much memory a call finds on the heap before that has to grow.
const room = 512 << 10

// warm does once what each call would do first, since calls begin in the state that
// describe leaves: encoding/json learns the types of all tools, and the heap has room.
func (m *Module) warm() {
	for _, t := range m.Tools {
		if t.err != nil {
			continue
		}
		var in invocation
		call, err := encode(invocation{params{t.spec.Name, map[string]any{}}})
		if err != nil || decode(call, &in) != nil {
			continue
		}
		_ = t.in.arguments(in.Params.Arguments, reflect.New(t.in.typ).Interface()) // some are missing
		if t.out != nil {
			_, _ = t.out.encode(reflect.New(t.out.typ).Elem())
		}
	}
	_, _ = encode(tool.Text(""))
	if len(m.Requests.Tracker) > 0 {
		m.warmTracker()
	}
	runtime.KeepAlive(make([]byte, room))
	runtime.GC() // which gives it to the calls
}

// warmTracker does the same for a request to the tracker, whose answer is mostly what the
// tool answers.
func (m *Module) warmTracker() {
	body, _ := json.Marshal(map[string]any{"text": "", "optional": new(string), "number": int64(0), "list": []string{""}})
	_, _ = encode(abi.TrackerRequest{Method: "PATCH", Path: "/", Query: map[string]string{"": ""}, Body: body})
	_ = decode([]byte(`{"status":200,"body":{}}`), &abi.TrackerResponse{})
	for _, t := range m.Tools {
		if t.err != nil || t.out == nil {
			continue
		}
		if example, err := t.out.encode(reflect.New(t.out.typ).Elem()); err == nil {
			_ = json.Unmarshal(example, reflect.New(t.out.typ).Interface())
		}
	}
}
