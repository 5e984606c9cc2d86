package wasmbin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

const (
	// runBudget is the fuel of all that is run of a module, in slices of runSlice.
	runBudget = 300_000
	runSlice  = 1_000
	// runStack is what fits the interpreter, which has room for 2,000 calls.
	runStack = 1_500 * wasmbin.FrameUnits
	// runLimit is how many calls and turns a grown module has for each call of ours.
	runLimit = 300
	// limitCost is how many instructions take one from it.
	limitCost = 7
	// runPages is how large a memory may become.
	runPages = 16
	// runSoon is how long a module may run without a meter that ended within its
	// budget with one.
	runSoon = 30 * time.Second
)

// small is the budget of modules that compile at once.
var small = wasmbin.Budget{
	FileBytes: 64 << 10, BodyBytes: 16 << 10, Locals: 100, Functions: 50, Imports: 20, Exports: 50, Segments: 50, TableEntries: 1_000,
	MemoryBytes: runPages << 16, Globals: 50, Blocks: 500, Loops: 100, LoopNesting: 30,
}

// run is a module that runs once, and what came of it.
type run struct {
	metered bool
	memory  bool // there is one
	grown   bool // it is of [wasmbintest.Grow]
	module  api.Module
	trace   []string // what it called, and with what
	events  []string // how each call of ours ended, and what can be seen from outside
	states  []string // of a metered one after each: fuel, stack, all that can change
	spent   int64
	ended   string   // why the meter ended the last call, if it did
	wrong   []string // of the meter, by itself
}

// tick is the meter's function.
func (r *run) tick(_ context.Context, stack []uint64) {
	r.spent -= int64(stack[0])
	switch {
	case int64(stack[1]) < 0:
		r.ended = "stack"
	case r.spent >= runBudget:
		r.ended = "fuel"
	default:
		r.spent += runSlice
		stack[0] = runSlice
		return
	}
	panic(r.ended)
}

var errImports = errors.New("it imports what cannot be given")

// hosts gives a module what it imports: functions that answer by how many calls there
// were.
func (r *run) hosts(ctx context.Context, engine wazero.Runtime, imports []api.FunctionDefinition) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range imports {
		module, name, _ := f.Import()
		numbers := func(t api.ValueType) bool { return t < api.ValueTypeF64 }
		if slices.ContainsFunc(slices.Concat(f.ParamTypes(), f.ResultTypes()), numbers) {
			return errImports
		}
		if builders[module] == nil {
			builders[module] = engine.NewHostModuleBuilder(module)
		}
		call := api.GoFunc(func(_ context.Context, stack []uint64) {
			r.trace = append(r.trace, fmt.Sprint(name, alike(stack[:len(f.ParamTypes())], f.ParamTypes())))
			for i := range f.ResultTypes() {
				stack[i] = uint64(len(r.trace) + i)
			}
		})
		if module == wasmbin.MeterModule {
			call = r.tick
		}
		builders[module].NewFunctionBuilder().WithGoFunction(call, f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return errImports
		}
	}
	return nil
}

// start instantiates a module and calls each exported function, twice, until so many
// calls were made or the meter ended one.
func (r *run) start(ctx context.Context, wasm []byte, config wazero.RuntimeConfig, calls int) (err error) {
	engine := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(runPages))
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	compiled, err := engine.CompileModule(ctx, wasm)
	if err != nil {
		return err
	}
	if err := r.hosts(ctx, engine, compiled.ImportedFunctions()); err != nil {
		return err
	}
	r.module, err = engine.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		r.events = append(r.events, trapText(err)+fmt.Sprint(r.trace))
		r.states = append(r.states, fmt.Sprint(r.spent))
		return nil
	}
	r.note("started", nil, nil)
	functions := compiled.ExportedFunctions()
	for round := range 2 {
		for _, name := range slices.Sorted(maps.Keys(functions)) {
			if len(r.events) == calls || r.ended != "" {
				return nil
			}
			r.call(ctx, name, round)
		}
	}
	return nil
}

func (r *run) call(ctx context.Context, name string, round int) {
	r.set(wasmbin.StackExport, runStack)
	r.set(wasmbintest.LimitExport, runLimit)
	f := r.module.ExportedFunction(name)
	var args []uint64
	for i, t := range f.Definition().ParamTypes() {
		n := uint64(len(r.events)*7 + i + round<<20)
		if args = append(args, n); t == api.ValueType(wasmbin.V128) {
			args = append(args, n)
		}
		if t == api.ValueType(wasmbin.FuncRef) || t == api.ValueTypeExternref {
			args[len(args)-1] = 0
		}
	}
	var used int64
	if r.metered {
		used = r.used()
	}
	values, err := f.Call(ctx, args...)
	if err == nil {
		values = alike(values, f.Definition().ResultTypes())
	}
	r.note(name, values, err)
	if err == nil && r.metered {
		r.settled(used)
	}
}

// settled holds what is true of the meter after a call that returned: all of the stack
// was given back, and what a grown module takes from its limit costs instructions.
func (r *run) settled(before int64) {
	if left := r.module.ExportedGlobal(wasmbin.StackExport).Get(); left != runStack {
		r.wrong = append(r.wrong, fmt.Sprintf("%d of the stack left, want %d", left, runStack))
	}
	if r.grown {
		least := limitCost * (runLimit - int64(r.module.ExportedGlobal(wasmbintest.LimitExport).Get()))
		if used := r.used() - before; used < least {
			r.wrong = append(r.wrong, fmt.Sprintf("%d fuel used, want at least %d", used, least))
		}
	}
}

// used is the fuel that was used.
func (r *run) used() int64 { return r.spent - int64(r.module.ExportedGlobal(wasmbin.FuelExport).Get()) }

func (r *run) set(name string, value uint64) {
	if g, ok := r.module.ExportedGlobal(name).(api.MutableGlobal); ok {
		g.Set(value)
	}
}

// note keeps how a call ended, and what it left.
func (r *run) note(name string, values []uint64, err error) {
	ended := fmt.Sprint(name, values, r.trace)
	if err != nil {
		ended = name + ": " + trapText(err)
	}
	if r.memory {
		all, _ := r.module.Memory().Read(0, r.module.Memory().Size())
		ended += fmt.Sprint(" memory ", len(all), crc32.Checksum(all, crc32.MakeTable(crc32.Castagnoli)))
	}
	for _, name := range []string{wasmbintest.LimitExport, "x", "y"} {
		if g := r.module.ExportedGlobal(name); g != nil {
			ended += fmt.Sprint(" ", name, alike([]uint64{g.Get()}, []api.ValueType{g.Type()}))
		}
	}
	r.events = append(r.events, ended)
	if r.metered {
		r.states = append(r.states, r.state())
	}
}

// state is fuel that was used, stack that is left, and the globals.
func (r *run) state() string {
	state := fmt.Sprint(r.used(), r.module.ExportedGlobal(wasmbin.StackExport).Get())
	for i := range small.Globals {
		if g := r.module.ExportedGlobal(wasmbin.GlobalExport(i)); g != nil {
			state += fmt.Sprint(alike([]uint64{g.Get(), 0}, []api.ValueType{g.Type()}))
		}
	}
	return state
}

// runs are a module without and with a meter, compiled and interpreted.
type runs struct{ plain, metered [2]*run }

// runAll runs a module in all ways. Without a meter only those calls are made that
// ended by themselves with one.
func runAll(ctx context.Context, m *wasmbin.Module, with []byte, grown bool) (all runs, err error) {
	configs := []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()}
	for i, config := range configs {
		all.metered[i] = &run{metered: true, memory: m.Memory != nil, grown: grown}
		if err := all.metered[i].start(ctx, with, config, -1); err != nil {
			return all, err
		}
	}
	calls := len(all.metered[0].events)
	if all.metered[0].ended != "" {
		calls--
	}
	for i, config := range configs {
		if all.plain[i] = (&run{memory: m.Memory != nil}); calls > 0 {
			over := time.AfterFunc(runSoon, func() { panic("a module runs on that ended with a meter") })
			err := all.plain[i].start(ctx, m.Stripped(), config, calls)
			if over.Stop(); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// differ says in what the runs differ, or nothing. Engines that differ without a meter
// as well, in the bits of a NaN, are not compared with each other.
func (all runs) differ() string {
	compiled, interpreted := all.metered[0], all.metered[1]
	if wrong := append(compiled.wrong, interpreted.wrong...); wrong != nil {
		return fmt.Sprintf("metered: %q", wrong)
	}
	for i, engine := range []string{"compiled", "interpreted"} {
		plain, metered := all.plain[i].events, all.metered[i].events
		if len(metered) < len(plain) || !slices.Equal(plain, metered[:len(plain)]) {
			return fmt.Sprintf("%s:\nplain   %s\nmetered %s", engine, strings.Join(plain, "\n        "), strings.Join(metered, "\n        "))
		}
	}
	switch {
	case !slices.Equal(all.plain[0].events, all.plain[1].events):
		return ""
	case !slices.Equal(compiled.events, interpreted.events) || compiled.ended != interpreted.ended:
		return fmt.Sprintf("metered:\ncompiled %q %q\ninterpreted %q %q", compiled.ended, compiled.events, interpreted.ended, interpreted.events)
	case !slices.Equal(compiled.states, interpreted.states):
		return fmt.Sprintf("metered:\ncompiled %q\ninterpreted %q", compiled.states, interpreted.states)
	}
	return ""
}

// choices are random bytes for [wasmbintest.Grow], always the same.
func choices(n int) (all [][]byte) {
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 5))
		b := make([]byte, 40+r.IntN(800))
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		b[0] &= 0x7f // not the beginning of a module
		all = append(all, append(b, 1))
	}
	return all
}

// runnable are modules that do something when they run.
func runnable() (all [][]byte) {
	for _, h := range append(wasmbintest.Fixtures(), wasmbintest.Generated()...) {
		if len(h.Bytes) < small.FileBytes {
			all = append(all, h.Bytes)
		}
	}
	for _, code := range []string{
		"410a 2100 0340 0340 0b 2000 4101 6b 2200 0d00 0b 0b", "4100 4100 41808004 fc0b00 0b", "4102 4000 1a 0b", "d070 41d000 fc0f00 1a 0b",
		"417f 4000 1a 0b", "d070 417f fc0f00 1a 0b", "4100 4100 41808008 fc0a0000 0b", "0340 4101 0440 0f 0b 0c00 0b 0b", "4100 110000 0b",
	} {
		all = append(all, exported(x(code)))
	}
	return append(all, numbered(), good())
}

// random are modules that binaryen makes of random bytes, with floats in them; none
// where it is not installed.
func random(f *testing.F, n int) (all [][]byte) {
	program, err := exec.LookPath("wasm-opt")
	if err != nil {
		f.Log("without modules of binaryen: ", err)
		return nil
	}
	dir := f.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, b := range choices(n) {
		if err := os.WriteFile(in, b, 0o600); err != nil {
			f.Fatal(err)
		}
		text, err := exec.CommandContext(f.Context(), program, "-ttf", in, "-o", out, "--mvp-features", "--enable-bulk-memory", "--enable-multivalue",
			"--enable-sign-ext", "--enable-nontrapping-float-to-int", "--enable-mutable-globals").CombinedOutput()
		if err != nil {
			f.Fatalf("wasm-opt: %v: %.300s", err, text)
		}
		all = append(all, read(f, out))
	}
	return all
}

// A module that is accepted does the same with a meter in it as without, and the
// compiler and the interpreter burn the same fuel. What is no module decides what one
// is made of.
func FuzzRewriteRuns(f *testing.F) {
	for _, seed := range slices.Concat(seeds(), metered(), runnable(), choices(100), random(f, 40)) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		grown := !bytes.HasPrefix(b, []byte("\x00asm"))
		if grown {
			b = wasmbintest.Grow(b[:min(len(b), 4_000)])
		}
		m, err := wasmbin.Check(b, small)
		if err != nil || m.Reserved() != nil {
			return
		}
		out, err := m.Rewrite(wasmbin.Rewriting{StackUnits: runStack})
		if err != nil {
			t.Fatal(err)
		}
		all, err := runAll(t.Context(), m, out.Wasm, grown)
		if err != nil {
			if grown {
				t.Fatal(err)
			}
			return
		}
		if text := all.differ(); text != "" {
			t.Fatal(text)
		}
	})
}

// Modules that are grown are accepted, and do what a meter could get wrong.
func TestGrownModulesDoMuch(t *testing.T) {
	want := map[string]int{
		"limit[": 500, "unreachable": 100, "integer divide by zero": 30, "out of bounds memory access": 15, "invalid table access": 80,
		"indirect call type mismatch": 20, "ended by fuel": 1,
	}
	seen := map[string]int{}
	for i, b := range choices(300) {
		m := check(t, wasmbintest.Grow(b))
		r := &run{metered: true, memory: true}
		if err := r.start(t.Context(), rewritten(t, m).Wasm, wazero.NewRuntimeConfigCompiler(), -1); err != nil {
			t.Fatalf("module %d: %v", i, err)
		}
		for _, e := range append(r.events, "ended by "+r.ended) {
			for text := range want {
				if strings.Contains(e, text) {
					seen[text]++
				}
			}
		}
	}
	t.Log(seen)
	for text, least := range want {
		if seen[text] < least {
			t.Errorf("%q was seen %d times, want at least %d", text, seen[text], least)
		}
	}
}
