//go:build wasip1

// Command gojson is the measured guest in Go with encoding/json and regexp. Its
// exports return 0 for a right result.
package main

import "github.com/hutch-run/hutch/bench/peers/kernels/text"

func main() {}

//go:wasmexport json
func json() int32 { return code(text.JSON()) }

//go:wasmexport regexp
func regexp() int32 { return code(text.Regexp()) }

//go:wasmexport echo
func echo() int32 { return code(text.Echo()) }

func code(ok bool) int32 {
	if ok {
		return 0
	}
	return 1
}
