package dialect

import (
	"context"
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// The native dialect. All pointers and lengths are i32 and mean the guest's own
// memory, exported as "memory"; each buffer crosses in one call and is copied.
//
//	input_len() -> i32                             length of the call's input
//	input_read(off, ptr, len) -> i32               copies at most len bytes from off; how many
//	output_write(ptr, len) -> i32                  appends to the output; 0
//	result_read(off, ptr, len) -> i32              like input_read, for the last result
//	log(level, ptr, len)                           level 0 trace .. 4 error
//	progress(ptr, len) -> i32                      {"progress":n,"total"?:n,"message"?:s}; 0
//	config_get(ptr, len) -> i64                    a key as JSON string; a JSON string or null
//	<each abi.Op>(ptr, len) -> i64                 JSON in, JSON out
//
// i32 results are -2 for a pointer and length that leave the memory (or a
// progress that is none) and -3 for what is over a limit; then nothing was
// read or written. i64 results are the length of the result, or -[abi.Code]
// with an error as JSON in its place; either is there for result_read until the
// next one. The exports return 0, or anything else with the error's text as
// their output.

type (
	valueType = wasmbin.ValueType
	funcType  = wasmbin.FuncType
)

const nativeModule = "hutch:host"

const (
	badPointer = -2
	tooMuch    = -3
)

// maxKeyBytes bounds the name of a configuration value.
const maxKeyBytes = 4 << 10

// nativeState is what a native guest has written and been answered so far.
type nativeState struct {
	output []byte
	// refused: some write was over the limit. torn: and something had been
	// written before, so that what stands there is a part of an answer.
	refused, torn bool
	result        []byte
}

// nativeOps are the gated operations, in the order of abi.
func nativeOps() []abi.Op {
	return []abi.Op{abi.OpHTTP, abi.OpKVGet, abi.OpKVSet, abi.OpKVDelete, abi.OpTracker,
		abi.OpConversation, abi.OpMCP, abi.OpA2A, abi.OpTool}
}

func types(t ...valueType) []valueType { return t }

func nativeHost() sandbox.HostModule {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	funcs := []sandbox.HostFunc{
		hostFunc("input_len", nil, types(i32), nativeInputLen),
		hostFunc("input_read", types(i32, i32, i32), types(i32), nativeInputRead),
		hostFunc("output_write", types(i32, i32), types(i32), nativeOutputWrite),
		hostFunc("result_read", types(i32, i32, i32), types(i32), nativeResultRead),
		hostFunc("log", types(i32, i32, i32), nil, nativeLog),
		hostFunc("progress", types(i32, i32), types(i32), nativeProgress),
		hostFunc("config_get", types(i32, i32), types(i64), nativeConfigGet),
	}
	for _, op := range nativeOps() {
		funcs = append(funcs, hostFunc(string(op), types(i32, i32), types(i64), nativeOp(op)))
	}
	return sandbox.HostModule{Name: nativeModule, Funcs: funcs}
}

func setI32(stack []uint64, v int) { stack[0] = uint64(uint32(int32(v))) }
func setI64(stack []uint64, v int) { stack[0] = uint64(int64(v)) }

func nativeInputLen(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	setI32(stack, len(c.input))
}

func nativeInputRead(_ context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	setI32(stack, copyOut(in, c.input, stack))
}

func nativeResultRead(_ context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	setI32(stack, copyOut(in, c.native.result, stack))
}

// copyOut copies from b to the guest as (off, ptr, len) on the stack say.
func copyOut(in *sandbox.Instance, b []byte, stack []uint64) int {
	off, ptr, n := uint32(stack[0]), uint32(stack[1]), uint32(stack[2])
	if !in.Contains(ptr, n) {
		return badPointer
	}
	b = b[min(uint64(off), uint64(len(b))):]
	b = b[:min(uint64(n), uint64(len(b)))]
	if !in.Write(ptr, b) {
		return badPointer
	}
	return len(b)
}

func nativeOutputWrite(_ context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	setI32(stack, c.native.write(in, uint32(stack[0]), uint32(stack[1]), c.limits.OutputBytes))
}

// write appends to the output; lengths are checked before anything is
// allocated.
func (s *nativeState) write(in *sandbox.Instance, ptr, n uint32, most int) int {
	if !in.Contains(ptr, n) {
		return badPointer
	}
	if uint64(len(s.output))+uint64(n) > uint64(most) {
		s.refused = true
		s.torn = s.torn || len(s.output) > 0
		return tooMuch
	}
	s.output, _ = in.Append(s.output, ptr, n)
	return 0
}

// nativeAnswer returns what call or describe wrote, or why it counts for
// nothing. A guest that was refused a write may still answer with less.
func (c *call) nativeAnswer(status int32) ([]byte, error) {
	s := &c.native
	if s.torn || s.refused && len(s.output) == 0 {
		return nil, &overLimit{c.limits.OutputBytes}
	}
	if status != 0 {
		return nil, guestError(status, s.output)
	}
	return s.output, nil
}

func nativeLog(_ context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	level, ptr, n := abi.LogLevel(int32(uint32(stack[0]))), uint32(stack[1]), uint32(stack[2])
	if !in.Contains(ptr, n) {
		c.journal.write(abi.Warn, []byte("(a log line outside the module's memory)"))
		return
	}
	// Of a line that will be cut, no more is copied than is needed to see that.
	line, _ := in.Read(ptr, min(n, uint32(c.limits.LogLineBytes)+1))
	c.journal.write(level, line)
}

func nativeProgress(_ context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	ptr, n := uint32(stack[0]), uint32(stack[1])
	switch {
	case !in.Contains(ptr, n):
		setI32(stack, badPointer)
	case n > maxProgressBytes:
		setI32(stack, tooMuch)
	default:
		body, _ := in.Read(ptr, n)
		setI32(stack, c.reports.report(body))
	}
}

func nativeConfigGet(ctx context.Context, c *call, in *sandbox.Instance, stack []uint64) {
	ptr, n := uint32(stack[0]), uint32(stack[1])
	r := abi.Response{Body: []byte("null")}
	var key string
	if n > maxKeyBytes {
		r = refuse(abi.Limit, "config_get", "key of %d bytes, at most %d", n, maxKeyBytes)
	} else if raw, ok := in.Read(ptr, n); !ok || json.Unmarshal(raw, &key) != nil {
		r = refuse(abi.Invalid, "config_get", "the key is no JSON string")
	} else if value, ok := c.configured(ctx, key); ok {
		r.Body, _ = json.Marshal(value) // strings always marshal
	}
	c.native.answer(stack, r)
}

func nativeOp(op abi.Op) func(context.Context, *call, *sandbox.Instance, []uint64) {
	return func(ctx context.Context, c *call, in *sandbox.Instance, stack []uint64) {
		ptr, n := uint32(stack[0]), uint32(stack[1])
		c.native.answer(stack, c.ask(ctx, op, int(n), func() ([]byte, bool) { return in.Read(ptr, n) }))
	}
}

// answer keeps r for result_read and returns its length or code.
func (s *nativeState) answer(stack []uint64, r abi.Response) {
	s.result = r.Body
	if r.Code != abi.OK {
		setI64(stack, -int(r.Code))
		return
	}
	setI64(stack, len(r.Body))
}
