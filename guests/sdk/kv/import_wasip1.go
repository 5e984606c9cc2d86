package kv

import "unsafe"

//go:wasmimport hutch:host kv_get
func importGet(ptr unsafe.Pointer, n int32) int64

//go:wasmimport hutch:host kv_set
func importSet(ptr unsafe.Pointer, n int32) int64

//go:wasmimport hutch:host kv_delete
func importDelete(ptr unsafe.Pointer, n int32) int64
