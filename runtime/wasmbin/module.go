// Package wasmbin walks a module's bytes: it refuses what is malformed or over
// budget, before anything that allocates by a declared count sees them, and it
// rewrites a meter into what it accepted.
//
// [Check] trusts no number in the file: every count and every length is held
// against the bytes that are left before it is used. It covers the binary
// format of WebAssembly 2.0 (core specification, section 5), down to each
// instruction of each function, with these limits on top: only functions are
// imported, there is at most one memory, a table that grows has a maximum, and
// the structure stays within a [Budget]. What indices name is there, blocks
// begin and end in pairs, and what belongs to a later proposal is refused by the
// proposal's name. Types of values remain the engine's to validate.
//
// [Module.Rewrite] makes a module count what it does, so that its host can stop it,
// and shows the host what a copy of its state needs.
//
// Errors are one line, naming section, entry, instruction and the offset in the
// file.
// Nothing here starts a goroutine; a [Module] may be read from several.
package wasmbin

import (
	"fmt"
	"strings"
)

// Module is what a checked module says about itself. It holds on to the bytes
// it was made from, which must not change while it is in use.
type Module struct {
	// Imports and Exports are in the order of the file. All imports are
	// functions.
	Imports []Import
	Exports []Export
	// Custom holds the payload of each custom section whose name starts with
	// "hutch.", by that name; nil if there is none. The slices are copies.
	Custom map[string][]byte
	// Memory is the module's memory, in pages of 64 KiB; nil if it has none.
	Memory *Limits
	// Types counts function types, Functions those with a body (so that imports
	// are left out), the rest what their names say.
	Types, Functions, Tables, Globals, ElementSegments, DataSegments int
	// HasStart says that instantiating the module runs a function of it.
	HasStart bool

	raw    []byte
	parts  []span // of raw: header and sections, custom ones left out
	budget Budget
}

// Import is a function that a module wants from its host.
type Import struct {
	Module, Name string
	Kind         Kind      // always Function
	Func         *FuncType // never nil; shared, not to be changed
}

// Export is something that a module shows to its host.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32    // within its kind; for functions, imports come first
	Func  *FuncType // nil unless Kind is Function; shared, not to be changed
}

// Limits is the declared size of a memory or table.
type Limits struct {
	Min    uint32
	Max    uint32 // 0 unless HasMax
	HasMax bool
}

// Kind says what an import or export is; the values are those of the binary
// format (core specification, section 5.5.5).
type Kind byte

// The kinds of imports and exports.
const (
	Function Kind = iota
	Table
	Memory
	Global
	tag // of the exception proposal: known so that it can be named, and refused
)

// String returns the kind as error messages have it, such as "memory".
func (k Kind) String() string {
	if k > tag {
		return "unknown"
	}
	return [...]string{"function", "table", "memory", "global", "tag"}[k]
}

// ValueType is a type of values; the values are those of the binary format
// (core specification, section 5.3.4).
type ValueType byte

// The value types.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String returns the type's name in the text format, such as "i32", or
// "unknown".
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "unknown"
}

func (t ValueType) known() bool { return t >= V128 && t <= I32 || t.reference() }

func (t ValueType) reference() bool { return t == FuncRef || t == ExternRef }

// FuncType is the signature of a function.
type FuncType struct{ Params, Results []ValueType }

// String returns the signature as "(i32, i64) -> (i32)". Two types are equal
// if their strings are.
func (t FuncType) String() string {
	var s strings.Builder
	writeTypes(&s, t.Params)
	s.WriteString(" -> ")
	writeTypes(&s, t.Results)
	return s.String()
}

func writeTypes(s *strings.Builder, types []ValueType) {
	s.WriteByte('(')
	for i, t := range types {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(t.String())
	}
	s.WriteByte(')')
}

// Check walks b and returns what it declares, or an error that says what is
// malformed or over budget. It allocates at most four times len(b) plus 1 MiB
// under the default budget, Stripped included, and keeps b.
func Check(b []byte, budget Budget) (*Module, error) {
	budget = budget.withDefaults()
	if len(b) > budget.FileBytes {
		return nil, fmt.Errorf("file: %d bytes, at most %d", len(b), budget.FileBytes)
	}
	return traverse(b, budget, nil)
}

// traverse walks all of b, and lets r see it if there is one.
func traverse(b []byte, budget Budget, r *rewriter) (*Module, error) {
	w := walker{reader: reader{b: b}, budget: budget, Module: &Module{raw: b, budget: budget}, dataCount: -1, rewriting: r}
	w.header()
	w.keep(span{0, w.pos})
	for w.more() {
		w.walk(w.frame())
	}
	w.finish()
	if w.err != nil {
		return nil, w.err
	}
	return w.Module, nil
}

// Stripped returns the module without its custom sections: the bytes that were
// checked if there are none, else a copy.
func (m *Module) Stripped() []byte {
	size := 0
	for _, p := range m.parts {
		size += p.end - p.start
	}
	if size == len(m.raw) {
		return m.raw
	}
	out := make([]byte, 0, size)
	for _, p := range m.parts {
		out = append(out, m.raw[p.start:p.end]...)
	}
	return out
}
