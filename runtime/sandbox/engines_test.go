package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// engines are the compiler and the interpreter, with the module that both run.
type engines [2]struct {
	runtime wazero.Runtime
	module  api.Module
}

// D24: machine code that the compiler makes does what the interpreter does, in all
// that the specification asserts of numbers, memory, control and calls.
func TestD24_EnginesAgreeOnTheSpecification(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "internal/integration_test/spectest/v2/testdata/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var s wasmbintest.Script
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		compared += compare(t, path, s)
	}
	if compared < 46_500 {
		t.Errorf("%d assertions compared, at least 46500", compared)
	}
	t.Logf("%d assertions", compared)
}

// compare runs a script's calls in both engines and returns how many there were.
func compare(t *testing.T, path string, s wasmbintest.Script) (n int) {
	t.Helper()
	ctx := t.Context()
	var both engines
	for i, config := range []wazero.RuntimeConfig{wazero.NewRuntimeConfigCompiler(), wazero.NewRuntimeConfigInterpreter()} {
		both[i].runtime = wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(features))
	}
	defer func() {
		for _, e := range both {
			if err := e.runtime.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	}()
	for _, c := range s.Commands {
		switch c.Type {
		case "module":
			both.load(t, filepath.Join(filepath.Dir(path), c.Filename))
		case "assert_return", "assert_trap":
			if both[0].module == nil || c.Action.Type != "invoke" || c.Action.Module != "" {
				continue
			}
			var args []uint64
			for _, a := range c.Action.Args {
				words, err := a.Words()
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				args = append(args, words...)
			}
			n++
			both.agree(t, filepath.Base(path)+" "+c.Action.Field, c.Action.Field, args, c.Expected)
		}
	}
	return n
}

// load puts a module into both engines, or into none.
func (both *engines) load(t *testing.T, path string) {
	t.Helper()
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var failed [2]bool
	for i := range both {
		e := &both[i]
		e.module, err = e.runtime.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName(""))
		failed[i] = err != nil
	}
	if failed[0] != failed[1] {
		t.Errorf("%s: starts in one engine alone", path)
	}
	if failed[0] || failed[1] {
		both[0].module, both[1].module = nil, nil
	}
}

// agree calls a function in both engines. A NaN may be any.
func (both *engines) agree(t *testing.T, what, field string, args []uint64, expected []wasmbintest.Value) {
	t.Helper()
	var got [2][]uint64
	var failed [2]bool
	for i, e := range both {
		f := e.module.ExportedFunction(field)
		if f == nil {
			return
		}
		results, err := f.Call(context.WithoutCancel(t.Context()), args...)
		got[i], failed[i] = slices.Clone(results), err != nil
		if err == nil {
			got[i] = countedOf(got[i], f.Definition().ResultTypes(), expected)
		}
	}
	if failed[0] != failed[1] || !slices.Equal(got[0], got[1]) {
		t.Errorf("%s %v: compiler %v (failed %v), interpreter %v (failed %v)", what, args, got[0], failed[0], got[1], failed[1])
	}
}

// countedOf is what counts of results. A vector has two words, and the lanes that are
// expected.
func countedOf(words []uint64, kinds []api.ValueType, expected []wasmbintest.Value) []uint64 {
	at := 0
	for i, kind := range kinds {
		if kind != api.ValueType(wasmbin.V128) {
			words[at] = plain(kind, words[at])
			at++
			continue
		}
		lane := ""
		if i < len(expected) {
			lane = expected[i].Lane
		}
		words[at], words[at+1] = lanes(lane, words[at]), lanes(lane, words[at+1])
		at += 2
	}
	return words
}

// lanes is what counts of half a vector.
func lanes(lane string, v uint64) uint64 {
	switch lane {
	case "f64":
		return plain(api.ValueTypeF64, v)
	case "f32":
		return plain(api.ValueTypeF32, v)&(1<<32-1) | plain(api.ValueTypeF32, v>>32)<<32
	}
	return v
}

// plain is what counts of a value: 32 bits of one that has no more, of a NaN that
// it is one, and of a reference whether it is null.
func plain(kind api.ValueType, v uint64) uint64 {
	const nan = ^uint64(0)
	switch kind {
	case api.ValueTypeI32:
		return uint64(uint32(v))
	case api.ValueTypeF32:
		if f := api.DecodeF32(v); f != f {
			return nan
		}
		return uint64(uint32(v))
	case api.ValueTypeF64:
		if f := api.DecodeF64(v); f != f {
			return nan
		}
	case api.ValueTypeExternref, 0x70: // 0x70 is funcref
		return min(v, 1)
	}
	return v
}
