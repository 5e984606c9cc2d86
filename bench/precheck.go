package main

import (
	"context"
	"crypto/sha256"
	"os"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// precheck walks a shipped Go guest of 4 MB, in turn with hashing it, which
// admission does as well.
func precheck(_ context.Context, r *report, _ setup) error {
	wasm, err := os.ReadFile("tools-wasm/dates.wasm")
	if err != nil {
		return err
	}
	times, err := inTurn(50,
		func() error { _, err := wasmbin.Check(wasm, wasmbin.Budget{}); return err },
		func() error { sha256.Sum256(wasm); return nil })
	if err != nil {
		return err
	}
	r.add(figure{Name: "pre-check of a Go guest of 4 MB, p50", Program: "wasmbin in process", Value: milliseconds(times[0]), Unit: "ms", AtMost: 60}.
		beside("sha256 of it", milliseconds(times[1])))
	return nil
}
