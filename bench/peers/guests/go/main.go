//go:build wasip1

// Command go is the measured guest in plain Go. Its exports return 0 for a right
// result.
package main

import "github.com/hutch-run/hutch/bench/peers/kernels/compute"

func main() {}

//go:wasmexport sha256
func sha256() int32 { return code(compute.SHA256()) }

//go:wasmexport sieve
func sieve() int32 { return code(compute.Sieve()) }

//go:wasmexport fib
func fib() int32 { return code(compute.Fib()) }

//go:wasmexport matmul
func matmul() int32 { return code(compute.Matmul()) }

//go:wasmexport echo
func echo() int32 { return code(compute.Echo()) }

func code(ok bool) int32 {
	if ok {
		return 0
	}
	return 1
}
