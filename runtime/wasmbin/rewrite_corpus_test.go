package wasmbin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// rewritten returns a module that was checked with a meter in it.
func rewritten(t testing.TB, m *wasmbin.Module) *wasmbin.Rewritten {
	t.Helper()
	out, err := m.Rewrite(wasmbin.Rewriting{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Whatever is accepted is valid for the engine after it was rewritten, if it was
// before.
func TestRewrittenModulesAreValid(t *testing.T) {
	engine := judge(t, 0)
	valid := 0
	dirs := []string{corpus(t), sources(t, "github.com/extism/go-sdk"), filepath.Join(sources(t, "github.com/tetratelabs/wazero"), "imports")}
	for _, dir := range dirs {
		for _, path := range modules(t, dir) {
			b := read(t, path)
			m, err := wasmbin.Check(b, wide)
			if err != nil || engine(b) != nil {
				continue
			}
			valid++
			if err := engine(rewritten(t, m).Wasm); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	t.Logf("%d modules", valid)
	if valid < 2_000 {
		t.Errorf("the corpus shrank: %d valid modules", valid)
	}
}

func TestRewrittenGuestsAreValid(t *testing.T) {
	engine := judge(t, 0)
	for _, path := range guests(t) {
		b := read(t, path)
		m := check(t, b)
		first, second := rewritten(t, m), rewritten(t, m)
		if err := engine(first.Wasm); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if !bytes.Equal(first.Wasm, second.Wasm) {
			t.Errorf("%s: not the same bytes twice", path)
		}
		if grown := float64(len(first.Wasm)) / float64(len(m.Stripped())); grown > 1.3 {
			t.Errorf("%s: %.2f times as large", path, grown)
		}
	}
}

// world is an engine with what a script put into it.
type world struct {
	runtime wazero.Runtime
	module  api.Module            // the last one, nil if it is not there
	named   map[string]api.Module // by what the script calls them
	all     []api.Module
	slice   int64
	spent   int64
	asked   int
}

func newWorld(t *testing.T, config wazero.RuntimeConfig) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{slice: 1000, named: map[string]api.Module{}, runtime: wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2))}
	t.Cleanup(func() {
		if err := w.runtime.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	wasi_snapshot_preview1.MustInstantiate(ctx, w.runtime)
	i64 := api.ValueTypeI64
	_, err := w.runtime.NewHostModuleBuilder(wasmbin.MeterModule).NewFunctionBuilder().
		WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
			if int64(stack[1]) < 0 {
				panic("stack overflow")
			}
			w.spent -= int64(stack[0]) // it was used, and more than there was
			w.spent += w.slice
			w.asked++
			stack[0] = uint64(w.slice)
		}), []api.ValueType{i64, i64}, []api.ValueType{i64}).Export(wasmbin.MeterFunction).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// What the scripts import.
	builder := w.runtime.NewHostModuleBuilder("spectest")
	for name, params := range map[string][]api.ValueType{
		"print": nil, "print_i32": {api.ValueTypeI32}, "print_i64": {i64}, "print_f32": {api.ValueTypeF32}, "print_f64": {api.ValueTypeF64},
		"print_i32_f32": {api.ValueTypeI32, api.ValueTypeF32}, "print_f64_f64": {api.ValueTypeF64, api.ValueTypeF64},
	} {
		builder.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), params, nil).Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// result is what an action came to.
type result struct {
	values []uint64
	trap   string
}

// of returns the module that an action is about, nil if that is not there.
func (w *world) of(module string) api.Module {
	if module == "" {
		return w.module
	}
	return w.named[module]
}

// act does what a script says, for which module is there.
func (w *world) act(t *testing.T, a wasmbintest.Action, args []uint64) (result, bool) {
	m := w.of(a.Module)
	if a.Type == "get" {
		g := m.ExportedGlobal(a.Field)
		if g == nil {
			return result{}, false
		}
		return result{values: alike([]uint64{g.Get()}, []api.ValueType{g.Type()})}, true
	}
	return w.call(t, m, a.Field, args)
}

func (w *world) call(t *testing.T, m api.Module, field string, args []uint64) (result, bool) {
	f := m.ExportedFunction(field)
	if f == nil {
		return result{}, false
	}
	for _, m := range w.all {
		if stack, ok := m.ExportedGlobal(wasmbin.StackExport).(api.MutableGlobal); ok {
			stack.Set(2 << 20) // a trap gave none of it back
		}
	}
	values, err := f.Call(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		return result{trap: trapText(err)}, true
	}
	return result{values: alike(values, f.Definition().ResultTypes())}, true
}

// trapText is what an error says of a trap. Where it came from, in which functions
// have numbers, follows in further lines, or stands before it if it was the start.
func trapText(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if strings.Contains(text, "stack overflow") { // each has its own way to say so
		return "stack overflow"
	}
	if where, what, ok := strings.Cut(text, " failed: "); ok && strings.HasPrefix(where, "start function[") {
		return "start failed: " + what
	}
	return text
}

// alike returns values with all that may differ made equal: the bits of a NaN, what
// stands above 32 bits, and which reference it is.
func alike(values []uint64, kinds []api.ValueType) []uint64 {
	values = slices.Clone(values)
	i := 0
	for _, kind := range kinds {
		switch kind {
		case api.ValueTypeI32:
			values[i] = uint64(uint32(values[i]))
		case api.ValueTypeF32:
			values[i] = uint64(uint32(values[i]))
			if f := api.DecodeF32(values[i]); f != f {
				values[i] = math.MaxUint64
			}
		case api.ValueTypeF64:
			if f := api.DecodeF64(values[i]); f != f {
				values[i] = math.MaxUint64
			}
		case api.ValueType(wasmbin.FuncRef), api.ValueTypeExternref:
			values[i] = min(values[i], 1)
		case api.ValueType(wasmbin.V128):
			i++
		}
		i++
	}
	return values
}

// start makes an instance, which others import by name if it has one, or none and
// says why.
func (w *world) start(t *testing.T, wasm []byte, name string) (api.Module, string) {
	m, err := w.runtime.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return nil, trapText(err)
	}
	w.all = append(w.all, m)
	return m, ""
}

// keep has the actions that follow go to a module, nil if it is not there.
func (w *world) keep(m api.Module, name string) {
	w.module = m
	if name != "" {
		w.named[name] = m
	}
}

// used is the fuel that was used.
func (w *world) used() int64 {
	used := w.spent
	for _, m := range w.all {
		used -= int64(m.ExportedGlobal(wasmbin.FuelExport).Get())
	}
	return used
}

// What the specification asserts is the same of a module and of what it was
// rewritten to, in the compiler and in the interpreter; and both spend the same
// fuel.
func TestRewrittenModulesDoTheSame(t *testing.T) {
	compared, refused := 0, 0
	for _, version := range []string{"v1", "v2"} {
		scripts, err := filepath.Glob(filepath.Join(corpus(t), "spectest", version, "testdata", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range scripts {
			t.Run(version+"/"+filepath.Base(path), func(t *testing.T) {
				s := &same{dir: filepath.Dir(path)}
				if err := json.Unmarshal(read(t, path), &s.script); err != nil {
					t.Fatal(err)
				}
				s.run(t)
				compared += s.compared
				refused += s.refused
			})
		}
	}
	t.Logf("%d assertions, %d of modules that are refused", compared, refused)
	if compared < 66_500 || refused > 550 {
		t.Errorf("the corpus changed: %d assertions, %d of modules that are refused", compared, refused)
	}
}

// same is a script that runs as it is and rewritten.
type same struct {
	dir      string
	script   wasmbintest.Script
	plain    *world
	metered  []*world // the compiler's and the interpreter's
	compared int
	refused  int // what is asserted of modules that are not accepted
}

func (s *same) run(t *testing.T) {
	compiler, interpreter := wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()
	s.plain, s.metered = newWorld(t, compiler), []*world{newWorld(t, compiler), newWorld(t, interpreter)}
	for i, c := range s.script.Commands {
		switch c.Type {
		case "module":
			started := s.start(t, c, s.script.RegisteredAs(i))
			for j, w := range append(s.metered, s.plain) {
				w.keep(started[j], c.Name)
			}
		case "assert_uninstantiable", "assert_unlinkable":
			s.start(t, c, "")
		case "assert_return", "assert_trap", "assert_exhaustion", "action":
			s.action(t, c)
		case "register", "assert_invalid", "assert_malformed":
		default:
			t.Errorf("a command that is not known: %s", c.Type)
		}
	}
}

// start makes a module in all worlds, the plain one last, or in none.
func (s *same) start(t *testing.T, c wasmbintest.Command, as string) (started [3]api.Module) {
	wasm := read(t, filepath.Join(s.dir, c.Filename))
	m, err := wasmbin.Check(wasm, wide)
	if err != nil {
		if s.refused++; !onPurpose(err) {
			t.Errorf("%s: %v", c.Filename, err)
		}
		return started
	}
	s.compared++
	with := rewritten(t, m).Wasm
	plain, want := s.plain.start(t, wasm, as)
	started[2] = plain
	for i, w := range s.metered {
		var got string
		if started[i], got = w.start(t, with, as); got != want {
			t.Errorf("%s: %q, unmetered %q", c.Filename, got, want)
		}
	}
	return started
}

func (s *same) action(t *testing.T, c wasmbintest.Command) {
	if s.plain.of(c.Action.Module) == nil {
		s.refused++
		return
	}
	var args []uint64
	for _, a := range c.Action.Args {
		words, err := a.Words()
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, words...)
	}
	want, ok := s.plain.act(t, c.Action, args)
	if !ok {
		t.Fatalf("no %s to %s", c.Action.Field, c.Action.Type)
	}
	want = lanes(want, c.Expected)
	s.compared++
	for i, w := range s.metered {
		got, _ := w.act(t, c.Action, args)
		got = lanes(got, c.Expected)
		if got.trap != want.trap || !slices.Equal(got.values, want.values) {
			t.Errorf("%s%v: %v, unmetered %v (interpreter %v)", c.Action.Field, args, got, want, i == 1)
		}
	}
	compiled, interpreted := s.metered[0], s.metered[1]
	if want.trap == "stack overflow" { // the interpreter's stack is another one
		interpreted.spent += compiled.used() - interpreted.used()
	}
	if a, b := compiled.used(), interpreted.used(); a != b {
		t.Errorf("%s%v: fuel %d, interpreter %d", c.Action.Field, args, a, b)
	}
}

// lanes makes the bits of each NaN equal in a result that is a vector of floats.
func lanes(r result, expected []wasmbintest.Value) result {
	if len(expected) != 1 || len(r.values) != 2 {
		return r
	}
	for i, v := range r.values {
		switch expected[0].Lane {
		case "f64":
			r.values[i] = alike([]uint64{v}, []api.ValueType{api.ValueTypeF64})[0]
		case "f32":
			halves := alike([]uint64{v, v >> 32}, []api.ValueType{api.ValueTypeF32, api.ValueTypeF32})
			r.values[i] = halves[0]&math.MaxUint32 | halves[1]<<32
		}
	}
	return r
}
