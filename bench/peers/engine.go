package main

import (
	"context"
)

// An engine is one way to run a guest. What is measured of another one takes an
// adapter, which is this method, two of a [program] and three of an [instance], and a
// line in [engines].
type engine interface {
	// Load makes a guest ready to be instantiated. The error is a [notForError] for a
	// guest that the engine cannot run at all; that is said, and no failure.
	Load(ctx context.Context, g *guest) (program, error)
}

// A program is a guest in an engine.
type program interface {
	// Fresh returns an instance on which nothing has run but the guest's boot, and
	// what that returned. An engine that restores a state instead of making a new
	// one does that here or in the instance's Close; both are timed.
	Fresh(ctx context.Context) (in instance, handle uint64, err error)
	Close(ctx context.Context) error
}

// An instance is a running copy of a guest, for one goroutine.
type instance interface {
	// Call calls an export with numbers and returns its result, or 0 if it has none.
	Call(ctx context.Context, export string, args ...uint64) (uint64, error)
	// Write copies b into the guest's memory.
	Write(ptr uint32, b []byte) error
	Close(ctx context.Context) error
}

// notForError says why an engine cannot run a guest; where it is empty, that goes
// without saying.
type notForError string

func (e notForError) Error() string { return string(e) }

// A named engine is a column of the table.
type named struct {
	name string
	engine
	// native runs the same source without a sandbox, so a fresh state means nothing.
	native bool
}

// The names of engines that something is said about.
const (
	ours         = "hutch"
	plainWazero  = "wazero"
	extismSDK    = "extism"
	wasmtimeName = "wasmtime"
	wasmtimeFuel = "wasmtime+fuel"
	nativeC      = "native C"
)

// baseline is the engine that every ratio is to.
const baseline = plainWazero

// engines returns what is measured, ours first. Those of Wasmtime are there if
// this program was built with a C compiler.
func engines(scratch string, c *clock) []named {
	list := []named{
		{name: ours, engine: hutchEngine{}},
		{name: baseline, engine: wazeroEngine{}},
		{name: "wazero+done", engine: wazeroEngine{closeOnDone: true}},
		{name: extismSDK, engine: extismEngine{}},
	}
	list = append(list, wasmtimes()...)
	return append(list,
		named{name: "native Go", engine: nativeGo{}, native: true},
		named{name: nativeC, engine: nativeCEngine{scratch: scratch, clock: c}, native: true})
}
