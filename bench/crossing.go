package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/worker"
)

// crossing makes the same call in this process and in a worker, in turns, each in a
// clean state: what lies between is the way into the worker and back.
func crossing(ctx context.Context, r *report, s setup) error {
	plugin, err := buildGuest(ctx, "./guests/examples/pdk-echo", filepath.Join(s.scratch, "crossing.wasm"))
	if err != nil {
		return err
	}
	for _, g := range []struct {
		name, tool string
		wasm       []byte
	}{
		{"a guest of a few instructions", "echo", dialecttest.Module{}.Bytes()},
		{"a go-pdk plugin", "pdk_echo", plugin},
	} {
		inside, across, err := bothSides(ctx, s.worker, g.wasm, abi.Invocation{Tool: g.tool, Arguments: json.RawMessage(`{"text":"hello"}`)})
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		r.add(figure{Name: "what a worker adds to a call of " + g.name + ", p50", Program: "hutch-worker", Value: across - inside, Unit: "us", AtMost: 25}.
			beside("the call in process", inside))
	}
	return nil
}

// bothSides returns the median time of a call in this process and of one in a worker,
// in microseconds.
func bothSides(ctx context.Context, program string, wasm []byte, in abi.Invocation) (inside, across float64, err error) {
	guest, err := loadGuest(ctx, wasm)
	if err != nil {
		return 0, 0, err
	}
	pool, err := worker.NewPool(worker.Options{Command: []string{program}, Rate: 1 << 30})
	if err != nil {
		return 0, 0, errors.Join(err, guest.Close(ctx))
	}
	module := worker.Module{Name: "guest.wasm", Digest: fmt.Sprintf("%064x", 1), Bytes: func() ([]byte, error) { return wasm, nil }}
	times, err := inTurn(10*rounds, sameAnswers(
		func() ([]byte, error) { out, _, err := guest.Call(ctx, 1, in); return out, err },
		func() ([]byte, error) { out, _, err := pool.Call(ctx, module, in); return out, err },
	)...)
	if err := errors.Join(err, guest.Close(ctx), pool.Close()); err != nil {
		return 0, 0, err
	}
	return microseconds(times[0]), microseconds(times[1]), nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// loadGuest loads a guest as a worker does: the system tells which pages a call wrote,
// where it can.
func loadGuest(ctx context.Context, wasm []byte) (*dialect.Guest, error) {
	pages, err := sandbox.OpenPages(abi.Limits{}.WithDefaults().MemoryBytes)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	return dialect.Load(ctx, wasm, dialect.Options{Pages: pages})
}
