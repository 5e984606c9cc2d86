package wasmbin_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

func TestCheckSaysWhatAModuleDeclares(t *testing.T) {
	m := check(t, good())
	imported, called := m.Imports[0], m.Exports[1]
	if imported.Module != "hutch:host" || imported.Name != "log" || imported.Func.String() != "() -> ()" {
		t.Errorf("import %q %q %s", imported.Module, imported.Name, imported.Func)
	}
	if called.Name != "call" || called.Index != 2 || called.Func.String() != "(i32, i64) -> (f64)" {
		t.Errorf("export %+v", called)
	}
	if e := m.Exports[0]; e.Name != "memory" || e.Kind != wasmbin.Memory || e.Func != nil {
		t.Errorf("export %+v", e)
	}
	if want := (wasmbin.Limits{Min: 1, Max: 2, HasMax: true}); *m.Memory != want {
		t.Errorf("memory %+v", *m.Memory)
	}
	counts := []int{m.Types, m.Functions, m.Tables, m.Globals, m.ElementSegments, m.DataSegments}
	if want := []int{2, 2, 1, 2, 2, 2}; !slices.Equal(counts, want) || !m.HasStart {
		t.Errorf("counts %v, want %v; start %v", counts, want, m.HasStart)
	}
	if len(m.Custom) != 1 || string(m.Custom["hutch.manifest"]) != `{"tools":[]}` {
		t.Errorf("custom %q", m.Custom)
	}
}

func TestCheckOfTheSmallestModule(t *testing.T) {
	m := check(t, module())
	if m.Memory != nil || m.Custom != nil || len(m.Imports)+len(m.Exports)+m.Functions != 0 || m.HasStart {
		t.Errorf("%+v", m)
	}
}

func TestNamesOfTypesAndKinds(t *testing.T) {
	all := wasmbin.FuncType{
		Params:  []wasmbin.ValueType{wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64},
		Results: []wasmbin.ValueType{wasmbin.V128, wasmbin.FuncRef, wasmbin.ExternRef, 0},
	}
	if got, want := all.String(), "(i32, i64, f32, f64) -> (v128, funcref, externref, unknown)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	kinds := fmt.Sprint(wasmbin.Function, wasmbin.Table, wasmbin.Memory, wasmbin.Global, wasmbin.Kind(9))
	if want := "function table memory global unknown"; kinds != want {
		t.Errorf("got %s, want %s", kinds, want)
	}
}

// The hostile modules that kill an engine which believes their counts.
func TestD01_D02_CountsOverTheBytesLeft(t *testing.T) {
	for id, section := range map[string]string{
		"01": "type", "02": "import", "03": "function", "04": "table", "05": "memory",
		"06": "global", "07": "export", "09": "element", "0a": "code", "0b": "data",
	} {
		t.Run(section, func(t *testing.T) {
			refused(t, x("0061736d01000000"+id+"05ffffffff0f"),
				section+" section: count 4294967295, but 0 bytes left (at offset 0xa)")
		})
	}
	t.Run("data count", func(t *testing.T) {
		refused(t, x("0061736d010000000c05ffffffff0f"),
			"data count section: count 4294967295, but 0 bytes left in the file (at offset 0xa)")
	})
	t.Run("custom", func(t *testing.T) {
		refused(t, x("0061736d010000000005ffffffff0f"),
			"custom section: 4294967295 bytes, but 0 bytes left (at offset 0xa)")
	})
	t.Run("tag", func(t *testing.T) {
		refused(t, x("0061736d010000000d05ffffffff0f"),
			"tag section: exceptions are not allowed (at offset 0x8)")
	})
	t.Run("start", func(t *testing.T) {
		refused(t, x("0061736d010000000805ffffffff0f"),
			"start section: function index 4294967295, but there are only 0 (at offset 0xa)")
	})
}

// Counts and lengths inside of entries lie just as well.
func TestD03_D05_CountsInsideEntries(t *testing.T) {
	const most = "ffffffff0f"
	fn := join(section(1, x("01 60 00 00")), section(3, x("01 00")))
	table, memory := section(4, x("01 70 00 01")), section(5, x("01 00 01"))
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"parameters", x("0061736d0100000001070160" + most),
			"type section: type 0: 4294967295 parameters, but 0 bytes left (at offset 0xc)"},
		{"results", module(section(1, x("01 60 00"+most))),
			"type section: type 0: 4294967295 results, but 0 bytes left (at offset 0xd)"},
		{"import module", module(section(2, x("01"+most))),
			"import section: import 0: 4294967295 bytes, but 0 bytes left (at offset 0xb)"},
		{"import name", module(section(2, x("01 00"+most))),
			"import section: import 0: 4294967295 bytes, but 0 bytes left (at offset 0xc)"},
		{"export name", module(section(7, x("01"+most))),
			"export section: export 0: 4294967295 bytes, but 0 bytes left (at offset 0xb)"},
		{"element indices", module(section(9, x("01 01 00"+most))),
			"element section: segment 0: 4294967295 entries, but 0 bytes left (at offset 0xd)"},
		{"element indices, active", module(table, section(9, x("01 00 41000b"+most))),
			"element section: segment 0: 4294967295 entries, but 0 bytes left (at offset 0x15)"},
		{"element expressions", module(section(9, x("01 05 70"+most))),
			"element section: segment 0: 4294967295 entries, but 0 bytes left (at offset 0xd)"},
		{"body size", module(fn, section(10, x("01"+most))),
			"code section: function 0: 4294967295 bytes, but 0 bytes left (at offset 0x15)"},
		{"local declarations", module(fn, section(10, x("01 05"+most))),
			"code section: function 0: 4294967295 declarations of locals, but 0 bytes left (at offset 0x16)"},
		{"locals", module(fn, section(10, x("01 08 01"+most+"7f 0b"))),
			"code section: function 0: 4294967295 locals, at most 2000 (at offset 0x16)"},
		{"data", module(section(11, x("01 01"+most))),
			"data section: segment 0: 4294967295 bytes, but 0 bytes left (at offset 0xc)"},
		{"data, active", module(memory, section(11, x("01 00 41000b"+most))),
			"data section: segment 0: 4294967295 bytes, but 0 bytes left (at offset 0x14)"},
		{"data count", module(section(12, x("05")), section(11, x("00"))),
			"data count section: count 5, but 3 bytes left in the file (at offset 0xa)"},
		{"custom name", module(section(0, x(most))),
			"custom section: 4294967295 bytes, but 0 bytes left (at offset 0xa)"},
		{"section", module([]byte{1}, x(most)),
			"type section: 4294967295 bytes, but 0 bytes left (at offset 0x9)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, tt.b, tt.want) })
	}
}

// What is in foreign custom sections is nobody's business: it is dropped.
func TestD04_LyingNameSectionIsDropped(t *testing.T) {
	lying := module(custom("name", x("01 05 ffffffff0f")), custom("name", nil), custom("producers", x("ff")))
	m := check(t, lying)
	if got := m.Stripped(); !bytes.Equal(got, module()) {
		t.Errorf("stripped %x", got)
	}
}

func TestD07_SectionsInOrderAndOnce(t *testing.T) {
	empty := x("00")
	const displaced = "twice, or after a section that it must stand before"
	tests := []struct {
		name     string
		sections []byte
		want     string
	}{
		{"twice", join(section(1, empty), section(1, empty)), "type section: " + displaced + " (at offset 0xb)"},
		{"order", join(section(3, empty), section(1, empty)), "type section: " + displaced + " (at offset 0xb)"},
		{"twice, apart", join(section(1, empty), custom("", nil), section(2, empty), section(1, empty)),
			"type section: " + displaced + " (at offset 0x11)"},
		{"data count after code", join(section(10, empty), section(12, empty)),
			"data count section: " + displaced + " (at offset 0xb)"},
		{"data before code", join(section(11, empty), section(10, empty)),
			"code section: " + displaced + " (at offset 0xb)"},
		{"size over the file", x("01 02 00"), "type section: 2 bytes, but 1 bytes left (at offset 0x9)"},
		{"size over the content", section(1, x("00 00 00")), "type section: 2 bytes too many (at offset 0xb)"},
		{"size under the content", x("01 01 01 60 00 00"), "type section: count 1, but 0 bytes left (at offset 0xa)"},
		{"size under an entry", x("01 03 01 60 00 00"), "type section: type 0: ends too early (at offset 0xd)"},
		{"unknown", section(14), "section 14: not a section of WebAssembly 2.0 (at offset 0x8)"},
		{"custom without name", section(0), "custom section: ends too early (at offset 0xa)"},
		{"no bodies", join(section(1, x("01 60 00 00")), section(3, x("01 00"))),
			"code section: 0 bodies, but 1 functions in the function section (at offset 0x12)"},
		{"no functions", section(10, x("01 02 00 0b")),
			"code section: 1 bodies, but 0 functions in the function section (at offset 0xa)"},
		{"no data", section(12, x("00")), ""},
		{"data count of none", join(section(12, x("00")), section(11, x("01 01 00"))),
			"data section: 1 segments, but 0 in the data count section (at offset 0xd)"},
		{"data missing", join(section(12, x("01")), custom("", nil)),
			"data section: 0 segments, but 1 in the data count section (at offset 0xe)"},
		{"data count differs", join(section(12, x("02")), section(11, x("01 01 00"))),
			"data section: 1 segments, but 2 in the data count section (at offset 0xd)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				check(t, module(tt.sections))
				return
			}
			refused(t, module(tt.sections), tt.want)
		})
	}
}

func TestD16_HeaderSaysWhatAFileIs(t *testing.T) {
	const component = "header: a component, not a core module: " +
		"build for wasm32-wasip1 and leave out the step that makes a component (at offset 0x4)"
	tests := []struct{ name, file, want string }{
		{"component", "\x00asm\x0d\x00\x01\x00", component},
		{"component, with sections", "\x00asm\x0d\x00\x01\x00\x01\x08\x00asm\x01\x00\x00\x00", component},
		{"empty", "", "header: the file is empty (at offset 0x0)"},
		{"text", "(module)", `header: not a WebAssembly module: it starts with "(mod" (at offset 0x0)`},
		{"not wasm", "\x7fELF", `header: not a WebAssembly module: it starts with "\x7fELF" (at offset 0x0)`},
		{"cut magic", "\x00as", `header: not a WebAssembly module: it starts with "\x00as" (at offset 0x0)`},
		{"no version", "\x00asm", "header: 4 bytes, but 0 bytes left (at offset 0x4)"},
		{"cut version", "\x00asm\x0d\x00\x01", "header: 4 bytes, but 3 bytes left (at offset 0x4)"},
		{"other version", "\x00asm\x0d\x00\x00\x00", "header: version 13, only 1 is known (at offset 0x4)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, []byte(tt.file), tt.want) })
	}
}

// A module cut at any byte is refused, but where what is left is a module of
// its own: before the first function is promised.
func TestD17_TruncatedAtEveryByte(t *testing.T) {
	whole := good()
	const header, name, types, imports = 8, 19, 31, 51
	for n := range whole {
		m, err := wasmbin.Check(whole[:n:n], wasmbin.Budget{})
		switch n {
		case header, name, types, imports, len(whole) - 29:
			if err != nil {
				t.Errorf("%d bytes are a module of whole sections: %v", n, err)
			}
		default:
			if err == nil || m != nil {
				t.Errorf("accepted %d of %d bytes", n, len(whole))
			}
		}
	}
}

func TestLEB128Strictness(t *testing.T) {
	global := func(code string) []byte { return module(section(6, x("01 7f 00"), x(code), x("0b"))) }
	const over32, over64 = "a number does not fit 32 bits", "a number does not fit 64 bits"
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"u32 padded to five bytes", module(x("01 8180808000 00")), ""},
		{"u32 in six bytes", module(x("01 818080808000 00")), "type section: " + over32 + " (at offset 0x9)"},
		{"u32 unused bits", module(x("01 8180808010 00")), "type section: " + over32 + " (at offset 0x9)"},
		{"u32 cut", module(x("01 8180")), "type section: ends too early (at offset 0x9)"},
		{"i32 smallest", global("41 8080808078"), ""},
		{"i32 largest", global("41 ffffffff07"), ""},
		{"i32 padded", global("41 8080808000"), ""},
		{"i32 minus one, padded", global("41 ffffffff7f"), ""},
		{"i32 wrong sign bits", global("41 8080808008"), "global section: global 0: i32.const: " + over32 + " (at offset 0xe)"},
		{"i32 unused bits", global("41 ffffffff1f"), "global section: global 0: i32.const: " + over32 + " (at offset 0xe)"},
		{"i32 in six bytes", global("41 808080808000"), "global section: global 0: i32.const: " + over32 + " (at offset 0xe)"},
		{"i64 smallest", global("42 8080808080808080807f"), ""},
		{"i64 largest", global("42 ffffffffffffffffff00"), ""},
		{"i64 unused bits", global("42 ffffffffffffffffff01"), "global section: global 0: i64.const: " + over64 + " (at offset 0xe)"},
		{"i64 in eleven bytes", global("42 8080808080808080808000"), "global section: global 0: i64.const: " + over64 + " (at offset 0xe)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				check(t, tt.b)
				return
			}
			refused(t, tt.b, tt.want)
		})
	}
}

func TestConstantExpressions(t *testing.T) {
	// Three globals, the middle one with the expression, and one function.
	in := func(code string) []byte {
		return module(section(1, x("01 60 00 00")), section(2, x("01 00 00 00 00")),
			section(6, x("03 7f 00 4100 0b 7f 00"), x(code), x("7f 00 4100 0b")))
	}
	const at = "global section: global 1: "
	tests := []struct{ name, code, want string }{
		{"i32.const", "41 7f 0b", ""},
		{"i64.const", "42 7f 0b", ""},
		{"f32.const", "43 00000000 0b", ""},
		{"f64.const", "44 0000000000000000 0b", ""},
		{"v128.const", "fd 0c 00000000000000000000000000000000 0b", ""},
		{"ref.null", "d0 6f 0b", ""},
		{"ref.func", "d2 00 0b", ""},
		{"global.get of one before", "23 00 0b", ""},
		{"global.get of itself", "23 01 0b", at + "global.get: global index 1, but there are only 1 (at offset 0x20)"},
		{"global.get of none", "23 ffffffff0f 0b", at + "global.get: global index 4294967295, but there are only 1 (at offset 0x20)"},
		{"ref.func of none", "d2 01 0b", at + "ref.func: function index 1, but there are only 1 (at offset 0x20)"},
		{"ref.null of a type", "d0 00 0b", at + "ref.null: typed function references are not allowed (at offset 0x20)"},
		{"empty", "0b", at + "end: cannot stand in a constant expression (at offset 0x1f)"},
		{"call", "10 00 0b", at + "call: cannot stand in a constant expression (at offset 0x1f)"},
		{"i8x16.shuffle", "fd 0d 00000000000000000000000000000000 0b",
			at + "i8x16.shuffle: cannot stand in a constant expression (at offset 0x1f)"},
		{"two instructions", "41 00 41 00 0b",
			at + "a constant expression of more than one instruction: extended constant expressions are not allowed (at offset 0x21)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				check(t, in(tt.code))
				return
			}
			refused(t, in(tt.code), tt.want)
		})
	}
}

// All eight forms of element segments, and the ways to spoil them.
func TestElementSegments(t *testing.T) {
	in := func(tables, segment string) []byte {
		return module(section(1, x("01 60 00 00")), section(2, x("01 00 00 00 00")),
			section(4, x(tables)), section(9, x("01"), x(segment)))
	}
	const one, two = "01 70 00 01", "02 70 00 01 70 00 01"
	const at = "element section: segment 0: "
	tests := []struct{ name, tables, segment, want string }{
		{"0 active", one, "00 4100 0b 01 00", ""},
		{"1 passive", one, "01 00 01 00", ""},
		{"2 active, table", two, "02 01 4100 0b 00 01 00", ""},
		{"3 declarative", one, "03 00 01 00", ""},
		{"4 active, expressions", one, "04 4100 0b 01 d200 0b", ""},
		{"5 passive, expressions", one, "05 70 01 d070 0b", ""},
		{"6 active, table, expressions", two, "06 01 4100 0b 6f 01 d06f 0b", ""},
		{"7 declarative, expressions", one, "07 70 02 d200 0b d070 0b", ""},
		{"8", one, "08 00", at + "unknown form 8 (at offset 0x1e)"},
		{"no table", "00", "00 4100 0b 01 00", at + "table index 0, but there are only 0 (at offset 0x1b)"},
		{"no such table", one, "02 01 4100 0b 00 01 00", at + "table index 1, but there are only 1 (at offset 0x1f)"},
		{"no such function", one, "00 4100 0b 01 01", at + "function index 1, but there are only 1 (at offset 0x23)"},
		{"no such function, expression", one, "07 70 01 d201 0b", at + "ref.func: function index 1, but there are only 1 (at offset 0x22)"},
		{"kind", one, "01 01 01 00", at + "unknown element kind 0x01 (at offset 0x1f)"},
		{"type", one, "05 7f 00", at + "unknown reference type 0x7f (at offset 0x1f)"},
		{"instruction", one, "05 70 01 00 0b", at + "unreachable: cannot stand in a constant expression (at offset 0x21)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				check(t, in(tt.tables, tt.segment))
				return
			}
			refused(t, in(tt.tables, tt.segment), tt.want)
		})
	}
}

func TestD21_IndicesNamesAndForms(t *testing.T) {
	types := section(1, x("01 60 00 00"))
	fn := func(rest ...[]byte) []byte { return join(types, section(3, x("01 00")), join(rest...)) }
	imported := func(kind string) []byte {
		return join(types, section(2, x("01"), name("env"), name("thing"), x(kind)))
	}
	const only = ", only functions can be imported (at offset 0x1b)"
	tests := []struct {
		name     string
		sections []byte
		want     string
	}{
		{"imported table", imported("01 70 00 01"), `import section: import 0: "env" "thing" is of kind table` + only},
		{"imported memory", imported("02 00 01"), `import section: import 0: "env" "thing" is of kind memory` + only},
		{"imported global", imported("03 7f 00"), `import section: import 0: "env" "thing" is of kind global` + only},
		{"imported tag", imported("04 00 00"), `import section: import 0: "env" "thing" is of kind tag: exceptions are not allowed (at offset 0x1b)`},
		{"imported ?", imported("05 00"), `import section: import 0: "env" "thing" is of kind unknown` + only},
		{"type of import", imported("00 01"), "import section: import 0: type index 1, but there are only 1 (at offset 0x1c)"},
		{"type of function", join(types, section(3, x("01 01")), section(10, x("01 02 00 0b"))),
			"function section: function 0: type index 1, but there are only 1 (at offset 0x11)"},
		{"type form", section(1, x("01 5f 00")), "type section: type 0: form 0x5f: garbage collected types are not allowed (at offset 0xb)"},
		{"value type", section(1, x("01 60 01 6e 00")), "type section: type 0: value type 0x6e: garbage collected types are not allowed (at offset 0xd)"},
		{"table type", section(4, x("01 7f 00 00")), "table section: table 0: unknown reference type 0x7f (at offset 0xb)"},
		{"shared memory", section(5, x("01 03 01 01")),
			"memory section: memory 0: limits of form 0x03: threads are not allowed (at offset 0xb)"},
		{"64-bit memory", section(5, x("01 04 01")),
			"memory section: memory 0: limits of form 0x04: 64-bit memories are not allowed (at offset 0xb)"},
		{"two memories", section(5, x("02 00 01 00 01")), "memory section: 2 memories: multiple memories are not allowed (at offset 0xa)"},
		{"memory upside down", section(5, x("01 01 02 01")), "memory section: memory 0: a maximum of 1, but a minimum of 2 (at offset 0xd)"},
		{"memory over 4 GiB", section(5, x("01 01 00 818004")), "memory section: memory 0: a maximum of 65537 pages, at most 65536 (at offset 0xd)"},
		{"mutability", section(6, x("01 7f 02 4100 0b")), "global section: global 0: mutability 0x02 (at offset 0xc)"},
		{"export twice", fn(section(7, x("02"), name("f"), x("00 00"), name("f"), x("00 00"))),
			`export section: export 1: a second one named "f" (at offset 0x19)`},
		{"export function", fn(section(7, x("01"), name("f"), x("00 01"))), "export section: export 0: function index 1, but there are only 1 (at offset 0x18)"},
		{"export table", section(7, x("01 00 01 00")), "export section: export 0: table index 0, but there are only 0 (at offset 0xd)"},
		{"export memory", section(7, x("01 00 02 00")), "export section: export 0: memory index 0, but there are only 0 (at offset 0xd)"},
		{"export second memory", join(section(5, x("01 00 01")), section(7, x("01 00 02 01"))),
			"export section: export 0: memory index 1, but there are only 1 (at offset 0x12)"},
		{"export global", section(7, x("01 00 03 00")), "export section: export 0: global index 0, but there are only 0 (at offset 0xd)"},
		{"export tag", section(7, x("01 00 04 00")), `export section: export 0: "" is of kind tag, which cannot be exported (at offset 0xc)`},
		{"start", fn(section(8, x("01"))), "start section: function index 1, but there are only 1 (at offset 0x14)"},
		{"data without memory", section(11, x("01 00 4100 0b 00")), "data section: segment 0: memory index 0, but there are only 0 (at offset 0xb)"},
		{"data in second memory", join(section(5, x("01 00 01")), section(11, x("01 02 01 4100 0b 00"))),
			"data section: segment 0: memory index 1, but there are only 1 (at offset 0x11)"},
		{"data form", section(11, x("01 03 00")), "data section: segment 0: unknown form 3 (at offset 0xb)"},
		{"body without code", fn(section(10, x("01 01 00"))), "code section: function 0: ends too early (at offset 0x17)"},
		{"body without end", fn(section(10, x("01 02 00 01"))), "code section: function 0: ends too early (at offset 0x18)"},
		{"empty body", fn(section(10, x("01 00"))), "code section: function 0: ends too early (at offset 0x16)"},
		{"type of local", fn(section(10, x("01 04 01 01 40 0b"))), "code section: function 0: unknown value type 0x40 (at offset 0x18)"},
		{"name not UTF-8", section(7, x("01 02 c080 02 00")), `export section: export 0: name "\xc0\x80" is not UTF-8 (at offset 0xb)`},
		{"custom not UTF-8", section(0, x("03 eda080")), `custom section: name "\xed\xa0\x80" is not UTF-8 (at offset 0xa)`},
		{"module not UTF-8", section(2, x("01 01 ff 00 00 00")), `import section: import 0: name "\xff" is not UTF-8 (at offset 0xb)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { refused(t, module(tt.sections), tt.want) })
	}
}

// Data may name its memory, and both kinds of active segment are read alike.
func TestDataSegments(t *testing.T) {
	m := check(t, module(section(5, x("01 00 01")), section(11, x("03 00 4100 0b 01 61 01 00 02 00 4100 0b 01 62"))))
	if m.DataSegments != 3 {
		t.Errorf("%d segments", m.DataSegments)
	}
}

// Names come from strangers: an error shows the beginning of one, escaped.
func TestErrorsCutForeignNames(t *testing.T) {
	long := strings.Repeat("\x1b", 1000)
	_, err := wasmbin.Check(module(section(2, x("01"), name(long), name("n"), x("02 00 01"))), wasmbin.Budget{})
	if err == nil || len(err.Error()) > 400 || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
}
