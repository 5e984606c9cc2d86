//go:build cgo

package main

import (
	"context"
	"fmt"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v37"
)

// wasmtimes are the engines that need a C compiler.
func wasmtimes() []named {
	return []named{
		{name: wasmtimeName, engine: wasmtimeEngine{}},
		{name: wasmtimeFuel, engine: wasmtimeEngine{fuel: true}},
	}
}

// wasmtimeEngine is Wasmtime with its defaults: Cranelift at its best, and memory
// that is mapped copy-on-write from an image of the module's data.
type wasmtimeEngine struct{ fuel bool }

func (e wasmtimeEngine) Load(_ context.Context, g *guest) (_ program, err error) {
	config := wasmtime.NewConfig()
	config.SetConsumeFuel(e.fuel)
	p := &wasmtimeProgram{guest: g, fuel: e.fuel, engine: wasmtime.NewEngineWithConfig(config)}
	p.linker = wasmtime.NewLinker(p.engine)
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if err := p.linker.DefineWasi(); err != nil {
		return nil, err
	}
	undefined := func(int32, int64, int32, int32) int64 { return jsUndefined }
	if err := p.linker.FuncWrap(hostModule, hostFunction, undefined); err != nil {
		return nil, err
	}
	if p.module, err = wasmtime.NewModule(p.engine, g.wasm); err != nil {
		return nil, err
	}
	return p, nil
}

type wasmtimeProgram struct {
	engine *wasmtime.Engine
	linker *wasmtime.Linker
	module *wasmtime.Module
	guest  *guest
	fuel   bool
}

func (p *wasmtimeProgram) Fresh(ctx context.Context) (instance, uint64, error) {
	in := &wasmtimeInstance{store: wasmtime.NewStore(p.engine), funcs: map[string]*wasmtime.Func{}}
	in.store.SetWasi(wasmtime.NewWasiConfig())
	var err error
	if p.fuel {
		err = in.store.SetFuel(math.MaxInt64)
	}
	if err == nil {
		in.instance, err = p.linker.Instantiate(in.store, p.module)
	}
	if err != nil {
		in.store.Close()
		return nil, 0, err
	}
	return booted(ctx, p.guest, in)
}

func (p *wasmtimeProgram) Close(context.Context) error {
	p.close()
	return nil
}

func (p *wasmtimeProgram) close() {
	if p.module != nil {
		p.module.Close()
	}
	p.linker.Close()
	p.engine.Close()
}

type wasmtimeInstance struct {
	store    *wasmtime.Store
	instance *wasmtime.Instance
	funcs    map[string]*wasmtime.Func
}

func (in *wasmtimeInstance) Call(_ context.Context, export string, args ...uint64) (uint64, error) {
	f := in.funcs[export]
	if f == nil {
		if f = in.instance.GetFunc(in.store, export); f == nil {
			return 0, noExport(export)
		}
		in.funcs[export] = f
	}
	var values []any
	if len(args) > 0 {
		for i, t := range f.Type(in.store).Params() {
			switch t.Kind() {
			case wasmtime.KindI32:
				values = append(values, int32(args[i]))
			case wasmtime.KindI64:
				values = append(values, int64(args[i]))
			default:
				return 0, fmt.Errorf("call %q: parameter %d is of type %s, known are i32 and i64", export, i, t)
			}
		}
	}
	result, err := f.Call(in.store, values...)
	if err != nil {
		return 0, err
	}
	switch v := result.(type) {
	case int32:
		return uint64(uint32(v)), nil
	case int64:
		return uint64(v), nil
	}
	return 0, nil
}

func (in *wasmtimeInstance) Write(ptr uint32, b []byte) error {
	export := in.instance.GetExport(in.store, "memory")
	if export == nil || export.Memory() == nil {
		return noExport("memory")
	}
	memory := export.Memory().UnsafeData(in.store)
	if uint64(ptr)+uint64(len(b)) > uint64(len(memory)) {
		return errOutside
	}
	copy(memory[ptr:], b)
	return nil
}

func (in *wasmtimeInstance) Close(context.Context) error {
	in.store.Close()
	return nil
}
