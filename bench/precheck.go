package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
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
	return verdicts(r)
}

// verdicts finds the hostile module that the pre-check takes longest to refuse, or to
// have nothing against. The median of each counts, so that the machine's own pauses
// do not.
func verdicts(r *report) error {
	var slowest time.Duration
	name := ""
	for _, h := range wasmbintest.Generated() {
		times, err := inTurn(10, func() error {
			if _, err := wasmbin.Check(h.Bytes, wasmbin.Budget{}); (err == nil) != (h.Reason == "") {
				return errors.Join(fmt.Errorf("%s: the pre-check does not say what its tests want: %q", h.Name, h.Reason), err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if took := times[0]; took > slowest {
			slowest, name = took, h.Name
		}
	}
	r.add(figure{Name: "slowest pre-check of a hostile module, p50 (" + name + ")", Program: "wasmbin in process", Value: milliseconds(slowest), Unit: "ms", AtMost: 50})
	return nil
}
