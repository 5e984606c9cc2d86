package wasmbintest

import (
	"bytes"
	"fmt"
)

// Hostile is a module that hurts a host which trusts it.
type Hostile struct {
	Name  string
	Bytes []byte
	// Reason is part of what the pre-check says. Empty: it has nothing against the
	// module, which hurts when it is compiled or run, if at all.
	Reason string
}

// Fixtures are the hostile modules of a few bytes.
func Fixtures() []Hostile {
	all := []Hostile{
		{"memmin4g", Hex("0061736d0100000005050100808004"), "65536 pages"},
		{"vecparams", Hex("0061736d0100000001070160ffffffff0f"), "4294967295"},
		{"vecnames", Hex("0061736d01000000 0012 04 6e616d65 01 0b ffffffff0f 000000000000"), ""},
		{"component", Hex("0061736d0d000100"), "a component, not a core module"},
		{"loop", Hex("0061736d0100000001040160000003020100070501016600000a0901070003400c000b0b"), ""},
		{"recurse", Hex("0061736d0100000001040160000003020100070501016600000a0601040010000b"), ""},
		{"growloop", Hex("0061736d01000000010401600000030201000503010001070501016600000a0e010c000340410140001a0c000b0b"), ""},
		{"tablegrow", Hex("0061736d0100000001040160000003020100040401700001070501016600000a140112000340d070418080c000fc0f001a0c000b0b"),
			"table 0 declares no maximum"},
		{"loopresult", Hex("0061736d010000000105016000017f030201000503010001071002066d656d6f727902000372756e00000a0b01090003400c000b41000b"), ""},
		{"startloop", Hex("0061736d01000000 0104 01 600000 0302 01 00 0801 00 0a09 01 07 00 0340 0c00 0b 0b"), ""},
		{"twice", Hex("0061736d0100000001090260017f006000017f03030200010503010001071002066d656d6f727902000372756e00010a2002150020000440200041016b" +
			"1000200041016b10000b0b0800413c100041000b"), ""},
		{"tailcall", Hex("0061736d01000000010a0260017f017f6000017f03030200010503010001071002066d656d6f727902000372756e00010a12020900200041016a12000b" +
			"0600410010000b"), "code section: function 0: return_call: tail calls are not allowed (at offset 0x3a)"},
		{"recursesum", Hex("0061736d01000000010a0260017e017e6000017f03030200010503010001071002066d656d6f727902000372756e00010a16020c00200042017c1000" +
			"20007c0b070042001000a70b"), ""},
		{"growuntil", Hex("0061736d010000000105016000017f030201000503010001071002066d656d6f727902000372756e00000a20011e01017f0240034041104000417f460d01" +
			"200041106a21000c000b0b20000b"), ""},
		{"globalofnobody", Hex("0061736d010000000105016000017f030201000503010001071002066d656d6f727902000372756e00000a1801160042ffffffffffffffffff002400" +
			"03400c000b41000b"), "code section: function 0: global.set: global index 0, but there are only 0 (at offset 0x3b)"},
	}
	for id := byte(1); id <= 11; id++ {
		if id != 5 && id != 8 { // a memory has a limit of its own, and start is no list
			all = append(all, Hostile{fmt.Sprintf("vec%02d", id), Module([]byte{id}, Hex("05 ffffffff0f")), "count 4294967295, but 0 bytes left"})
		}
	}
	return all
}

// kind is what a generated module consists of, apart from what makes it a tool.
// Its first function is the one that hurts.
type kind struct {
	name, reason string
	types        [][]byte               // the first is that of all functions
	bodies       func(first int) []byte // a vector; first is the index of the first function
	count        int                    // of the functions
	table        []byte                 // a vector, if any
	memory       []byte                 // default: one page
	ends         Ending
}

// Ending is how a call of a hostile tool ends.
type Ending int

// Returns is the end of what only compiles for long, OutOfTime that of what does
// not end by itself, and OutOfStack that of what calls itself for ever. What
// NeverLoads takes longer to compile than it may, and is not called at all.
const (
	Returns Ending = iota
	OutOfTime
	OutOfStack
	NeverLoads
)

// nothing is the type of a function without parameters and results.
func nothing() []byte { return Hex("60 00 00") }

// raw is the module as it is, which exports its first function as f.
func (k kind) raw() []byte {
	return Module(Section(1, Vector(k.types...)), Section(3, Repeat(k.count, Hex("00"))), optional(4, k.table),
		Section(5, k.memory), Section(7, Vector(Join(Name("f"), Hex("00 00")))), Section(10, k.bodies(0)))
}

func optional(id byte, vector []byte) []byte {
	if vector == nil {
		return nil
	}
	return Section(id, vector)
}

// tool is the module as a tool of that name, whose call begins with the first
// function and, if that returns, answers "done".
func (k kind) tool(name string) []byte {
	said := `{"tools":[{"name":"` + name + `","description":"Does harm.","inputSchema":{"type":"object"}}]}`
	const answer = `{"content":[{"type":"text","text":"done"}]}`
	n := len(k.types)
	write := func(at, size int) []byte { // and return 0
		return Join(Hex("41"), Int(at), Hex("41"), Int(size), Hex("1000 1a 4100"))
	}
	code := bytes.TrimPrefix(k.bodies(1), Uint(k.count))
	return Module(
		Section(1, Uint(n+2), Join(k.types...), Hex("60 00 017f  60 027f7f 017f")),
		Section(2, Vector(Join(Name("hutch:host"), Name("output_write"), Hex("00"), Uint(n+1)))),
		Section(3, Uint(k.count+2), bytes.Repeat(Hex("00"), k.count), Uint(n), Uint(n)),
		optional(4, k.table), Section(5, k.memory),
		Section(7, Vector(Join(Name("memory"), Hex("0200")), Join(Name("describe"), Hex("00"), Uint(k.count+1)), Join(Name("call"), Hex("00"), Uint(k.count+2)))),
		Section(10, Uint(k.count+2), code, Func(Hex("00"), write(64, len(said))), Func(Hex("00"), Hex("1001"), write(64+len(said), len(answer)))),
		Section(11, Vector(Join(Hex("00 41"), Int(64), Hex("0b"), Name(said+answer)))),
	)
}

// Generated are the hostile modules that are too large to be written down, each
// with an exported function f.
func Generated() []Hostile {
	var all []Hostile
	for _, k := range kinds() {
		all = append(all, Hostile{k.name, k.raw(), k.reason})
	}
	return append(all,
		Hostile{"functions1m", Module(Section(1, Vector(nothing())), Section(3, Repeat(1_000_000, Hex("00"))), Section(10, Repeat(1_000_000, Hex("02000b")))),
			"1000000 functions, at most 50000"},
		Hostile{"exports1m", Module(Section(1, Vector(nothing())), Section(3, Repeat(1, Hex("00"))), Section(7, exports(1_000_000)), Section(10, Vector(Func(Hex("00"))))),
			"1000000 exports, at most 500"},
		Hostile{"globals1m", Module(Section(6, Repeat(1_000_000, Hex("7f 00 4100 0b")))), "1000000 globals, at most 2000"},
		Hostile{"segments100k", Module(Section(5, Vector(Hex("0001"))), Section(11, Repeat(100_000, Hex("00 4100 0b 00")))), ""},
		Hostile{"segments201k", Module(Section(5, Vector(Hex("0001"))), Section(11, Repeat(201_000, Hex("00 4100 0b 00")))), "201000 segments, at most 200000"},
	)
}

// exports are n names for function 0.
func exports(n int) []byte {
	list := Uint(n)
	for i := range n {
		list = append(list, Name(fmt.Sprint(i))...)
		list = append(list, 0, 0)
	}
	return list
}

// A Tool is a hostile module that passes for a tool: hutch recognises it, and
// what it does is done when it is compiled or called.
type Tool struct {
	Name string
	// Reason is as in Hostile; what has one is never called.
	Reason string
	// Ends is how its call ends.
	Ends Ending
	// Bytes is the module, as a tool of that name. Another name is another module,
	// which is compiled anew.
	Bytes func(name string) []byte
}

// Tools are the generated modules as tools.
func Tools() []Tool {
	var all []Tool
	for _, k := range kinds() {
		all = append(all, Tool{k.name, k.reason, k.ends, k.tool})
	}
	return all
}

// ToolNamed is the one of Tools with that name, as a tool of that name.
func ToolNamed(name string) []byte {
	for _, t := range Tools() {
		if t.Name == name {
			return t.Bytes(name)
		}
	}
	panic("wasmbintest: no tool " + name)
}
