package wasmbin_test

import (
	"fmt"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// Fifteen bytes that claim 4,294,967,295 imports.
func ExampleCheck() {
	_, err := wasmbin.Check([]byte("\x00asm\x01\x00\x00\x00\x02\x05\xff\xff\xff\xff\x0f"), wasmbin.Budget{})
	fmt.Println(err)
	// Output: import section: count 4294967295, but 0 bytes left (at offset 0xa)
}

// A module that starts with two pages of memory meets a budget of one.
func ExampleBudget() {
	twoPages := []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x02")
	m, err := wasmbin.Check(twoPages, wasmbin.Budget{})
	fmt.Println(m.Memory.Min, err)
	_, err = wasmbin.Check(twoPages, wasmbin.Budget{MemoryBytes: 64 << 10})
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// memory section: memory 0: starts with 2 pages of 64 KiB, at most 1 (at offset 0xc)
}
