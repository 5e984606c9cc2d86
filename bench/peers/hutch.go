package main

import (
	"context"
	"errors"
	"math"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// hutchEngine is hutch's sandbox in this process, as it is by default.
type hutchEngine struct{}

func (hutchEngine) Load(ctx context.Context, g *guest) (program, error) {
	checked, err := wasmbin.Check(g.wasm, wasmbin.Budget{})
	if err != nil {
		return nil, err
	}
	pages, err := sandbox.OpenPages(abi.Limits{}.WithDefaults().MemoryBytes)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	m, err := sandbox.Compile(ctx, checked, sandbox.Options{Pages: pages, Hosts: []sandbox.HostModule{{
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
	p := &hutchProgram{module: m}
	if err := p.start(ctx, g); err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	return p, nil
}

type hutchProgram struct {
	module     *sandbox.Module
	checkpoint *sandbox.Checkpoint
	handle     uint64
}

// start keeps the state in which calls begin: as a tool describes itself before, the
// trivial call has been made.
func (p *hutchProgram) start(ctx context.Context, g *guest) (err error) {
	const kept = 2
	config := func() sandbox.Config { return sandbox.Config{} }
	p.checkpoint, err = p.module.Checkpoint(ctx, kept, config, func(ctx context.Context, made *sandbox.Instance) error {
		in := hutchInstance{&sandbox.Lease{Instance: made}}
		handle, err := g.boot(ctx, in)
		if err != nil {
			return err
		}
		p.handle = handle
		_ = g.run(ctx, in, handle, echo) // what comes of it is looked at when it is timed
		return nil
	})
	return err
}

func (p *hutchProgram) Fresh(ctx context.Context) (instance, uint64, error) {
	in, err := p.checkpoint.Instance(ctx, sandbox.Config{Fuel: plenty})
	return hutchInstance{in}, p.handle, err
}

func (p *hutchProgram) Close(ctx context.Context) error { return p.module.Close(ctx) }

// plenty of fuel is for an instance that is measured as long as others are.
const plenty = math.MaxInt64 / 2

type hutchInstance struct{ *sandbox.Lease }

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
