package wasmbintest

import (
	"bytes"
	"fmt"
)

// kinds are all that are generated.
func kinds() []kind {
	all := []kind{
		running("loop", OutOfTime, "0340 0c00 0b"),
		running("growloop", OutOfTime, "0340 4101 4000 1a 0c00 0b"),
		running("fill", OutOfTime, "0340 4100 4100 3f00 4110 74 fc0b00 0c00 0b"),
		{name: "recurse", ends: OutOfStack, count: 1, bodies: func(first int) []byte { return Vector(Func(Hex("00"), Hex("10"), Uint(first))) }},
		{name: "expcall", ends: OutOfTime, count: 41, bodies: func(first int) []byte { return expcall(40, first) }},
		{name: "twice", ends: OutOfTime, count: 2, types: [][]byte{nothing(), Hex("60 017f 00")}, bodies: twice},
		tableGrow("tablegrow", "70 00 01", 1<<20, "table 0 declares no maximum"),
		tableGrow("tablegrowbounded", "70 01 01 808004", 1, ""),

		oneOf("brtable1m", "bytes of code, at most 524288", BrTable(1_000_000)),
		oneOf("brtable500k", "br_table: 500000 targets in the function, at most 20000", BrTable(500_000)),
		oneOf("brtable1000x1000", "bytes of code, at most 524288", BrTables(1_000, 1_000)),
		oneOf("brtable500x1000", "br_table: 21000 targets in the function, at most 20000", BrTables(500, 1_000)),
		oneOf("brtable20x50k", "1000202 bytes of code, at most 524288", BrTables(20, 50_000)),
		oneOf("brtable20x20k", "br_table: 40000 targets in the function, at most 20000", BrTables(20, 20_000)),
		oneOf("brtable20x1000", "", BrTables(20, 1_000)),

		functions("locals50kx2000", "50000 locals, at most 2000", 2_000, Func(Hex("01 d08603 7f"))),
		functions("locals2000x2000", "1002000 locals in the module, at most 1000000", 2_000, Func(Hex("01 d00f 7f"))),
		functions("locals500loops1000", "loop: 65 nested loops, at most 64", 1, loopsOverLocals(500, 1, 1_000)),
		functions("locals2000loops3000", "loop: 65 nested loops, at most 64", 1, loopsOverLocals(2_000, 1, 3_000)),
		endless(functions("locals2000loops64", "", 1, loopsOverLocals(2_000, 1, 64))),
		slow(functions("locals2000loops64x100", "", 100, loopsOverLocals(2_000, 1, 64))),
		functions("locals1900loops8x62", "loop: 1900 locals times 106 loops, at most 200000", 1, loopsOverLocals(1_900, 8, 62)),
		endless(functions("locals400loops8x62", "", 1, loopsOverLocals(400, 8, 62))),
		functions("locals2000ifs6000", "if: 2000 locals times 501 blocks, at most 1000000", 1, Func(Hex("01 d00f 7f"), Times(6_000, "2000 0440 0b"))),

		oneOf("branches20k", "block: 5001 nested blocks, at most 5000", Times(20_000, "0240 4100 0d00"), Times(20_000, "0b")),
		oneOf("loops10k", "loop: 501 loops, at most 500", Times(10_000, "0340 0b")),
		oneOf("bulk10k", "memory.fill: 1001 bulk operations, at most 1000", Times(10_000, "4100 4100 4100 fc0b00")),
		oneOf("straight37k", "", Times(37_000, "3f00 4101 6a 1a")),
		oneOf("stores37k", "", Times(37_000, "4100 4101 360200")),
		oneOf("straight8m", "bytes of code, at most 524288", Times(1_400_000, "3f00 4101 6a 1a")),
		callsItself(85_000),
		passing(100, 10_000),
	}
	for _, n := range []int{10_000, 100_000} {
		all = append(all,
			oneOf(fmt.Sprintf("nestblock%d", n), "block: 5001 nested blocks, at most 5000", Nested(n, "0240")),
			oneOf(fmt.Sprintf("nestloop%d", n), "loop: 65 nested loops, at most 64", Nested(n, "0340")),
			oneOf(fmt.Sprintf("nestif%d", n), "if: 5001 nested blocks, at most 5000", Nested(n, "4100 0440")),
		)
	}
	all = append(all,
		oneOf("nestblock5000", "", Nested(5_000, "0240")),
		kind{name: "params100k", reason: "100000 parameters, at most 1000", count: 1,
			types:  [][]byte{nothing(), Join(Hex("60"), Repeat(100_000, Hex("7f")), Repeat(100_000, Hex("7f")))},
			bodies: func(int) []byte { return Vector(Func(Hex("00"))) }},
	)
	for i := range all {
		all[i] = all[i].whole()
	}
	return all
}

// whole is k with what it leaves open.
func (k kind) whole() kind {
	if k.types == nil {
		k.types = [][]byte{nothing()}
	}
	if k.memory == nil {
		k.memory = Vector(Hex("00 01"))
	}
	return k
}

// functions are n equal ones.
func functions(name, reason string, n int, body []byte) kind {
	return kind{name: name, reason: reason, count: n, bodies: func(int) []byte { return Repeat(n, body) }}
}

// oneOf is one function without locals.
func oneOf(name, reason string, code ...[]byte) kind {
	return functions(name, reason, 1, Func(Hex("00"), code...))
}

func running(name string, ends Ending, code string) kind {
	k := oneOf(name, "", Hex(code))
	k.ends = ends
	return k
}

// slow is k, which takes a minute to compile: each function alone is within what
// one may cost.
func slow(k kind) kind {
	k.ends = NeverLoads
	return k
}

// endless is k, which compiles, and then counts too far.
func endless(k kind) kind {
	k.ends = OutOfTime
	return k
}

// expcall are n functions that call the next one twice, and a last empty one: no
// loop, and 2^n calls.
func expcall(n, first int) []byte {
	bodies := make([][]byte, 0, n+1)
	for i := range n {
		next := Join(Hex("10"), Uint(first+i+1))
		bodies = append(bodies, Func(Hex("00"), next, next))
	}
	return Vector(append(bodies, Func(Hex("00")))...)
}

// twice is f(n) = f(n-1); f(n-1) for n = 60. Both functions have the type of the
// first, so n lies in memory.
func twice(first int) []byte {
	self := Join(Hex("10"), Uint(first+1))
	count := func(by string) []byte { return Join(Hex("4100 4100 280200"), Hex(by), Hex("360200")) }
	return Vector(
		Func(Hex("00"), Hex("4100 413c 360200"), self),
		Func(Hex("00"), Hex("4100 280200 0440"), count("4101 6b"), self, self, count("4101 6a"), Hex("0b")))
}

// tableGrow grows a table of this type for ever, by so many entries at a time.
func tableGrow(name, table string, by int, reason string) kind {
	k := oneOf(name, reason, Hex("0340 d070 41"), Int(by), Hex("fc0f00 1a 0c00 0b"))
	k.table, k.ends = Vector(Hex(table)), OutOfTime
	return k
}

// loopsOverLocals is nests of loops, so deep, and adds to each local within. It is
// small and takes a compiler time that grows with the square of both.
func loopsOverLocals(locals, nests, depth int) []byte {
	nest := [][]byte{Times(depth, "0340")}
	for i := range locals {
		nest = append(nest, Hex("20"), Uint(i), Hex("4101 6a 21"), Uint(i))
	}
	nest = append(nest, Times(depth, "2000 0d00 0b"))
	return Func(Join(Hex("01"), Uint(locals), Hex("7f")), bytes.Repeat(Join(nest...), nests))
}

// callsItself has n calls in a line, of which the first one never returns.
func callsItself(n int) kind {
	k := kind{name: "calls85k", ends: OutOfStack, count: 1}
	k.bodies = func(first int) []byte {
		call := fmt.Sprintf("10%02x", first)
		return Vector(Func(Hex("00"), Times(n, call)))
	}
	return k
}

// passing is a second function with as many parameters as results, which passes
// them on to itself.
func passing(values, n int) kind {
	k := kind{name: "values10k", count: 1, reason: "call: 100200 values passed, at most 100000"}
	k.types = [][]byte{Join(Hex("60"), Repeat(values, Hex("7f")), Repeat(values, Hex("7f")))}
	k.bodies = func(first int) []byte {
		var code []byte
		for i := range values {
			code = Join(code, Hex("20"), Uint(i))
		}
		return Vector(Func(Hex("00"), code, Times(n, fmt.Sprintf("10%02x", first))))
	}
	return k
}

// LoopsOverLocals is a module of the kind that takes a compiler time which grows
// with the square of its locals and of its nested loops.
func LoopsOverLocals(locals, loops int) []byte {
	return functions("", "", 1, loopsOverLocals(locals, 1, loops)).whole().raw()
}

// Passing is a module of one function with as many parameters as results, which
// passes them on to itself n times.
func Passing(values, n int) []byte { return passing(values, n).whole().raw() }
