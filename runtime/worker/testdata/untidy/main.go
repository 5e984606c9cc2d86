// Command untidy is a guest that leaves things behind in its memory, and says what it
// finds there.
package main

import (
	"strconv"
	"unsafe"
)

func main() {}

//go:wasmimport hutch:host input_read
func inputRead(off int32, ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host output_write
func outputWrite(ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host log
func hostLog(level int32, ptr unsafe.Pointer, n int32)

func write(text string) int32 {
	return outputWrite(unsafe.Pointer(unsafe.StringData(text)), int32(len(text)))
}

// What a call may leave.
var (
	kept  [][]byte
	notes = map[string]int{}
	calls int
)

//go:wasmexport describe
func describe() int32 {
	calls = 100
	notes["described"]++
	return write(`{"tools":[{"name":"check","inputSchema":{"type":"object"}}]}`)
}

//go:wasmexport call
func call() int32 {
	const head = `{"method":"tools/call","params":{"name":"`
	var letter byte
	inputRead(int32(len(head)), unsafe.Pointer(&letter), 1)
	calls++
	notes[string(letter)]++
	switch letter {
	case 'f':
		keep(2 << 20)
	case 'g':
		keep(24 << 20)
	case 'p':
		keep(2 << 20)
		panic("on purpose")
	case 'r':
		ruin()
	case 'l':
		keep(2 << 20)
		hostLog(2, unsafe.Pointer(&letter), 1)
		for {
			calls++
		}
	}
	return write(state())
}

// keep keeps so many bytes, none of them zero.
func keep(n int) {
	b := make([]byte, n)
	for i := range b {
		b[i] = 9
	}
	kept = append(kept, b)
}

// ruin writes all memory from here to its end, the runtime's own too.
func ruin() {
	for at := uintptr(unsafe.Pointer(&calls)) &^ 7; ; at += 8 {
		*(*uint64)(unsafe.Pointer(at)) = 1<<64 - 1
	}
}

// state is all that was left, as text.
func state() string {
	text := strconv.Itoa(calls)
	for _, b := range kept {
		text += " " + strconv.Itoa(len(b))
	}
	for _, name := range []string{"described", "c", "f", "g", "p", "r", "l"} {
		text += " " + name + strconv.Itoa(notes[name])
	}
	return text
}
