package tracker

import "unsafe"

//go:wasmimport hutch:host tracker_request
func importRequest(ptr unsafe.Pointer, n int32) int64
