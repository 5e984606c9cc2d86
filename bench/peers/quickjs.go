package main

import (
	"context"
	"errors"
	"fmt"
)

// The one function that qjs.wasm imports beside WASI, through which scripts would
// reach a host: here there is none, and its answer is always undefined.
const (
	hostModule   = "env"
	hostFunction = "jsFunctionProxy"
	// jsUndefined is QuickJS's tag for it, in the upper half.
	jsUndefined = 3 << 32
)

// bootQuickJS makes an interpreter, runs a script in it and returns its context.
func bootQuickJS(ctx context.Context, in instance, script []byte) (uint64, error) {
	// Without limits of its own, and collecting when its heap has grown by 256 KiB.
	interpreter, err := in.Call(ctx, "New_QJS", 0, 0, 0, 256<<10)
	if err != nil {
		return 0, err
	}
	handle, err := in.Call(ctx, "QJS_GetContext", interpreter)
	if err != nil {
		return 0, err
	}
	if handle == 0 {
		return 0, errors.New("no interpreter was made")
	}
	// The script's last value is of no interest, but a number is what is asked for.
	code, err := evalQuickJS(ctx, in, handle, append(script, "\n0;"...))
	if err == nil && code != 0 {
		err = errors.New("the script did not run to its end")
	}
	return handle, err
}

// evalQuickJS runs code, whose value is a whole number.
func evalQuickJS(ctx context.Context, in instance, handle uint64, code []byte) (_ uint64, err error) {
	text, err := cString(ctx, in, code)
	if err != nil {
		return 0, err
	}
	name, err := cString(ctx, in, []byte("kernels.js"))
	if err != nil {
		return 0, err
	}
	options, err := in.Call(ctx, "QJS_CreateEvalOption", text, 0, 0, name, 0)
	if err != nil {
		return 0, err
	}
	value, err := in.Call(ctx, "QJS_Eval", handle, options)
	if err != nil {
		return 0, err
	}
	if failed, err := in.Call(ctx, "QJS_IsException", value); err != nil || failed != 0 {
		return 0, errors.Join(fmt.Errorf("%.40q threw an exception", code), err)
	}
	number, err := in.Call(ctx, "QJS_ToInt64", handle, value)
	if err != nil {
		return 0, err
	}
	if _, err := in.Call(ctx, "QJS_FreeValue", handle, value); err != nil {
		return 0, err
	}
	for _, ptr := range []uint64{options, name, text} {
		if _, err := in.Call(ctx, "free", ptr); err != nil {
			return 0, err
		}
	}
	return number, nil
}

// cString puts text into the guest's memory, with a zero behind it.
func cString(ctx context.Context, in instance, text []byte) (uint64, error) {
	ptr, err := in.Call(ctx, "malloc", uint64(len(text)+1))
	if err != nil {
		return 0, err
	}
	if ptr == 0 {
		return 0, errors.New("the guest has no memory left")
	}
	terminated := append(append(make([]byte, 0, len(text)+1), text...), 0)
	return ptr, in.Write(uint32(ptr), terminated)
}
