package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// wazeroEngine is wazero's compiler with its defaults, and with the system's clock
// and random numbers.
type wazeroEngine struct {
	// closeOnDone is its own way to stop a guest.
	closeOnDone bool
}

func (e wazeroEngine) Load(ctx context.Context, g *guest) (program, error) {
	p := &wazeroProgram{guest: g, cancel: func() {}}
	if e.closeOnDone { // a context that can end, or nothing is checked
		ctx, p.cancel = context.WithCancel(ctx)
		p.done = ctx
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(e.closeOnDone))
	if err := p.load(ctx, g.wasm); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

type wazeroProgram struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	guest    *guest
	done     context.Context // nil without closeOnDone
	cancel   func()
}

func (p *wazeroProgram) load(ctx context.Context, wasm []byte) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return err
	}
	host := p.runtime.NewHostModuleBuilder(hostModule).NewFunctionBuilder().WithGoFunction(
		api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = jsUndefined }),
		[]api.ValueType{api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64})
	if _, err := host.Export(hostFunction).Instantiate(ctx); err != nil {
		return err
	}
	var err error
	p.compiled, err = p.runtime.CompileModule(ctx, wasm)
	return err
}

func (p *wazeroProgram) Fresh(ctx context.Context) (instance, uint64, error) {
	if p.done != nil {
		ctx = p.done
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithRandSource(rand.Reader).WithSysWalltime().WithSysNanotime()
	module, err := p.runtime.InstantiateModule(ctx, p.compiled, config)
	if err != nil {
		return nil, 0, err
	}
	return booted(ctx, p.guest, &wazeroInstance{module: module, done: p.done, funcs: map[string]api.Function{}})
}

func (p *wazeroProgram) Close(ctx context.Context) error {
	p.cancel()
	return p.runtime.Close(ctx)
}

type wazeroInstance struct {
	module api.Module
	done   context.Context
	funcs  map[string]api.Function // resolving one takes longer than a call
}

func (in *wazeroInstance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	if in.done != nil {
		ctx = in.done
	}
	f := in.funcs[export]
	if f == nil {
		if f = in.module.ExportedFunction(export); f == nil {
			return 0, noExport(export)
		}
		in.funcs[export] = f
	}
	return first(f.Call(ctx, args...))
}

func (in *wazeroInstance) Write(ptr uint32, b []byte) error {
	if !in.module.Memory().Write(ptr, b) {
		return errOutside
	}
	return nil
}

func (in *wazeroInstance) Close(ctx context.Context) error { return in.module.Close(ctx) }

func noExport(name string) error { return fmt.Errorf("export %q is missing", name) }
