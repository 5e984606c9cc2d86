package fetch

import "unsafe"

//go:wasmimport hutch:host http_request
func importRequest(ptr unsafe.Pointer, n int32) int64
