// Command rawguest echoes its input through hutch:host, without any SDK in
// between: what moving bytes costs at least.
package main

import "unsafe"

func main() {}

//go:wasmimport hutch:host input_len
func inputLen() int32

//go:wasmimport hutch:host input_read
func inputRead(off int32, ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host output_write
func outputWrite(ptr unsafe.Pointer, n int32) int32

//go:wasmexport describe
func describe() int32 {
	d := []byte(`{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
	return outputWrite(unsafe.Pointer(unsafe.SliceData(d)), int32(len(d)))
}

//go:wasmexport call
func call() int32 {
	b := make([]byte, inputLen())
	p := unsafe.Pointer(unsafe.SliceData(b))
	return outputWrite(p, inputRead(0, p, int32(len(b))))
}
