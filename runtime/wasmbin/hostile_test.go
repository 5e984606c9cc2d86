package wasmbin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// soon is how long the check of a hostile module may take: ten times what is
// promised, so that a busy machine fails nothing.
const soon = 500 * time.Millisecond

// refusedSoon checks that a module is refused with an error that has this in
// it, before soon.
func refusedSoon(t *testing.T, b []byte, want string) {
	t.Helper()
	start := time.Now()
	_, err := wasmbin.Check(b, wasmbin.Budget{})
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestD08_DeepNesting(t *testing.T) {
	for _, n := range []int{10_000, 100_000} {
		for name, tt := range map[string]struct{ begin, want string }{
			"block": {"0240", "function 0: block: 5001 nested blocks, at most 5000"},
			"loop":  {"0340", "function 0: loop: 65 nested loops, at most 64"},
			"if":    {"4100 0440", "function 0: if: 5001 nested blocks, at most 5000"},
		} {
			t.Run(fmt.Sprintf("nest%s%d", name, n), func(t *testing.T) { refusedSoon(t, inBody(nested(n, tt.begin)), tt.want) })
		}
	}
}

// brTables are n tables, each in a block of its own.
func brTables(n, targets int) []byte {
	return bytes.Repeat(join(x("0240"), brTable(targets), x("0b")), n)
}

func TestD09_BranchTables(t *testing.T) {
	t.Run("brtable1m", func(t *testing.T) {
		refusedSoon(t, inBody(brTable(1_000_000)), "bytes of code, at most 524288")
	})
	t.Run("as many as bytes allow", func(t *testing.T) {
		refusedSoon(t, inBody(brTable(500_000)), "function 0: br_table: 500000 targets in the function, at most 20000")
	})
	t.Run("1,000 of 1,000", func(t *testing.T) {
		refusedSoon(t, inBody(brTables(1_000, 1_000)), "bytes of code, at most 524288")
		refusedSoon(t, inBody(brTables(500, 1_000)), "function 0: br_table: 21000 targets in the function, at most 20000")
	})
}

func TestD10_Locals(t *testing.T) {
	t.Run("locals50kx2000", func(t *testing.T) {
		refusedSoon(t, module(functions(2_000, x("01 d08603 7f 0b"))), "function 0: 50000 locals, at most 2000")
	})
	t.Run("2,000 in each of 2,000", func(t *testing.T) {
		refusedSoon(t, module(functions(2_000, x("01 d00f 7f 0b"))), "function 500: 1002000 locals in the module, at most 1000000")
	})
}

// loopsOverLocals nests loops, and adds to each local within. It is small and
// takes a compiler time that grows with the square of both.
func loopsOverLocals(locals, loops int) []byte {
	body := join(x("01"), u(locals), x("7f"), times(loops, "0340"))
	for i := range locals {
		body = join(body, x("20"), u(i), x("4101 6a 21"), u(i))
	}
	return module(functions(1, join(body, times(loops, "2000 0d00 0b"), x("0b"))))
}

// The functions that were found to take seconds to minutes to compile, and what
// is just small enough of each.
func TestD08_D09_FunctionsThatCompileForLong(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"500 locals, 1,000 loops", loopsOverLocals(500, 1_000), "loop: 65 nested loops, at most 64"},
		{"2,000 locals, 3,000 loops", loopsOverLocals(2_000, 3_000), "loop: 65 nested loops, at most 64"},
		{"20,000 blocks, each with a branch", inBody(times(20_000, "0240 4100 0d00"), times(20_000, "0b")), "block: 5001 nested blocks, at most 5000"},
		{"20 tables of 50,000 targets", inBody(brTables(20, 50_000)), "1000202 bytes of code, at most 524288"},
		{"20 tables of 20,000 targets", inBody(brTables(20, 20_000)), "br_table: 40000 targets in the function, at most 20000"},
		{"10,000 loops in a row", inBody(times(10_000, "0340 0b")), "loop: 501 loops, at most 500"},
		{"2,000 locals, 6,000 ifs", module(functions(1, join(x("01 d00f 7f"), times(6_000, "2000 0440 0b"), x("0b")))),
			"if: 2000 locals times 501 blocks, at most 1000000"},
		{"10,000 calls of 100 values", calls(100, 10_000), "call: 100200 values passed, at most 100000"},
		{"10,000 bulk operations", inBody(times(10_000, "4100 4100 4100 fc0b00")), "memory.fill: 1001 bulk operations, at most 1000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refusedSoon(t, tt.b, "function 0: "+tt.want) })
	}
	check(t, loopsOverLocals(2_000, 64))
	check(t, inBody(brTables(20, 1_000)))
	check(t, inBody(times(37_000, "3f00 4101 6a 1a"))) // a straight line is harmless
}

// calls is a function with as many parameters as results that calls itself.
func calls(values, n int) []byte {
	body := x("00")
	for i := range values {
		body = join(body, x("20"), u(i))
	}
	body = join(body, times(n, "1000"), x("0b"))
	return module(section(1, x("01 60"), repeat(values, x("7f")), repeat(values, x("7f"))), section(3, x("01 00")), section(10, x("01"), u(len(body)), body))
}

// Modules that no deadline stops while they run.
func TestD15_TailCallToItself(t *testing.T) {
	refused(t, x("0061736d01000000010a0260017f017f6000017f03030200010503010001071002066d656d6f727902000372756e00010a12020900200041016a12000b0600410010000b"),
		"code section: function 0: return_call: tail calls are not allowed (at offset 0x3a)")
}

// Aims at a global that a rewriter might append.
func TestD15_GlobalOfNobody(t *testing.T) {
	refused(t, x("0061736d010000000105016000017f030201000503010001071002066d656d6f727902000372756e00000a1801160042ffffffffffffffffff00240003400c000b41000b"),
		"code section: function 0: global.set: global index 0, but there are only 0 (at offset 0x3b)")
}

// What the fixtures do that hurts while it runs is not for this check to see.
func TestHostileOnlyWhenRun(t *testing.T) {
	for name, hex := range map[string]string{
		"loop":     "0061736d0100000001040160000003020100070501016600000a0901070003400c000b0b",
		"recurse":  "0061736d0100000001040160000003020100070501016600000a0601040010000b",
		"growloop": "0061736d01000000010401600000030201000503010001070501016600000a0e010c000340410140001a0c000b0b",
		"f(n-1) twice": "0061736d0100000001090260017f006000017f03030200010503010001071002066d656d6f727902000372756e00010a2002150020000440200041016b" +
			"1000200041016b10000b0b0800413c100041000b",
		"endless recursion": "0061736d01000000010a0260017e017e6000017f03030200010503010001071002066d656d6f727902000372756e00010a16020c00200042017c1000" +
			"20007c0b070042001000a70b",
	} {
		t.Run(name, func(t *testing.T) { check(t, x(hex)) })
	}
}
