package sandbox

import (
	"context"
	"errors"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Config says what one instance is given.
type Config struct {
	// State is what host functions find with [Instance.State].
	State any
	// Line takes what the guest writes to standard output (1) and error (2),
	// line by line without the line's end; nil drops it. It must not keep the
	// slice. A line longer than LineBytes is cut there; zero means 8 KiB.
	Line      func(fd int, line []byte)
	LineBytes int
	// Fuel is how much the instance may burn; zero means Limits.Fuel of the
	// module's options.
	Fuel int64
}

// Instance is one running copy of a module: its memory and its globals. It is
// not for concurrent use.
type Instance struct {
	owner  *Module
	module api.Module
	state  any
	ctx    context.Context // of the call that runs; what a sleep watches
	funcs  map[string]api.Function
	inner  map[string]api.Function // those for Reenter; a function has one call at a time
	within bool                    // Reenter runs
	memory *memory                 // nil until the engine asks for one
	meter  meter
	output [2]lineWriter
	close  sync.Once
	// altered: what the system keeps for the guest is no longer as at the start.
	// broken: its last call ended so that the engine is not trusted with another.
	altered, broken bool
	// globals are those that a checkpoint sets; nil without one.
	globals []api.MutableGlobal
}

// Instantiate makes an instance and runs the module's start function, if it has
// one; exports such as _initialize are the caller's to call. The error is an
// [*abi.Failure].
func (m *Module) Instantiate(ctx context.Context, c Config) (in *Instance, err error) {
	if !m.use() {
		return nil, abi.Failf(abi.ClassInternal, "the module is closed")
	}
	m.makeRoom(ctx)
	in = &Instance{owner: m, state: c.State, ctx: ctx, meter: m.meter}
	if c.Fuel > 0 {
		in.meter.budget, in.meter.left = c.Fuel, c.Fuel
	}
	for i := range in.output {
		in.output[i] = lineWriter{fd: i + 1, emit: m.guardedLine(c.Line), most: c.LineBytes, in: in}
	}
	defer func() {
		if v := recover(); v != nil {
			err = in.startPanic(v)
		}
		if err != nil {
			in.discard(ctx)
			in = nil
		}
	}()
	mod, err := m.runtime.InstantiateModule(in.withMemory(in.findable(ctx)), m.compiled, in.config())
	in.flush()
	if err != nil {
		return in, in.failure(err, true)
	}
	in.module = mod
	if in.meter.on {
		in.meter.fuel = mod.ExportedGlobal(wasmbin.FuelExport).(api.MutableGlobal) // as it was added
	}
	return in, nil
}

// startPanic says why an instantiation ended in a panic.
func (in *Instance) startPanic(v any) error {
	if err, ok := v.(error); ok && errors.Is(err, errNoRoom) {
		return abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "%s: fewer calls at a time, or less memory for each", errNoRoom)
	}
	if large := (*sizeError)(nil); errors.As(asError(v), &large) {
		return abi.Failf(abi.ClassModule, "does not start: %s", large)
	}
	return in.failure(enginePanic(v), false)
}

// findable returns a context by which host functions find the instance.
func (in *Instance) findable(ctx context.Context) context.Context {
	return context.WithValue(ctx, instanceKey{}, in)
}

func (in *Instance) config() wazero.ModuleConfig {
	return in.system(wazero.NewModuleConfig().
		WithName(""). // several instances of one name would collide
		WithStartFunctions().
		WithStdout(&in.output[0]).
		WithStderr(&in.output[1]))
}

// Call calls an exported function and returns its results. A guest that still runs
// when ctx is done is ended when its slice of fuel is used up, a sleep of it at once.
// The error is an [*abi.Failure]; the instance is good for closing only then.
func (in *Instance) Call(ctx context.Context, export string, args ...uint64) (results []uint64, err error) {
	f := in.function(&in.funcs, export)
	if f == nil {
		return nil, abi.Failf(abi.ClassModule, "export %q is missing", export)
	}
	if in.memory != nil {
		in.memory.refused = 0
	}
	defer func() {
		if v := recover(); v != nil {
			in.broken = true
			results, err = nil, in.failure(enginePanic(v), false)
		}
	}()
	in.ctx = ctx
	results, err = f.Call(in.findable(ctx), args...)
	in.flush()
	if err != nil {
		in.broken = in.broken || !clean(err)
		return nil, in.failure(err, false)
	}
	return results, nil
}

// function resolves an export once, because doing so is 100 times as slow as a
// call.
func (in *Instance) function(known *map[string]api.Function, name string) api.Function {
	f, ok := (*known)[name]
	if !ok {
		if *known == nil {
			*known = map[string]api.Function{}
		}
		f = in.module.ExportedFunction(name)
		(*known)[name] = f
	}
	return f
}

// Reenter calls an exported function for a host function that the guest has called,
// with the ctx that this got, and returns its results. It returns only if the guest
// does: else the call that led to the host function fails as the guest did. What it
// calls may call host functions, but none of these gets in once more.
func (in *Instance) Reenter(ctx context.Context, export string, args ...uint64) []uint64 {
	f := in.function(&in.inner, export)
	switch {
	case f == nil:
		panic(&stop{abi.Failf(abi.ClassModule, "export %q is missing", export)})
	case in.within: // the engine would run two calls on one stack
		panic(&stop{abi.Failf(abi.ClassTrap, "trapped: it calls the host while the host calls it")})
	}
	in.within = true
	defer func() { in.within = false }()
	results, err := f.Call(ctx, args...)
	if err != nil {
		panic(&stop{in.failure(err, false)})
	}
	return results
}

// SetGlobal sets the guest's own mutable global of that index, an i32, and reports
// whether there is one. It is for whoever knows what the module keeps there.
func (in *Instance) SetGlobal(index int, v uint32) bool {
	g, ok := in.module.ExportedGlobal(wasmbin.GlobalExport(index)).(api.MutableGlobal)
	if !ok || g.Type() != api.ValueTypeI32 {
		return false
	}
	g.Set(uint64(v))
	return true
}

// OverMemory returns the failure of a guest that was refused memory in the running
// call, or after it, and then did what did says; nil if it was not refused any.
func (in *Instance) OverMemory(did string) *abi.Failure { return in.overMemory(did) }

// State returns [Config.State].
func (in *Instance) State() any { return in.state }

// MemoryBytes is how much memory the guest has.
func (in *Instance) MemoryBytes() uint64 {
	if memory := in.module.Memory(); memory != nil {
		return uint64(memory.Size())
	}
	return 0
}

// Contains reports whether n bytes from ptr lie in the guest's memory.
func (in *Instance) Contains(ptr, n uint32) bool {
	_, ok := in.look(ptr, n)
	return ok
}

// Read returns a copy of n bytes from ptr, or false if they do not all lie in
// the guest's memory; then nothing is allocated.
func (in *Instance) Read(ptr, n uint32) ([]byte, bool) { return in.Append(nil, ptr, n) }

// Append appends n bytes from ptr to b, or returns b and false if they do not
// all lie in the guest's memory; then nothing is allocated.
func (in *Instance) Append(b []byte, ptr, n uint32) ([]byte, bool) {
	view, ok := in.view(ptr, n)
	if !ok {
		return b, false
	}
	return append(b, view...), true
}

// Write copies b into the guest's memory at ptr, or returns false and writes
// nothing if it does not all fit.
func (in *Instance) Write(ptr uint32, b []byte) bool {
	if uint64(len(b)) > 1<<32-1 {
		return false
	}
	view, ok := in.view(ptr, uint32(len(b)))
	if ok {
		copy(view, b)
	}
	return ok
}

// view returns the guest's own bytes, which are to be copied; it must not outlive a
// host function.
func (in *Instance) view(ptr, n uint32) ([]byte, bool) {
	b, ok := in.look(ptr, n)
	in.Moved(len(b))
	return b, ok
}

func (in *Instance) look(ptr, n uint32) ([]byte, bool) {
	if in.module == nil || in.module.IsClosed() { // a closed module's memory is unmapped
		return nil, false
	}
	memory := in.module.Memory()
	if memory == nil {
		return nil, false
	}
	// The sum is 33 bits: what the engine checks for itself is checked here
	// again, because everything rests on it.
	if size := uint64(memory.Size()); uint64(ptr)+uint64(n) > size {
		return nil, false
	}
	return memory.Read(ptr, n)
}

// Close gives the instance's memory back. Only the first Close does anything.
func (in *Instance) Close(ctx context.Context) error {
	var err error
	in.close.Do(func() {
		if in.module != nil {
			err = in.module.Close(ctx)
		}
		if in.memory != nil {
			in.memory.Free() // a second time, unless the module never started
		}
		if e := in.owner.release(ctx); err == nil {
			err = e
		}
	})
	return err
}

// discard closes an instance of which something else is to be reported.
func (in *Instance) discard(ctx context.Context) {
	if err := in.Close(ctx); err != nil {
		in.owner.logger.Warn("instance not closed", "error", err)
	}
}

func (in *Instance) flush() {
	for i := range in.output {
		in.output[i].flush()
	}
}
