package dialect

import (
	"context"
	"math"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// The v1 dialect: what Extism's plugin development kits import, as
// extism/go-sdk v1.7.1 (host.go) and its kernel answer it, with an arena in
// place of the kernel. A pointer is an i64, the offset of a block in the arena.
//
//	alloc(n) -> at                  0 for 0 bytes, and where the SDK fails: over the limit
//	free(at)                        unknown offsets are left alone
//	length(at), length_unsafe(at)   of the block at that very offset, else 0
//	load_u8, load_u64, store_u8, store_u64
//	input_length, input_offset, input_load_u8, input_load_u64
//	output_set(at, n), error_set(at)
//	config_get(key) -> value        0 if there is none
//	var_get(key) -> value, var_set(key, value)    for the length of one call
//	http_request(request, body) -> body, http_status_code, http_headers
//	log_trace .. log_error(at), get_log_level
//
// What the SDK answers with a trap is a value here wherever the ABI has room
// for one. Where it has none (a store outside the arena, variables over their
// limit), the call goes on and fails in the end: an answer that something is
// missing from is never given.

const (
	extismModule     = "extism:host/env"
	extismUserModule = "extism:host/user"
)

// maxVarBytes bounds the names and values of a call's variables together, and
// maxVars their number.
const (
	maxVarBytes = 1 << 20
	maxVars     = 1 << 10
)

// extismState is what a v1 guest has written and been answered so far.
type extismState struct {
	arena    arena
	inputAt  uint64
	output   outputRange
	errorAt  uint64
	vars     map[string][]byte
	varBytes int
	response httpResponse
	// fault is the first thing that makes whatever the guest answers worthless;
	// starved is the last allocation that was refused, often its cause.
	fault   *abi.Failure
	starved *abi.Failure
}

type outputRange struct{ at, n uint64 }

func extismEnv() sandbox.HostModule {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	one, two := types(i64), types(i64, i64)
	funcs := []sandbox.HostFunc{
		hostFunc("alloc", one, one, extismAlloc),
		hostFunc("free", one, nil, extismFree),
		hostFunc("length", one, one, extismLength),
		hostFunc("length_unsafe", one, one, extismLength),
		hostFunc("load_u8", one, types(i32), extismLoad(1)),
		hostFunc("load_u64", one, one, extismLoad(8)),
		hostFunc("store_u8", types(i64, i32), nil, extismStore(1)),
		hostFunc("store_u64", two, nil, extismStore(8)),
		hostFunc("input_length", nil, one, extismInputLength),
		hostFunc("input_offset", nil, one, extismInputOffset),
		hostFunc("input_load_u8", one, types(i32), extismInputLoad(1)),
		hostFunc("input_load_u64", one, one, extismInputLoad(8)),
		hostFunc("output_set", two, nil, extismOutputSet),
		hostFunc("error_set", one, nil, extismErrorSet),
		hostFunc("config_get", one, one, extismConfigGet),
		hostFunc("var_get", one, one, extismVarGet),
		hostFunc("var_set", two, nil, extismVarSet),
		hostFunc("http_request", two, one, extismHTTPRequest),
		hostFunc("http_status_code", nil, types(i32), extismHTTPStatus),
		hostFunc("http_headers", nil, one, extismHTTPHeaders),
		hostFunc("get_log_level", nil, types(i32), extismLogLevel),
	}
	for level, name := range []string{"log_trace", "log_debug", "log_info", "log_warn", "log_error"} {
		funcs = append(funcs, hostFunc(name, one, nil, extismLog(abi.LogLevel(level))))
	}
	return sandbox.HostModule{Name: extismModule, Funcs: funcs}
}

// extismUser has what old servlets of mcp.run and one plugin of hyper-mcp
// import beside the kit. A changed tool list is nothing to announce for an
// instance that ends with the call.
func extismUser() sandbox.HostModule {
	one := types(wasmbin.I64)
	return sandbox.HostModule{Name: extismUserModule, Funcs: []sandbox.HostFunc{
		hostFunc("config_get", one, one, extismConfigGet),
		hostFunc("notify_tool_list_changed", nil, nil, func(context.Context, *call, *sandbox.Instance, []uint64) {}),
	}}
}

// spoil notes why the call will fail, unless something did before.
func (s *extismState) spoil(f *abi.Failure) {
	if s.fault == nil {
		s.fault = f
	}
}

// outside notes a use of memory that was never given out. If memory was
// refused before, that is what went wrong.
func (s *extismState) outside(did string, at, n uint64) *abi.Failure {
	if s.starved != nil {
		return s.starved
	}
	return abi.Failf(abi.ClassTrap, "%s: %d bytes at %d lie outside the tool's Extism memory", did, n, at)
}

// give allocates a block for bytes that the host hands over.
func (s *extismState) give(what string, b []byte) uint64 {
	at := s.arena.put(b)
	if at == 0 && len(b) > 0 {
		s.starve(uint64(len(b)))
		s.spoil(abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "%s of %d bytes does not fit the tool's Extism memory of %d bytes", what, len(b), s.arena.most))
	}
	return at
}

func (s *extismState) starve(n uint64) {
	s.starved = abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "the tool asked for %d more bytes of Extism memory; it has %d blocks, and at most %d bytes", n, len(s.arena.blocks), s.arena.most)
}

func extismAlloc(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	n := stack[0]
	if stack[0] = c.extism.arena.alloc(n); stack[0] == 0 && n > 0 {
		c.extism.starve(n)
	}
}

func extismFree(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	c.extism.arena.release(stack[0])
}

func extismLength(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	stack[0] = c.extism.arena.length(stack[0])
}

func extismLoad(n uint64) func(context.Context, *call, *sandbox.Instance, []uint64) {
	return func(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
		v, ok := c.extism.arena.load(stack[0], n)
		if !ok {
			c.extism.spoil(c.extism.outside("load", stack[0], n))
		}
		stack[0] = v
	}
}

func extismStore(n uint64) func(context.Context, *call, *sandbox.Instance, []uint64) {
	return func(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
		if !c.extism.arena.store(stack[0], n, stack[1]) {
			c.extism.spoil(c.extism.outside("store", stack[0], n))
		}
	}
}

func extismInputLength(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	stack[0] = uint64(len(c.input))
}

// extismInputOffset copies the input into the arena when it is first asked for.
func extismInputOffset(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	if c.extism.inputAt == 0 {
		c.extism.inputAt = c.extism.give("the input", c.input)
	}
	stack[0] = c.extism.inputAt
}

// extismInputLoad reads the input; behind its end there are zeros, as in the
// kernel.
func extismInputLoad(n uint64) func(context.Context, *call, *sandbox.Instance, []uint64) {
	return func(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
		rest := c.input[min(stack[0], uint64(len(c.input))):]
		var v uint64
		for i, b := range rest[:min(n, uint64(len(rest)))] {
			v |= uint64(b) << (8 * i)
		}
		stack[0] = v
	}
}

func extismOutputSet(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	c.extism.output = outputRange{stack[0], stack[1]}
}

func extismErrorSet(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	c.extism.errorAt = stack[0]
}

// extismAnswer returns what call or describe set as its output, or why it
// counts for nothing. An error that is set counts whatever was returned.
func (c *call) extismAnswer(status int32) ([]byte, error) {
	s := &c.extism
	if s.fault != nil {
		return nil, s.fault
	}
	// Of a text that will be cut, no more is copied than is needed to see that.
	n := min(s.arena.length(s.errorAt), maxErrorBytes+utf8.UTFMax)
	if text, _ := s.arena.view(s.errorAt, n); status != 0 || len(text) > 0 {
		return nil, guestError(status, text)
	}
	if s.output.n == 0 {
		return nil, nil
	}
	// Where the range lies is looked at now: since it was set, the guest may
	// have done anything. The size comes before the copy.
	b, ok := s.arena.view(s.output.at, s.output.n)
	if !ok {
		return nil, s.outside("output_set", s.output.at, s.output.n)
	}
	if len(b) > c.limits.OutputBytes {
		return nil, &overLimit{c.limits.OutputBytes}
	}
	return append([]byte(nil), b...), nil
}

func extismConfigGet(ctx context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	if c.extism.arena.length(stack[0]) > maxKeyBytes { // then there is none
		stack[0] = 0
		return
	}
	value, _ := c.configured(ctx, string(c.extism.arena.block(stack[0])))
	stack[0] = c.extism.give("a configuration value", []byte(value))
}

func extismVarGet(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	if c.extism.arena.length(stack[0]) > maxVarBytes { // then there is none
		stack[0] = 0
		return
	}
	value := c.extism.vars[string(c.extism.arena.block(stack[0]))]
	stack[0] = c.extism.give("a variable", value)
}

// extismVarSet frees both blocks, as the SDK does; offset 0 for a value removes
// the variable.
func extismVarSet(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	s := &c.extism
	defer s.arena.release(stack[1])
	defer s.arena.release(stack[0])
	if s.arena.length(stack[0])+s.arena.length(stack[1]) > maxVarBytes { // before it is copied
		s.tooManyVars()
		return
	}
	name, value, remove := string(s.arena.block(stack[0])), s.arena.block(stack[1]), stack[1] == 0
	old, there := s.vars[name]
	if there {
		delete(s.vars, name)
		s.varBytes -= len(name) + len(old)
	}
	if remove {
		return
	}
	if s.varBytes+len(name)+len(value) > maxVarBytes || len(s.vars) >= maxVars {
		s.tooManyVars()
		return
	}
	if s.vars == nil {
		s.vars = map[string][]byte{}
	}
	s.vars[name] = value
	s.varBytes += len(name) + len(value)
}

func (s *extismState) tooManyVars() {
	s.spoil(abi.Failf(abi.ClassLimit, "the tool keeps more than %d variables or %d bytes in them", maxVars, maxVarBytes))
}

// extismLog frees the block, as the SDK does.
func extismLog(level abi.LogLevel) func(context.Context, *call, *sandbox.Instance, []uint64) {
	return func(_ context.Context, c *call, in *sandbox.Instance, stack []uint64) {
		n := c.extism.arena.length(stack[0])
		line, _ := c.extism.arena.view(stack[0], min(n, uint64(c.limits.LogLineBytes)+1))
		in.Moved(len(line))
		c.journal.write(level, line)
		c.extism.arena.release(stack[0])
	}
}

// extismLogLevel asks for everything if someone listens.
func extismLogLevel(_ context.Context, c *call, _ *sandbox.Instance, stack []uint64) {
	level := abi.Trace
	if c.journal.emit == nil {
		level = math.MaxInt32
	}
	setI32(stack, int(level))
}
