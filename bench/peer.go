package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	extism "github.com/extism/go-sdk"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/worker"
)

const rounds = 300

// peer gives one plugin, built with go-pdk, a fresh instance and one call: in
// extism/go-sdk, in hutch's sandbox in the same process, and in a worker. The
// three take turns.
func peer(ctx context.Context, r *report, s setup) error {
	wasm, err := buildGuest(ctx, "./guests/examples/pdk-echo", filepath.Join(s.scratch, "plugin.wasm"))
	if err != nil {
		return err
	}
	reference, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: wasm}}},
		extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return err
	}
	guest, err := loadGuest(ctx, wasm)
	if err != nil {
		return err
	}
	pool, err := worker.NewPool(worker.Options{Command: []string{s.worker}, Rate: 1 << 30})
	if err != nil {
		return err
	}
	input := abi.Invocation{Tool: "pdk_echo", Arguments: json.RawMessage(`{"text":"hello"}`)}
	module := worker.Module{Name: "plugin.wasm", Digest: fmt.Sprintf("%064x", 1), Bytes: func() ([]byte, error) { return wasm, nil }}
	times, err := inTurn(rounds, sameAnswers(
		func() ([]byte, error) { return callReference(ctx, reference, input) },
		func() ([]byte, error) { out, _, err := guest.Call(ctx, 1, input); return out, err },
		func() ([]byte, error) { out, _, err := pool.Call(ctx, module, input); return out, err },
	)...)
	resident := float64(pool.Stats().RSS) / 1e6
	if err == nil && resident == 0 {
		err = errors.New("the worker's memory was not measured")
	}
	if err := errors.Join(err, reference.Close(ctx), guest.Close(ctx), pool.Close()); err != nil {
		return err
	}
	r.add(
		figure{Name: "fresh instance of a go-pdk plugin and one call", Program: "sandbox in process", Value: milliseconds(times[1]), Unit: "ms"}.
			beside("extism/go-sdk", milliseconds(times[0])),
		figure{Name: "the same in a worker process", Program: "hutch-worker", Value: milliseconds(times[2]), Unit: "ms"}.
			beside("extism/go-sdk, in process", milliseconds(times[0])),
		figure{Name: "resident memory of that worker", Program: "hutch-worker", Value: resident, Unit: "MB"},
	)
	return nil
}

func buildGuest(ctx context.Context, source, out string) ([]byte, error) {
	build := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, source)
	build.Env, build.Stderr = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm"), os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build %s: %w", source, err)
	}
	return os.ReadFile(out)
}

// inTurn runs the calls in turn and returns the median time of each.
func inTurn(rounds int, calls ...func() error) ([]time.Duration, error) {
	const warmUp = 20
	times := make([][]time.Duration, len(calls))
	for round := range rounds + warmUp {
		for i, call := range calls {
			began := time.Now()
			err := call()
			took := time.Since(began)
			if err != nil {
				return nil, err
			}
			if round >= warmUp {
				times[i] = append(times[i], took)
			}
		}
	}
	medians := make([]time.Duration, len(calls))
	for i, t := range times {
		slices.Sort(t)
		medians[i] = t[len(t)/2]
	}
	return medians, nil
}

// sameAnswers makes calls fail that do not answer as the first one does.
func sameAnswers(calls ...func() ([]byte, error)) []func() error {
	var want []byte
	checked := make([]func() error, len(calls))
	for i, call := range calls {
		checked[i] = func() error {
			got, err := call()
			switch {
			case err != nil:
				return err
			case i == 0:
				want = got
			case !bytes.Equal(got, want):
				return fmt.Errorf("answers differ: %q and %q", want, got)
			}
			return nil
		}
	}
	return checked
}

func callReference(ctx context.Context, compiled *extism.CompiledPlugin, in abi.Invocation) ([]byte, error) {
	plugin, err := compiled.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(map[string]any{"params": map[string]any{"name": in.Tool, "arguments": in.Arguments}})
	if err != nil {
		return nil, err
	}
	code, out, err := plugin.CallWithContext(ctx, "call", input)
	if err != nil || code != 0 {
		return nil, fmt.Errorf("call: code %d: %w", code, err)
	}
	out = bytes.Clone(out)
	return out, plugin.Close(ctx)
}
