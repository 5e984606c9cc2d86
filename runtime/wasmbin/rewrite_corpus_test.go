package wasmbin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hutch-run/hutch/runtime/wasmbin"
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

// script is a file of the specification's tests, as the engine's source has them.
type script struct {
	Commands []struct {
		Type, Filename, Name, As string
		Action                   struct {
			Type, Field, Module string
			Args                []struct{ Type, Value string }
		}
	}
}

// world is an engine with what a script put into it.
type world struct {
	runtime wazero.Runtime
	module  api.Module
	slice   int64
	spent   int64
	asked   int
}

func newWorld(t *testing.T, config wazero.RuntimeConfig) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{slice: 1000, runtime: wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2))}
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

// result is what a call came to.
type result struct {
	values []uint64
	trap   string
}

func (w *world) call(t *testing.T, field string, args []uint64) (result, bool) {
	f := w.module.ExportedFunction(field)
	if f == nil {
		return result{}, false
	}
	if stack, ok := w.module.ExportedGlobal(wasmbin.StackExport).(api.MutableGlobal); ok {
		stack.Set(2 << 20) // a trap gave none of it back
	}
	values, err := f.Call(context.WithoutCancel(t.Context()), args...)
	if err != nil {
		trap, _, _ := strings.Cut(err.Error(), "\n")
		if strings.Contains(trap, "stack overflow") { // each has its own way to say so
			trap = "stack overflow"
		}
		return result{trap: trap}, true
	}
	values = slices.Clone(values)
	i := 0
	for _, kind := range f.Definition().ResultTypes() {
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
	return result{values: values}, true
}

// start makes a module the one that calls go to, or none if it does not start.
func (w *world) start(t *testing.T, wasm []byte) string {
	m, err := w.runtime.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	w.module = m
	if err != nil {
		w.module = nil
		text, _, _ := strings.Cut(err.Error(), "\n")
		return text
	}
	return ""
}

// What the specification asserts is the same of a module and of what it was
// rewritten to, in the compiler and in the interpreter; and both spend the same
// fuel.
func TestRewrittenModulesDoTheSame(t *testing.T) {
	compared := 0
	for _, version := range []string{"v1", "v2"} {
		scripts, err := filepath.Glob(filepath.Join(corpus(t), "spectest", version, "testdata", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range scripts {
			var s script
			if err := json.Unmarshal(read(t, path), &s); err != nil {
				continue // vectors have values of another form
			}
			t.Run(version+"/"+filepath.Base(path), func(t *testing.T) { compared += doTheSame(t, path, s) })
		}
	}
	t.Logf("%d assertions", compared)
	if compared < 25_000 {
		t.Errorf("the corpus shrank: %d assertions", compared)
	}
}

func doTheSame(t *testing.T, path string, s script) (compared int) {
	plain := newWorld(t, wazero.NewRuntimeConfigCompiler())
	metered := newWorld(t, wazero.NewRuntimeConfigCompiler())
	interpreted := newWorld(t, wazero.NewRuntimeConfigInterpreter())
	worlds := []*world{plain, metered, interpreted}
	for _, c := range s.Commands {
		switch c.Type {
		case "module", "assert_uninstantiable":
			wasm := read(t, filepath.Join(filepath.Dir(path), c.Filename))
			for _, w := range worlds {
				w.module = nil
			}
			m, err := wasmbin.Check(wasm, wide)
			if err != nil {
				continue
			}
			with := rewritten(t, m).Wasm
			compared++
			want := plain.start(t, wasm)
			for _, w := range worlds[1:] {
				if got := w.start(t, with); (got == "") != (want == "") {
					t.Errorf("%s: %q, unmetered %q", c.Filename, got, want)
				}
			}
		case "assert_return", "assert_trap", "assert_exhaustion", "action":
			if plain.module == nil || c.Action.Type != "invoke" || c.Action.Module != "" {
				continue
			}
			args, ok := numbers(c.Action.Args)
			if !ok {
				continue
			}
			want, ok := plain.call(t, c.Action.Field, args)
			if !ok {
				continue
			}
			compared++
			for i, w := range worlds[1:] {
				got, _ := w.call(t, c.Action.Field, args)
				if got.trap != want.trap || !slices.Equal(got.values, want.values) {
					t.Errorf("%s %s%v: %v, unmetered %v (interpreter %v)", c.Filename, c.Action.Field, args, got, want, i == 1)
				}
			}
			if want.trap == "stack overflow" { // the interpreter's stack is another one
				interpreted.spent += metered.used() - interpreted.used()
			}
			if a, b := metered.used(), interpreted.used(); a != b {
				t.Errorf("%s%v: fuel %d, interpreter %d", c.Action.Field, args, a, b)
			}
		}
	}
	return compared
}

// used is the fuel that was used, since the host gave the first.
func (w *world) used() int64 {
	return w.spent - int64(w.module.ExportedGlobal(wasmbin.FuelExport).Get())
}

func numbers(list []struct{ Type, Value string }) (args []uint64, ok bool) {
	for _, a := range list {
		v, err := strconv.ParseUint(a.Value, 10, 64)
		if err != nil && a.Value != "null" {
			return nil, false
		}
		args = append(args, v)
	}
	return args, true
}
