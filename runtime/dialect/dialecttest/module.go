// Package dialecttest builds small guest modules for tests, so that no binary
// needs to be committed and every test says what its guest does.
//
//	dialecttest.Module{Do: []dialecttest.Step{
//		dialecttest.Log(abi.Info, 3, "working"),
//		dialecttest.Text("done"),
//	}}.Bytes()
//
// The modules are a few hundred bytes and compile in well under a millisecond,
// also in a race-built process.
package dialecttest

import (
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Module says what a guest does. The zero value is a native module with one
// tool, echo, that answers with what it was given.
type Module struct {
	// V1 makes it speak extism:host/env instead of hutch:host.
	V1 bool
	// Tools are described by describe; nil describes one tool named echo.
	Tools []tool.Spec
	// Requests and Version go into the description too.
	Requests tool.Requests
	Version  string
	// Describe, if not nil, is what describe does instead of writing all that.
	Describe []Step
	// Do is what call does, in order; nil is Echo.
	Do []Step
	// Initialize and Start, if not nil, are what the export _initialize and the
	// start function do.
	Initialize, Start []Step
	// Pages and MaxPages are the memory's limits; what the steps need is added
	// to Pages, and zero MaxPages declares none.
	Pages, MaxPages uint32
	// Imports are further functions of type () -> (), as module and name. They
	// are never called.
	Imports [][2]string
	// Omit lists exports to leave out: "describe", "call", "memory".
	Omit []string
	// Manifest, if not nil, becomes the custom section hutch.manifest.
	Manifest []byte
}

// Description returns the JSON that describe writes, unless Describe is set.
func (m Module) Description() []byte {
	d := tool.Description{Tools: m.Tools, Requests: m.Requests, Version: m.Version}
	if d.Tools == nil {
		d.Tools = []tool.Spec{Spec("echo")}
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic("dialecttest: description: " + err.Error())
	}
	return b
}

// Spec returns a tool that takes any object.
func Spec(name string) tool.Spec {
	return tool.Spec{Name: name, Description: "does " + name, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// Bytes assembles the module. It panics if m makes no sense, as only a mistake
// in a test can.
func (m Module) Bytes() []byte {
	// The first pass finds out what is imported, which the indices of all
	// other functions depend on; the second writes the module.
	first := newAssembler(m.V1, 0)
	m.emit(first)
	second := newAssembler(m.V1, uint32(len(first.imports)))
	m.emit(second)
	return second.module(m)
}

func (m Module) emit(a *assembler) {
	for _, i := range m.Imports {
		a.imported(i[0], i[1], funcType{})
	}
	describe, do := m.Describe, m.Do
	if describe == nil {
		describe = []Step{Result(string(m.Description()))}
	}
	if do == nil {
		do = []Step{Echo()}
	}
	a.exported("describe", toI32, func(c *code) { c.steps(describe); c.finish() })
	a.exported("call", toI32, func(c *code) { c.steps(do); c.finish() })
	if m.Initialize != nil {
		a.exported("_initialize", funcType{}, func(c *code) { c.steps(m.Initialize) })
	}
	if m.Start != nil {
		a.start = a.function("start", funcType{}, func(c *code) { c.steps(m.Start) })
		a.hasStart = true
	}
	a.flush()
}
