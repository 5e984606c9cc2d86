// Package dialect knows the guest ABIs: it recognises one, asks a module for
// its tools, and calls them.
//
// Two dialects are spoken by modules that were compiled. Both export describe and call, which take nothing
// and return 0 or an error code, and both exchange the same JSON; they differ
// in how the bytes cross the wall. A [Hutch] guest imports from hutch:host,
// which moves whole buffers in the guest's own memory (native.go). A [V1] guest
// (a servlet of mcp.run, a plugin of hyper-mcp v1, whatever is built with an
// Extism PDK) imports from extism:host/env and moves eight bytes a call
// (extism.go). A third one, [JS], is a script with the engine that runs it (js.go).
//
// Every call begins in the state that a module has started in, on an instance of its
// own or one that was brought back to it (checkpoint.go), so no call sees another
// one's state. A [Guest] may be used from any number of
// goroutines; the package starts none. A guest is ended soon after its context is
// done, or when its fuel is used up.
package dialect

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Kind names a dialect.
type Kind string

// The dialects.
const (
	Hutch Kind = "hutch"
	V1    Kind = "v1"
	JS    Kind = "js"
)

// strict reports whether what a guest writes must be of our form exactly: nobody
// but us defines that.
func (k Kind) strict() bool { return k != V1 }

const (
	// MaxDescriptionBytes bounds what describe may write.
	MaxDescriptionBytes = 256 << 10
	// MaxTools bounds how many tools a module may describe.
	MaxTools = 64
)

// Options say how a guest is loaded. The zero value works.
type Options struct {
	// CacheDir and CacheReadOnly say where compiled code is; see [sandbox.Options].
	CacheDir      string
	CacheReadOnly bool
	// Limits bound describe, and each call that brings none of its own.
	// MemoryBytes holds for both of a guest's memories: its own, and for v1 the
	// one that Extism functions work on.
	Limits abi.Limits
	// Pages is as in [sandbox.Options].
	Pages *sandbox.Pages
	// Calls is how many instances are kept for the next calls: the most that run at
	// once. Default 1.
	Calls int
	// Logger gets what the text of a failure must not say; nil drops it.
	Logger *slog.Logger
}

// Guest is a loaded module. Its methods may be called concurrently.
type Guest struct {
	kind   Kind
	script *script // of a JS guest
	module *sandbox.Module
	limits abi.Limits
	calls  int
	logger *slog.Logger

	turn  chan struct{} // to find out where calls begin
	begun atomic.Pointer[beginning]
}

// Load checks wasm, recognises its dialect and compiles it, which cannot be
// interrupted. Errors are [*abi.Failure].
func Load(ctx context.Context, wasm []byte, o Options) (*Guest, error) {
	o.Limits = o.Limits.WithDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := wasmbin.Check(wasm, wasmbin.Budget{MemoryBytes: o.Limits.MemoryBytes})
	if err != nil {
		return nil, abi.Failf(abi.ClassModule, "%s", err)
	}
	kind, err := Recognise(m)
	if err != nil {
		return nil, abi.Failf(abi.ClassModule, "%s", err)
	}
	g := &Guest{kind: kind, limits: o.Limits, calls: o.Calls, logger: o.Logger, turn: make(chan struct{}, 1)}
	if kind == JS {
		if g.script, err = parseScript(m.Custom[ScriptSection]); err != nil {
			return nil, abi.Failf(abi.ClassModule, "%s", err)
		}
	}
	g.module, err = sandbox.Compile(ctx, m, sandbox.Options{
		CacheDir: o.CacheDir, CacheReadOnly: o.CacheReadOnly, Limits: o.Limits, StackUnits: stackUnits(kind), Hosts: hosts(kind), Pages: o.Pages, Logger: o.Logger,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// hosts returns what a guest of that dialect may import beside WASI.
func hosts(k Kind) []sandbox.HostModule {
	switch k {
	case V1:
		return []sandbox.HostModule{extismEnv(), extismUser()}
	case JS:
		return []sandbox.HostModule{jsHost()}
	}
	return []sandbox.HostModule{nativeHost()}
}

// CacheStale reports whether a read-only cache was of no use.
func (g *Guest) CacheStale() bool { return g.module.CacheStale() }

// Kind returns the guest's dialect.
func (g *Guest) Kind() Kind { return g.kind }

// Close gives back what Load took, at the latest when the running calls are
// done. It does not wait for them.
func (g *Guest) Close(ctx context.Context) error { return g.module.Close(ctx) }

// Describe returns what the module says about itself, as it wrote it: at most
// [MaxDescriptionBytes] of what [ParseDescription] reads. It runs without any
// capability and without configuration. Errors are [*abi.Failure].
func (g *Guest) Describe(ctx context.Context) ([]byte, error) {
	limits := g.limits
	limits.OutputBytes = MaxDescriptionBytes
	said := &complaint{}
	c := newCall(0, nil, abi.Invocation{Limits: limits, Log: said.take})
	out, err := g.invoke(ctx, exportDescribe, c)
	if over := (&overLimit{}); errors.As(err, &over) {
		return nil, abi.Failf(abi.ClassLimit, "description: more than %d bytes; describe fewer tools, or shorter", over.most)
	}
	return out, said.explain(plain(err))
}

// Call calls a tool and returns its result, as the module wrote it: at most
// Limits.OutputBytes of what [ParseResult] reads. callID stands in each
// [abi.Request] the guest makes meanwhile. Errors are [*abi.Failure]; the usage
// counts in either case.
func (g *Guest) Call(ctx context.Context, callID uint64, in abi.Invocation) ([]byte, abi.Usage, error) {
	if in.Limits == (abi.Limits{}) {
		in.Limits = g.limits
	}
	in.Limits = in.Limits.WithDefaults()
	input, err := request(in)
	if err != nil {
		return nil, abi.Usage{}, err
	}
	c := newCall(callID, input, in)
	out, err := g.invoke(ctx, exportCall, c)
	if over := (&overLimit{}); errors.As(err, &over) {
		err = abi.Exceeded(abi.ClassLimit, abi.LimitOutput, "result: more than %d bytes", over.most)
	}
	usage := c.usage()
	if !in.Limits.Fresh {
		usage.Anew = g.Anew()
	}
	return out, usage, plain(err)
}

// plain makes a nil interface of a nil failure, and leaves others alone.
func plain(err error) error {
	var f *abi.Failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return abi.Failf(abi.ClassInternal, "%s", err)
}

// What a module that was compiled exports, and a script has in the prelude.
const (
	exportDescribe = "describe"
	exportCall     = "call"
)

// invoke runs one export in the state that calls begin in, and returns what it wrote.
func (g *Guest) invoke(ctx context.Context, export string, c *call) ([]byte, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	defer c.journal.close()
	in, err := g.instance(ctx, c)
	if err != nil {
		return nil, either(ended(ctx), err)
	}
	defer func() {
		c.fuel = in.Fuel()
		if err := in.close(ctx); err != nil {
			g.logger.Warn("instance not closed", "error", err)
		}
	}()
	status, err := g.enter(ctx, in, export, c)
	if err := either(ended(ctx), err); err != nil {
		return nil, err
	}
	if g.kind == V1 {
		return c.extismAnswer(status)
	}
	return c.nativeAnswer(status)
}

// enter runs an export of the instance and returns its status.
func (g *Guest) enter(ctx context.Context, in started, export string, c *call) (int32, error) {
	if g.kind == JS {
		way := uint64(jsStart)
		if export == exportDescribe {
			way = jsDescribe
		}
		return g.script.run(newEngine(ctx, in.Instance, in.at), c, way)
	}
	results, err := in.Call(ctx, export)
	if err != nil {
		return 0, err
	}
	return int32(uint32(results[0])), nil // the export's type was checked
}

// either returns the first error that is one.
func either(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// ended returns why nobody waits for the answer any more, or nil.
func ended(ctx context.Context) error {
	if f := sandbox.Ended(ctx); f != nil {
		return f
	}
	return nil
}
