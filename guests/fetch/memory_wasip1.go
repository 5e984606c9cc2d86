package main

import "runtime/debug"

// A call has 64 MiB unless an operator says otherwise, which Go's collector cannot
// know: left alone, it lets garbage grow until as much again as is in use, and a large
// page ends the call.
var _ = debug.SetMemoryLimit(40 << 20)
