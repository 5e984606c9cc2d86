package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// script is a file of the specification's tests, as wazero's source has them.
type script struct {
	Commands []struct {
		Type, Filename string
		Action         struct {
			Type, Field, Module string
			Args                []struct{ Type, Value string }
		}
	}
}

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
		var s script
		if err := json.Unmarshal(text, &s); err != nil {
			continue // vectors have values of another form
		}
		compared += compare(t, path, s)
	}
	if compared < 1000 {
		t.Errorf("%d assertions compared, at least 1000", compared)
	}
	t.Logf("%d assertions", compared)
}

// compare runs a script's calls in both engines and returns how many there were.
func compare(t *testing.T, path string, s script) (n int) {
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
				v, err := strconv.ParseUint(a.Value, 10, 64)
				if err != nil && a.Value != "null" {
					args = nil
					break
				}
				args = append(args, v)
			}
			if len(args) == len(c.Action.Args) {
				n++
				both.agree(t, filepath.Base(path)+" "+c.Action.Field, c.Action.Field, args)
			}
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
func (both *engines) agree(t *testing.T, what, field string, args []uint64) {
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
		for j, kind := range f.Definition().ResultTypes() {
			if err == nil {
				got[i][j] = plain(kind, got[i][j])
			}
		}
	}
	if failed[0] != failed[1] || !slices.Equal(got[0], got[1]) {
		t.Errorf("%s %v: compiler %v (failed %v), interpreter %v (failed %v)", what, args, got[0], failed[0], got[1], failed[1])
	}
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
