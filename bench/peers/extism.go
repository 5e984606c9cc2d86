package main

import (
	"context"
	"errors"
	"fmt"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
)

// extismEngine is extism/go-sdk, a compiled plugin with a new instance for each
// fresh call. No timeout is set: with one it is slower, as wazero+done is.
type extismEngine struct{}

func (extismEngine) Load(ctx context.Context, g *guest) (program, error) {
	if g.language == javaScript {
		return nil, notForError("it calls exports without arguments alone")
	}
	compiled, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: g.wasm}}},
		extism.PluginConfig{EnableWasi: true, RuntimeConfig: wazero.NewRuntimeConfigCompiler()}, nil)
	if err != nil {
		return nil, err
	}
	return &extismProgram{compiled}, nil
}

type extismProgram struct{ compiled *extism.CompiledPlugin }

// Fresh leaves booting to the SDK, which does it at the first call.
func (p *extismProgram) Fresh(ctx context.Context) (instance, uint64, error) {
	plugin, err := p.compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, 0, err
	}
	return extismInstance{plugin}, 0, nil
}

func (p *extismProgram) Close(ctx context.Context) error { return p.compiled.Close(ctx) }

type extismInstance struct{ plugin *extism.Plugin }

func (in extismInstance) Call(ctx context.Context, export string, args ...uint64) (uint64, error) {
	if len(args) > 0 {
		return 0, fmt.Errorf("call %q: %d arguments, the SDK passes none", export, len(args))
	}
	code, _, err := in.plugin.CallWithContext(ctx, export, nil)
	return uint64(code), err
}

func (extismInstance) Write(uint32, []byte) error {
	return errors.New("the SDK does not show the guest's memory")
}

func (in extismInstance) Close(ctx context.Context) error { return in.plugin.CloseWithContext(ctx) }
