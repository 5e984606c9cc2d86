//go:build !cgo

package main

import "context"

// wasmtimes are the engines that need a C compiler: there was none when this
// program was built, which is said in their place.
func wasmtimes() []named {
	return []named{{name: wasmtimeName, engine: noWasmtime{}}, {name: wasmtimeFuel, engine: noWasmtime{}}}
}

type noWasmtime struct{}

func (noWasmtime) Load(context.Context, *guest) (program, error) {
	return nil, missing("wasmtime-go is cgo, and this was built without a C compiler (CGO_ENABLED=0)")
}
