package dialect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
)

// maxRequestBytes bounds the body of one gated operation.
const maxRequestBytes = 4 << 20

// maxErrorBytes bounds a guest's own error text.
const maxErrorBytes = 4 << 10

// call is the state of one call of one export: what its host functions share.
// It belongs to the goroutine that runs the guest.
type call struct {
	id     uint64
	limits abi.Limits
	input  []byte
	config map[string]string
	// asksConfig: the host has the configuration, not config.
	asksConfig bool
	host       abi.Host

	journal   journal
	reports   reports
	hostCalls int
	fuel      int64 // burned, once the call has ended
	// asked: the guest called any function of its dialect. personal:
	// one whose answer depends on who calls.
	asked, personal bool

	native nativeState
	extism extismState
	js     jsState
}

func newCall(id uint64, input []byte, in abi.Invocation) *call {
	c := &call{id: id, limits: in.Limits, input: input, config: maps.Clone(in.Config), asksConfig: in.AskConfig, host: in.Host}
	c.journal = journal{emit: in.Log, mostLines: in.Limits.LogLines, mostBytes: in.Limits.LogLineBytes}
	c.reports.emit = in.Progress
	c.extism.arena.most = uint64(in.Limits.MemoryBytes)
	return c
}

// request returns the input of the export call (the type CallToolRequest of
// mcp.run and hyper-mcp v1), or a failure if it is over the limit.
func request(in abi.Invocation) ([]byte, error) {
	name, err := json.Marshal(in.Tool)
	if err != nil {
		return nil, abi.Failf(abi.ClassInternal, "the tool's name is no text")
	}
	arguments := in.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	const start, middle, end = `{"method":"tools/call","params":{"name":`, `,"arguments":`, `}}`
	size := len(start) + len(name) + len(middle) + len(arguments) + len(end)
	if size > in.Limits.InputBytes {
		return nil, abi.Exceeded(abi.ClassLimit, abi.LimitInput, "input of %d bytes, at most %d", size, in.Limits.InputBytes)
	}
	b := make([]byte, 0, size)
	b = append(append(b, start...), name...)
	b = append(append(b, middle...), arguments...)
	return append(b, end...), nil
}

func (c *call) usage() abi.Usage {
	return abi.Usage{LogLines: c.journal.lines, HostCalls: c.hostCalls, Fuel: c.fuel}
}

// printed takes a line from the guest's standard output or error.
func (c *call) printed(fd int, line []byte) {
	level := abi.Info
	if fd == 2 {
		level = abi.Warn
	}
	c.journal.write(level, line)
}

// ask has the host do a gated operation with a request of size bytes, which
// body copies, and answers itself where the host may not be asked.
func (c *call) ask(ctx context.Context, op abi.Op, size int, body func() ([]byte, bool)) abi.Response {
	c.hostCalls++
	c.personal = true
	switch {
	case c.hostCalls > c.limits.HostCalls:
		return refuse(abi.Limit, op, "host calls are used up: at most %d in one call (%s)", c.limits.HostCalls, abi.LimitHostCalls.Key())
	case size > maxRequestBytes:
		return refuse(abi.Limit, op, "request of %d bytes, at most %d", size, maxRequestBytes)
	case c.host == nil:
		return refuse(abi.Denied, op, "nothing is granted to this module")
	case ctx.Err() != nil:
		return refuse(abi.Cancelled, op, "the call has ended")
	}
	b, ok := body()
	if !ok {
		return refuse(abi.Invalid, op, "the request lies outside the module's memory")
	}
	r := c.host(ctx, abi.Request{CallID: c.id, Op: op, Body: b})
	if r.Code < abi.OK || r.Code > abi.Cancelled {
		return refuse(abi.Unavailable, op, "the host answered with code %d", r.Code)
	}
	return r
}

// configured returns the value of a configuration key, if there is one.
func (c *call) configured(ctx context.Context, key string) (value string, ok bool) {
	c.personal = true
	if !c.asksConfig {
		value, ok = c.config[key]
		return value, ok
	}
	r := c.ask(ctx, abi.OpConfig, len(key), func() ([]byte, bool) {
		body, err := json.Marshal(key)
		return body, err == nil
	})
	var found *string
	if r.Code != abi.OK || json.Unmarshal(r.Body, &found) != nil || found == nil {
		return "", false
	}
	return *found, true
}

func refuse(code abi.Code, op abi.Op, format string, args ...any) abi.Response {
	return abi.Refuse(code, string(op)+": "+fmt.Sprintf(format, args...))
}

// overLimit says that an export wrote more than most bytes. The caller knows
// what they were.
type overLimit struct{ most int }

func (e *overLimit) Error() string { return "more than " + strconv.Itoa(e.most) + " bytes" }

// guestError is the failure of a guest that reported text, or only a status.
func guestError(status int32, text []byte) error {
	if line := abi.OneLine(string(text), maxErrorBytes); line != "" {
		return &abi.Failure{Class: abi.ClassGuest, Text: line}
	}
	return abi.Failf(abi.ClassGuest, "the tool returned %d and no error text", status)
}

// hostFunc adapts a function that works on the call's state.
func hostFunc(name string, params, results []valueType, f func(context.Context, *call, *sandbox.Instance, []uint64)) sandbox.HostFunc {
	return sandbox.HostFunc{
		Name: name,
		Type: funcType{Params: params, Results: results},
		Call: func(ctx context.Context, in *sandbox.Instance, stack []uint64) {
			c := in.State().(*call) // every instance of this package has one
			c.asked = true
			f(ctx, c, in, stack)
			in.Moved(c.extism.arena.moved)
			c.extism.arena.moved = 0
		},
	}
}
