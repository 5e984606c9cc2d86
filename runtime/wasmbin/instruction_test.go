package wasmbin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// full is a module in which an index of 0 is good for everything: a local, a
// global, two tables that can grow, a memory, a segment of each kind. Its only
// function has that code.
func full(code ...[]byte) []byte {
	body := join(x("01 01 7f"), join(code...))
	return module(
		section(1, x("01"), empty), section(3, x("01 00")), section(4, x("02 70 01 01 02 6f 01 01 02")), section(5, x("01 00 01")),
		section(6, x("01 7f 01 4100 0b")), section(9, x("01 01 00 01 00")), section(12, x("01")),
		section(10, x("01"), u(len(body)), body), section(11, x("01 01 00")),
	)
}

// everyOpcode returns the opcodes of a byte, and those behind the two prefixes.
func everyOpcode() (all [][]byte) {
	for code := range 256 {
		all = append(all, join(x("fc"), u(code)), join(x("fd"), u(code)))
		if code != 0xfc && code != 0xfd {
			all = append(all, []byte{byte(code)})
		}
	}
	return all
}

// What is an instruction, and how long it is, we see as the engine does: after
// each opcode come zeros, which are its immediates or the opcode unreachable.
func TestD15_OpcodesAreThoseOfTheEngine(t *testing.T) {
	engine := judge(t, 0)
	known := 0
	for _, opcode := range everyOpcode() {
		for zeros := range 20 {
			b := full(x("00"), opcode, make([]byte, zeros), x("0b"))
			_, err := wasmbin.Check(b, wasmbin.Budget{})
			theirs := engine(b)
			// At the end of the body the engine looks at what it leaves behind.
			theyReadIt := theirs == nil || strings.Contains(theirs.Error(), "too many results")
			if (err == nil) != theyReadIt {
				t.Errorf("%x with %d zeros: %v, the engine: %v", opcode, zeros, err, theirs)
			}
			if err == nil && zeros == 19 {
				known++
			}
		}
	}
	// WebAssembly 2.0 has 437. Zeros do not do for block, loop, if, else and end,
	// nor for select with types and ref.null.
	if known != 437-7 {
		t.Errorf("zeros do for %d opcodes", known)
	}
}

// The same for those that begin a block, and for else.
func TestBlocksAreThoseOfTheEngine(t *testing.T) {
	engine := judge(t, 0)
	for _, code := range []string{
		"0240 0b", "0340 0b", "0440 0b", "0440 05 0b", "0440 05 05 0b", "0240 05 0b", "05", "0440 0240 05 0b 0b", "0b", "0240", "0240 0b 0b",
		"0200 0b", "0201 0b", "0280808080 00 0b", "02808080 8000 0b", "02 80808080 10 0b", "02 8080808070 0b", "027f 000b", "026f 00 0b", "0270 00 0b", "027b 00 0b",
		"0c00", "0c01", "0240 0c01 0b", "0240 0c02 0b", "0d00", "0e00 00", "0e00 01", "0e01 0000", "0e01 0001", "0e01 0100", "0e02 00000b",
	} {
		b := full(x("00"), x(code), x("00 0b"))
		_, err := wasmbin.Check(b, wasmbin.Budget{})
		if theirs := engine(b); (err == nil) != (theirs == nil) {
			t.Errorf("%s: %v, the engine: %v", code, err, theirs)
		}
	}
}

// The immediates that zeros cannot stand for: none of those that the engine
// takes is refused.
func TestOpcodesWithOtherImmediates(t *testing.T) {
	engine := judge(t, 0)
	var taken []string
	for _, opcode := range everyOpcode() {
		for _, first := range []string{"00", "01", "40", "6f", "70", "7f"} {
			for _, second := range []string{"01", "6f", "70", "7b", "7c", "7d", "7e", "7f"} {
				b := full(x("00"), opcode, x(first), x(second), x("00 0b"))
				if engine(b) != nil {
					continue
				}
				if _, err := wasmbin.Check(b, wasmbin.Budget{}); err != nil {
					t.Errorf("%x %s %s: the engine takes it: %v", opcode, first, second, err)
				}
				if opcode[0] == 0x1c {
					taken = append(taken, first+second)
				}
			}
		}
	}
	if want := "[016f 0170 017b 017c 017d 017e 017f]"; fmt.Sprint(taken) != want {
		t.Errorf("select with types %v, want %s", taken, want)
	}
}

// The engine reads one byte for the number of a vector instruction, so any
// other form hides code from us: here, as part of a constant, an endless loop.
func TestD15_VectorOpcodesInOneForm(t *testing.T) {
	const at = "code section: function 0: "
	hidden := join(x("fd 8c8000"), x("0340 0c00 0b"), make([]byte, 10), x("1a 0b"))
	refused(t, full(hidden), at+"opcode 0xfd 12 in 3 bytes, where the engine reads 1 (at offset 0x3b)")
	refused(t, full(x("00 fd 808100 0b")), at+"opcode 0xfd 128 in 3 bytes, where the engine reads 2 (at offset 0x3c)")
	refused(t, full(x("00 fd 80 0b")), at+"unknown opcode 0xfd 1408 (at offset 0x3c)")
	check(t, full(x("00 fd 8001 00 0b")))
	check(t, full(x("00 fc 8080808000 00 0b"))) // the other prefix has no such trouble
}

// Whatever is not of WebAssembly 2.0 is refused by the name of what it is of.
func TestD15_InstructionsOfProposals(t *testing.T) {
	tests := []struct {
		proposal string
		opcodes  map[string]string
	}{
		{"tail calls are", map[string]string{"12": "return_call", "13": "return_call_indirect"}},
		{"exceptions are", map[string]string{"06": "try", "07": "catch", "08": "throw", "09": "rethrow", "0a": "throw_ref",
			"18": "delegate", "19": "catch_all", "1f": "try_table"}},
		{"typed function references are", map[string]string{"14": "call_ref", "15": "return_call_ref", "d4": "ref.as_non_null",
			"d5": "br_on_null", "d6": "br_on_non_null"}},
		{"garbage collected types are", map[string]string{"d3": "ref.eq", "fb": "instruction on collected types"}},
		{"threads are", map[string]string{"fe": "atomic instruction"}},
		{"relaxed SIMD instructions are", map[string]string{"fd 8002": "i8x16.relaxed_swizzle", "fd 9302": "i32x4.relaxed_dot_i8x16_i7x16_add_s"}},
	}
	for _, tt := range tests {
		for opcode, name := range tt.opcodes {
			t.Run(name, func(t *testing.T) {
				b := full(x("01"), x(opcode), make([]byte, 4), x("0b"))
				refused(t, b, "code section: function 0: "+name+": "+tt.proposal+" not allowed (at offset 0x3c)")
			})
		}
	}
}

func TestUnknownOpcodes(t *testing.T) {
	for opcode, want := range map[string]string{
		"16": "0x16", "1d": "0x1d", "27": "0x27", "c5": "0xc5", "cf": "0xcf", "d7": "0xd7", "ff": "0xff",
		"fc 12": "0xfc 18", "fc ffffffff0f": "0xfc 4294967295", "fd 9a01": "0xfd 154", "fd 9402": "0xfd 276",
	} {
		refused(t, full(x("01"), x(opcode), x("0b")), "code section: function 0: unknown opcode "+want+" (at offset 0x3c)")
	}
	refused(t, full(x("fd 8080808010 0b")), "code section: function 0: a number does not fit 32 bits (at offset 0x3c)")
}

// A body may end in the middle of each instruction.
func TestD17_InstructionsCutShort(t *testing.T) {
	for _, code := range []string{
		"0240", "0280", "0c00", "0e0100 00", "1000", "110000", "1c017f", "2000", "2300", "2500", "280000", "28ffffffff0f00", "3f00", "4180", "428080", "43000000",
		"4400000000000000", "d070", "d200", "fc00", "fc080000", "fc0900", "fc0a0000", "fc0b00", "fc0c0000", "fc0f00",
		"fd0c 000000000000000000000000000000", "fd0d 000000000000000000000000000000", "fd8001", "fd1500", "fd540000 00",
	} {
		whole := x(code)
		for n := range whole {
			if m, err := wasmbin.Check(full(whole[:n+1:n+1]), wasmbin.Budget{}); err == nil || m != nil {
				t.Errorf("accepted %d of %d bytes of %x", n+1, len(whole), whole)
			}
		}
	}
	if !bytes.Contains(full(x("0b")), x("01 7f 0b")) {
		t.Error("the code is not where it should be")
	}
}
