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

// A function with two loops in each other meets a budget of one.
func ExampleBudget_loopNesting() {
	twoLoops := []byte("\x00asm\x01\x00\x00\x00" + // a type, a function of it, and its code:
		"\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x0a\x0a\x01\x08\x00" + "\x03\x40\x03\x40\x0b\x0b\x0b")
	_, err := wasmbin.Check(twoLoops, wasmbin.Budget{LoopNesting: 1})
	fmt.Println(err)
	// Output: code section: function 0: loop: 2 nested loops, at most 1 (at offset 0x19)
}
