// Command pdkecho echoes its input through extism:host/env, as extism/go-pdk
// moves bytes: what rawguest does, for comparison.
package main

import "github.com/extism/go-pdk"

func main() {}

//go:wasmexport describe
func describe() int32 {
	pdk.OutputString(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	return 0
}

//go:wasmexport call
func call() int32 {
	pdk.Output(pdk.Input())
	return 0
}
