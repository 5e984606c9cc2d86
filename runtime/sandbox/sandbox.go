// Package sandbox runs one WebAssembly module under limits.
//
// [Compile] makes a [Module], which owns one wazero runtime and whatever was
// compiled in it: a compiled module is never shared between runtimes. Each
// [Module.Instantiate] starts from nothing; an [Instance] belongs to one
// goroutine at a time, a Module to any number. The package starts no
// goroutines.
//
// A [Checkpoint] keeps the state of an instance that has started. Calls on its
// instances begin in that state, whatever the calls before did, and cost about what
// they would on an instance that is only used again.
//
// What a guest has without asking: WASI preview 1 without files, arguments,
// environment and input; a clock and a sleep that are coarse to a millisecond;
// random numbers from the system.
//
// A guest counts the fuel it burns, and asks for more in slices. That is where it
// ends when its budget is used up or its context is done. What this does not reach,
// compiling above all, is ended by killing the process.
package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// features is what of WebAssembly a module may use: version 2.0 and nothing
// that a newer engine may switch on by itself.
const features = api.CoreFeaturesV2

// parallelBytes is the size from which compiling with several threads pays.
const parallelBytes = 128 << 10

// Options say how a module is run. The zero value works: no cache, default
// limits, nothing to import but WASI.
type Options struct {
	// CacheDir is a folder for compiled code, which is created if it is missing
	// and refused if anyone else could write it; empty keeps none. What lies in
	// it is native code: never share it with anyone who is not trusted with
	// this process.
	CacheDir string
	// CacheReadOnly uses what lies in CacheDir and changes nothing in it. What
	// cannot be used is compiled anew, and [Module.CacheStale] says so.
	CacheReadOnly bool
	// Limits bound each instance; only MemoryBytes and Fuel are read here.
	Limits abi.Limits
	// Slice is how much fuel a guest gets at a time: how late it notices that it
	// should end. Default 100,000, which is about 0.1 ms.
	Slice int64
	// StackUnits is how much of the stack calls within each other may take; see
	// [wasmbin.Rewriting].
	StackUnits int64
	// Unmetered runs the module as it is: nothing ends it. It is for measuring what
	// metering costs.
	Unmetered bool
	// Pages has calls bring back only what they changed, where an instance is used
	// again; nil compares all of its memory. It belongs to the module from then on.
	Pages *Pages
	// Hosts are the modules that a guest may import beside WASI.
	Hosts []HostModule
	// Interpret runs the module in the interpreter, 70 to 180 times slower. It
	// is the default where the platform has no compiler.
	Interpret bool
	// Logger gets what a failure's text must not say, such as the text of a
	// panic; nil drops it.
	Logger *slog.Logger
}

// Module is a compiled module. Its methods may be called concurrently.
type Module struct {
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil if there is none
	compiled wazero.CompiledModule
	logger   *slog.Logger
	started  time.Time
	stale    bool
	most     uint64 // bytes of memory that an instance may have
	meter    meter  // of a new instance
	pages    *Pages // nil if there is none
	// mutable are the guest's own globals that a checkpoint keeps; uncovered is why
	// there is none.
	mutable   []wasmbin.MutableGlobal
	uncovered string

	mu         sync.Mutex
	users      int // instances alive, and one for the module itself until Close
	closed     bool
	checkpoint *Checkpoint // nil until it is made
}

// Compile puts a meter into a module, compiles it and links it with what o offers.
// It cannot be interrupted. The error is an [*abi.Failure]: of class module if the
// module is at fault.
func Compile(ctx context.Context, module *wasmbin.Module, o Options) (m *Module, err error) {
	defer func() {
		if err == nil || o.Pages == nil {
			return
		}
		if closing := o.Pages.Close(); closing != nil {
			o.Logger.Warn("pages not closed", "error", closing)
		}
	}()
	o.Limits = o.Limits.WithDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Slice <= 0 {
		o.Slice = defaultSlice
	}
	wasm, uncovered := module.Stripped(), "it is not metered"
	var mutable []wasmbin.MutableGlobal
	if !o.Unmetered {
		rewritten, err := module.Rewrite(wasmbin.Rewriting{StackUnits: o.StackUnits})
		if err != nil {
			return nil, abi.Failf(abi.ClassModule, "%s", err)
		}
		wasm, mutable, uncovered = rewritten.Wasm, rewritten.Mutable, Uncovered(rewritten)
	}
	folder, err := openCache(o.CacheDir, wasm, o)
	if err != nil {
		o.Logger.Error("compilation cache refused", "error", err)
		return nil, abi.Failf(abi.ClassInternal, "compilation cache: %s", cacheReason(err))
	}
	m, err = compile(ctx, wasm, o, folder.path)
	if err != nil && folder.hit { // whole, but not of this engine's making
		o.Logger.Warn("cache entry that the engine refuses", "error", err)
		folder.clear()
		m, err = compile(ctx, wasm, o, folder.path)
	}
	if err == nil && !folder.hit {
		folder.seal()
	}
	if err != nil && isFileError(err) {
		o.Logger.Warn("compiling without a cache", "error", err)
		folder.stale = true
		m, err = compile(ctx, wasm, o, "")
	}
	if err != nil {
		return nil, compileFailure(err)
	}
	m.stale, m.pages, m.mutable, m.uncovered = folder.stale, o.Pages, mutable, uncovered
	return m, nil
}

// CacheStale reports whether a cache that may only be read held nothing of use.
func (m *Module) CacheStale() bool { return m.stale }

// compile makes a module with cacheDir as its cache, or without one.
func compile(ctx context.Context, wasm []byte, o Options, cacheDir string) (m *Module, err error) {
	m = &Module{
		logger: o.Logger, started: time.Now(), users: 1, most: memoryPages(o.Limits) * abi.PageBytes,
		meter: meter{on: !o.Unmetered, slice: o.Slice, budget: o.Limits.Fuel, left: o.Limits.Fuel},
	}
	defer func() {
		if v := recover(); v != nil { // a damaged cache entry can do that
			err = enginePanic(v)
		}
		if err != nil {
			if e := m.free(ctx); e != nil {
				o.Logger.Warn("module not closed", "error", e)
			}
			m = nil
		}
	}()
	config := wazero.NewRuntimeConfig()
	if o.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(features).
		WithMemoryLimitPages(maxPages). // ours is kept where memory is given out
		WithDebugInfoEnabled(false)
	if cacheDir != "" {
		if m.cache, err = wazero.NewCompilationCacheWithDir(cacheDir); err != nil {
			return m, &cacheError{err}
		}
		config = config.WithCompilationCache(m.cache)
	}
	m.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	return m, m.load(ctx, wasm, o.Hosts)
}

// load registers what a guest may import and compiles it.
func (m *Module) load(ctx context.Context, wasm []byte, hosts []HostModule) error {
	if err := m.registerSystem(ctx); err != nil {
		return err
	}
	if err := m.registerMeter(ctx); err != nil {
		return err
	}
	for _, h := range hosts {
		if err := m.register(ctx, h); err != nil {
			return err
		}
	}
	if len(wasm) >= parallelBytes {
		ctx = experimental.WithCompilationWorkers(ctx, min(runtime.GOMAXPROCS(0), 4))
	}
	var err error
	if m.compiled, err = m.runtime.CompileModule(ctx, wasm); err != nil {
		return err
	}
	for _, mem := range m.compiled.ExportedMemories() {
		if starts := uint64(mem.Min()) * abi.PageBytes; starts > m.most {
			return errTooLarge(starts, m.most)
		}
	}
	return m.checkImports()
}

// maxPages is one less than there could be, so that a size fits 32 bits.
const maxPages = 1<<16 - 1

// memoryPages returns how many pages of memory an instance may have.
func memoryPages(l abi.Limits) uint64 {
	return uint64(min(max(l.MemoryBytes/abi.PageBytes, 1), maxPages))
}

// Exports reports whether the module exports a function of that name.
func (m *Module) Exports(name string) bool {
	_, ok := m.compiled.ExportedFunctions()[name]
	return ok
}

// Close gives everything back, at the latest when the last instance is closed.
// It does not wait for instances. No instance can be made afterwards. Only the
// first Close does anything.
func (m *Module) Close(ctx context.Context) error {
	m.mu.Lock()
	first, checkpoint := !m.closed, m.checkpoint
	m.closed = true
	m.mu.Unlock()
	if !first {
		return nil
	}
	var err error
	if checkpoint != nil {
		err = checkpoint.shut(ctx)
	}
	return errors.Join(err, m.release(ctx))
}

// use counts an instance, unless the module is closed.
func (m *Module) use() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.users++
	return true
}

func (m *Module) release(ctx context.Context) error {
	m.mu.Lock()
	m.users--
	last := m.users == 0
	m.mu.Unlock()
	if !last {
		return nil
	}
	return m.free(ctx)
}

// free closes what compile opened, once: closing a compiled module or a cache
// twice takes references that belong to others.
func (m *Module) free(ctx context.Context) error {
	var errs []error
	if m.compiled != nil {
		errs = append(errs, m.compiled.Close(ctx))
	}
	if m.runtime != nil {
		errs = append(errs, m.runtime.Close(ctx))
	}
	if m.cache != nil {
		errs = append(errs, m.cache.Close(ctx))
	}
	if m.pages != nil {
		errs = append(errs, m.pages.Close())
	}
	return errors.Join(errs...)
}
