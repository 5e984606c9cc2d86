package sdk

import (
	"reflect"
	"runtime"

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
	runtime.KeepAlive(make([]byte, room))
	runtime.GC() // which gives it to the calls
}
