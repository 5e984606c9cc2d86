package main

import (
	"context"
	"errors"

	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// hutchEngine is hutch's sandbox in this process, as it is by default.
type hutchEngine struct{}

func (hutchEngine) Load(ctx context.Context, g *guest) (program, error) {
	m, err := sandbox.Compile(ctx, g.wasm, sandbox.Options{Hosts: []sandbox.HostModule{{
		Name: hostModule, Funcs: []sandbox.HostFunc{{
			Name: hostFunction,
			Type: wasmbin.FuncType{
				Params:  []wasmbin.ValueType{wasmbin.I32, wasmbin.I64, wasmbin.I32, wasmbin.I32},
				Results: []wasmbin.ValueType{wasmbin.I64},
			},
			Call: func(_ context.Context, _ *sandbox.Instance, stack []uint64) { stack[0] = jsUndefined },
		}},
	}}})
	if err != nil {
		return nil, err
	}
	return &hutchProgram{m, g}, nil
}

type hutchProgram struct {
	module *sandbox.Module
	guest  *guest
}

func (p *hutchProgram) Fresh(ctx context.Context) (instance, uint64, error) {
	made, err := p.module.Instantiate(ctx, sandbox.Config{})
	if err != nil {
		return nil, 0, err
	}
	return booted(ctx, p.guest, hutchInstance{made})
}

func (p *hutchProgram) Close(ctx context.Context) error { return p.module.Close(ctx) }

type hutchInstance struct{ *sandbox.Instance }

func (in hutchInstance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	return first(in.Instance.Call(ctx, export, args...))
}

func (in hutchInstance) Write(ptr uint32, b []byte) error {
	if !in.Instance.Write(ptr, b) {
		return errOutside
	}
	return nil
}

// errOutside is what writing beyond a guest's memory comes to.
var errOutside = errors.New("outside of the guest's memory")

// first returns the only result there may be.
func first(results []uint64, err error) (uint64, error) {
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return results[0], nil
}

// booted boots a new instance of an engine that has no other way to the state in
// which calls start.
func booted(ctx context.Context, g *guest, in instance) (instance, uint64, error) {
	handle, err := g.boot(ctx, in)
	if err != nil {
		return nil, 0, errors.Join(err, in.Close(ctx))
	}
	return in, handle, nil
}
