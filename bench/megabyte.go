package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect"
)

// megabyte moves 1 MB into a Go guest and out of it, through both ABIs, and in
// turn with calls of a few bytes: what these take is the instance's share.
func megabyte(ctx context.Context, r *report, s setup) error {
	large := json.RawMessage(`{"text":"` + string(bytes.Repeat([]byte("x"), 999_989)) + `"}`)
	var calls []func() error
	var end []func(context.Context) error
	for _, source := range []string{"rawguest", "pdkecho"} {
		wasm, err := buildGuest(ctx, "./runtime/dialect/testdata/"+source, filepath.Join(s.scratch, source+".wasm"))
		if err != nil {
			return err
		}
		guest, err := dialect.Load(ctx, wasm, dialect.Options{})
		if err != nil {
			return err
		}
		end = append(end, guest.Close)
		for _, arguments := range []json.RawMessage{large, json.RawMessage(`{"text":"x"}`)} {
			calls = append(calls, echo(ctx, guest, arguments))
		}
	}
	times, err := inTurn(100, calls...)
	for _, e := range end {
		err = errors.Join(err, e(ctx))
	}
	if err != nil {
		return err
	}
	r.add(
		figure{Name: "1 MB in and out of a Go guest, hutch:host, p50", Program: "sandbox in process", Value: milliseconds(times[0]), Unit: "ms", AtMost: 5}.
			beside("extism:host/env", milliseconds(times[2])),
		figure{Name: "of that, a fresh instance and a small call", Program: "sandbox in process", Value: milliseconds(times[1]), Unit: "ms"}.
			beside("extism:host/env", milliseconds(times[3])),
	)
	return nil
}

func echo(ctx context.Context, guest *dialect.Guest, arguments json.RawMessage) func() error {
	call := abi.Invocation{Tool: "echo", Arguments: arguments, Limits: abi.Limits{OutputBytes: 2 << 20}}
	return func() error {
		out, _, err := guest.Call(ctx, 1, call)
		if err == nil && len(out) < len(arguments) {
			err = fmt.Errorf("%d bytes came back of %d", len(out), len(arguments))
		}
		return err
	}
}
