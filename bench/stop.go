package main

import (
	"context"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
)

// turns is how often the loop runs.
const turns = 20_000_000

// loop exports f, which counts its argument down to 0:
//
//	(func (export "f") (param i32) (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
const loop = "\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x01\x7f\x00\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00" +
	"\x0a\x10\x01\x0e\x00\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x0b"

// stop measures what wazero's own way to stop a guest costs the tightest of
// loops, which is the worst case.
func stop(ctx context.Context, r *report, _ setup) error {
	ctx, cancel := context.WithCancel(ctx) // one that can end, or nothing is checked
	defer cancel()
	checked, err := timeLoop(ctx, true)
	if err != nil {
		return err
	}
	plain, err := timeLoop(ctx, false)
	if err != nil {
		return err
	}
	r.add(figure{Name: "20 million turns of an empty loop, WithCloseOnContextDone", Program: "wazero", Value: milliseconds(checked), Unit: "ms"}.
		beside("without", milliseconds(plain)))
	return nil
}

// timeLoop returns the shortest of three runs.
func timeLoop(ctx context.Context, checked bool) (best time.Duration, err error) {
	engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCloseOnContextDone(checked))
	defer func() { err = errors.Join(err, engine.Close(ctx)) }()
	guest, err := engine.Instantiate(ctx, []byte(loop))
	if err != nil {
		return 0, err
	}
	for range 3 {
		began := time.Now()
		if _, err := guest.ExportedFunction("f").Call(ctx, turns); err != nil {
			return 0, err
		}
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
