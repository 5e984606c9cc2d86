package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// HostModule is a module that guests may import functions from.
type HostModule struct {
	Name  string
	Funcs []HostFunc
}

// HostFunc is a function that a guest may import. Its parameters and results
// must be i32 or i64.
type HostFunc struct {
	Name string
	Type wasmbin.FuncType
	// Call finds the parameters in stack and leaves the result there; i32s are
	// the lower half. It runs on the goroutine that called the guest, and calls
	// the guest with [Instance.Reenter] alone. A panic in it ends the guest's call with a
	// failure of class internal.
	Call func(ctx context.Context, in *Instance, stack []uint64)
}

// register makes h importable.
func (m *Module) register(ctx context.Context, h HostModule) error {
	builder := m.runtime.NewHostModuleBuilder(h.Name)
	for _, f := range h.Funcs {
		builder.NewFunctionBuilder().
			WithGoModuleFunction(m.guarded(h.Name, f), valueTypes(f.Type.Params), valueTypes(f.Type.Results)).
			Export(f.Name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("host module %q: %w", h.Name, err)
	}
	return nil
}

func valueTypes(list []wasmbin.ValueType) []api.ValueType {
	types := make([]api.ValueType, len(list))
	for i, t := range list {
		types[i] = api.ValueType(t)
	}
	return types
}

type instanceKey struct{}

// errHostPanic unwinds a guest after a host function panicked. It says nothing,
// because the panic's text may hold anything.
var errHostPanic = errors.New("host function panicked")

// guarded returns f with the calling instance looked up and panics caught.
func (m *Module) guarded(module string, f HostFunc) api.GoModuleFunc {
	return func(ctx context.Context, caller api.Module, stack []uint64) {
		in := calling(ctx)
		if in.module == nil { // the start function runs before there is one
			in.module = caller
		}
		defer m.silence(module, f.Name)
		outer := in.meter.moved // of a function that reenters the guest
		in.meter.moved = 0
		f.Call(ctx, in, stack)
		in.returned(ctx)
		in.meter.moved = outer
	}
}

// guardedLine does the same for what takes a guest's printed lines.
func (m *Module) guardedLine(line func(int, []byte)) func(int, []byte) {
	if line == nil {
		return nil
	}
	return func(fd int, b []byte) {
		defer m.silence(SystemModule, "fd_write")
		line(fd, b)
	}
}

// silence, deferred, logs a panic and goes on with one that says nothing.
func (m *Module) silence(module, function string) {
	if v := recover(); v != nil {
		if s, ok := v.(*stop); ok {
			panic(s)
		}
		m.logger.Error("host function panicked", "function", module+"."+function,
			"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		panic(errHostPanic)
	}
}

// checkImports names the first import that nothing here answers, so that it is
// known before an instance is asked for.
func (m *Module) checkImports() error {
	for _, f := range m.compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		host := m.runtime.Module(module)
		if host == nil {
			return fmt.Errorf("import %q.%q: there is no such module", module, name)
		}
		offered, ok := host.ExportedFunctionDefinitions()[name]
		if !ok {
			return fmt.Errorf("import %q.%q: the module has no such function", module, name)
		}
		if want, got := signature(offered), signature(f); want != got {
			return fmt.Errorf("import %q.%q has type %s, want %s", module, name, got, want)
		}
	}
	return nil
}

func signature(f api.FunctionDefinition) string {
	var t wasmbin.FuncType
	for _, p := range f.ParamTypes() {
		t.Params = append(t.Params, wasmbin.ValueType(p))
	}
	for _, r := range f.ResultTypes() {
		t.Results = append(t.Results, wasmbin.ValueType(r))
	}
	return t.String()
}
