package wasmbintest

import (
	"bytes"
	"fmt"
)

// A Limit is one field of the pre-check's budget, with modules that hit it.
type Limit struct {
	Name     string
	Standard int // the field's default, in units of Build
	// Build makes a valid module that has n of what is limited, and exports its first
	// function as f if that is its own. What it imports is "f" of "m".
	Build func(n int) []byte
}

// Limits are all fields of the budget.
func Limits() []Limit {
	return []Limit{
		{"FileBytes", 16 << 20, fileOf},
		{"Types", 5_000, func(n int) []byte { return Module(Section(1, Repeat(n, nothing()))) }},
		{"Params", 1_000, func(n int) []byte { return Module(Section(1, Hex("01 60"), Repeat(n, Hex("7f")), Hex("00"))) }},
		{"Results", 1_000, func(n int) []byte { return Module(Section(1, Hex("01 60 00"), Repeat(n, Hex("7f")))) }},
		{"Imports", 200, func(n int) []byte {
			return Module(Section(1, Vector(nothing())), Section(2, Repeat(n, Join(Name("m"), Name("f"), Hex("00 00")))))
		}},
		{"Functions", 50_000, func(n int) []byte { return equal(n, Hex("00"), nil) }},
		{"Tables", 4, func(n int) []byte { return Module(Section(4, Repeat(n, Hex("70 00 00")))) }},
		{"TableEntries", 65_536, func(n int) []byte { return Module(Section(4, Hex("01 70 00"), Uint(n))) }},
		{"MemoryBytes", 1024, func(n int) []byte { return Module(Section(5, Hex("01 00"), Uint(n))) }},
		{"Globals", 2_000, func(n int) []byte { return Module(Section(6, Repeat(n, Hex("7f 01 41 00 0b")))) }},
		{"Exports", 500, memoryAs},
		{"Segments", 200_000, func(n int) []byte {
			return Module(Section(9, Hex("01 01 00 00")), Section(11, Repeat(n-1, Hex("01 00"))))
		}},
		{"BodyBytes", 512 << 10, func(n int) []byte { return one(bytes.Repeat(Hex("01"), n-2)) }},
		{"Locals", 2_000, func(n int) []byte {
			body := Sized(Hex("02 01 7e"), Uint(n-3), Hex("7f 0b")) // beside two parameters
			return Module(Section(1, Hex("01 60 02 7f7f 00")), Section(3, Hex("01 00")), Section(7, Vector(Join(Name("f"), Hex("00 00")))), Section(10, Vector(body)))
		}},
		{"ModuleLocals", 1_000_000, localsOf},
		{"Nesting", 5_000, func(n int) []byte { return one(Nested(n, "0240")) }},
		{"Blocks", 6_000, func(n int) []byte { return one(Times(n, "4100 0440 0b")) }},
		{"Loops", 500, func(n int) []byte { return one(Times(n, "0340 0b")) }},
		{"LoopNesting", 64, func(n int) []byte { return one(Times(n, "0340 0240"), Times(2*n, "0b")) }},
		{"LocalsTimesBlocks", 2_000, func(n int) []byte { return equal(1, Hex("01 f403 7f"), Times(n, "0240 0b")) }},
		{"LocalsTimesLoops", 400, func(n int) []byte { return equal(1, Hex("01 f403 7f"), Times(n, "0340 0b")) }},
		{"BranchTargets", 20_000, func(n int) []byte { return one(Hex("0240"), BrTable(n/2), Hex("0b"), BrTable(n-n/2)) }},
		{"Values", 100_000, pass},
		{"BulkOperations", 1_000, func(n int) []byte {
			return one(Times(n-1, "4100 4100 4100 fc0a0000"), Hex("4100 4100 4100 fc0b00"))
		}},
	}
}

// equal is a module of n equal functions and a page of memory.
func equal(n int, locals, code []byte) []byte {
	return functions("", "", n, Func(locals, code)).whole().raw()
}

// one is a module of one function without locals.
func one(code ...[]byte) []byte { return equal(1, Hex("00"), Join(code...)) }

// fileOf is a module of n bytes: a custom section with a long size fills it.
func fileOf(n int) []byte {
	rest := n - len(Module()) - 6
	size := Hex("00 80 80 80 80 00")
	for i, v := 1, rest; v > 0; i, v = i+1, v>>7 {
		size[i] |= byte(v & 0x7f)
	}
	return Join(Module(), size, make([]byte, rest))
}

// memoryAs exports a memory under n names.
func memoryAs(n int) []byte {
	entries := Uint(n)
	for i := range n {
		entries = append(append(entries, Name(fmt.Sprint(i))...), 2, 0)
	}
	return Module(Section(5, Hex("01 00 00")), Section(7, entries))
}

// localsOf is a module whose functions declare up to 2,000 locals, n in all.
func localsOf(n int) []byte {
	var bodies [][]byte
	for ; n > 0; n -= 2_000 {
		bodies = append(bodies, Func(Join(Hex("01"), Uint(min(n, 2_000)), Hex("7f"))))
	}
	return Module(Section(1, Vector(nothing())), Section(3, Repeat(len(bodies), Hex("00"))),
		Section(7, Vector(Join(Name("f"), Hex("00 00")))), Section(10, Vector(bodies...)))
}

// pass is a function that passes n values, one to a block, ten to a block or to a call,
// and ten back from it.
func pass(n int) []byte {
	ten := Repeat(10, Hex("7f"))
	first := Func(Hex("00"), Times(n%10, "027f 4100 0b 1a"), Times(n/10%2, "0202 4100 4100 4100 4100 4100 4100 4100 4100 4100 4100 0b"), Times(n/10%2*10, "1a"),
		Times(10, "4100"), Times(n/20, "1001"), Times(10, "1a"))
	var back []byte
	for i := range 10 {
		back = append(back, 0x20, byte(i))
	}
	return Module(Section(1, Vector(nothing(), Join(Hex("60"), ten, ten), Join(Hex("60 00"), ten))), Section(3, Hex("02 00 01")),
		Section(7, Vector(Join(Name("f"), Hex("00 00")))), Section(10, Vector(first, Func(Hex("00"), back))))
}
