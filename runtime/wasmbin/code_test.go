package wasmbin_test

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// What an instruction names is there. In full there is one of each kind, but
// two tables and a function that is its own.
func TestD21_IndicesInCode(t *testing.T) {
	tests := []struct{ code, want string }{
		{"2001 1a", "local.get: local index 1, but there are only 1"},
		{"2101", "local.set: local index 1, but there are only 1"},
		{"22ffffffff0f", "local.tee: local index 4294967295, but there are only 1"},
		{"2301", "global.get: global index 1, but there are only 1"},
		{"2401", "global.set: global index 1, but there are only 1"},
		{"1001", "call: function index 1, but there are only 1"},
		{"d201", "ref.func: function index 1, but there are only 1"},
		{"110100", "call_indirect: type index 1, but there are only 1"},
		{"110002", "call_indirect: table index 2, but there are only 2"},
		{"2502", "table.get: table index 2, but there are only 2"},
		{"2602", "table.set: table index 2, but there are only 2"},
		{"fc0802 00", "memory.init: data segment index 2, but there are only 1"},
		{"fc0901", "data.drop: data segment index 1, but there are only 1"},
		{"fc0c01 00", "table.init: element segment index 1, but there are only 1"},
		{"fc0c00 02", "table.init: table index 2, but there are only 2"},
		{"fc0d01", "elem.drop: element segment index 1, but there are only 1"},
		{"fc0e02 00", "table.copy: table index 2, but there are only 2"},
		{"fc0e00 02", "table.copy: table index 2, but there are only 2"},
		{"fc0f02", "table.grow: table index 2, but there are only 2"},
		{"fc1002", "table.size: table index 2, but there are only 2"},
		{"fc1102", "table.fill: table index 2, but there are only 2"},
		{"0201 0b", "block: type index 1, but there are only 1"},
		{"03808001 0b", "loop: type index 16384, but there are only 1"},
		{"04c07f 0b", "if: type index -64, but there are only 1"}, // has a form of one byte
		{"0480808080 10 0b", "if: a number does not fit 33 bits"},
		{"0241 0b", "block: unknown value type 0x41"},
		{"0269 0b", "block: value type 0x69: exceptions are not allowed"},
		{"0c01", "br: label index 1, but there are only 1"},
		{"0240 0d02 0b", "br_if: label index 2, but there are only 2"},
		{"0240 0e 02 00 02 00 0b", "br_table: label index 2, but there are only 2"},
		{"0240 0e 02 00 01 02 0b", "br_table: label index 2, but there are only 2"},
		{"0240 0b 0c01", "br: label index 1, but there are only 1"},
		{"0eff01 00", "br_table: 255 targets, but 2 bytes left"},
		{"0effffffff0f 00", "br_table: 4294967295 targets, but 2 bytes left"},
		{"1c00", "select: 0 result types, only 1 is known"},
		{"1c02 7f7f", "select: 2 result types, only 1 is known"},
		{"1c01 40", "select: unknown value type 0x40"},
		{"d07f", "ref.null: unknown reference type 0x7f"},
		{"d000", "ref.null: typed function references are not allowed"},
		{"d06e", "ref.null: reference type 0x6e: garbage collected types are not allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) { refusedIn(t, full(x(tt.code), x("0b")), tt.want) })
	}
}

// refusedIn checks that the code of the first function is refused with this,
// wherever.
func refusedIn(t *testing.T, b []byte, want string) {
	t.Helper()
	_, err := wasmbin.Check(b, wasmbin.Budget{})
	if err == nil || !strings.HasPrefix(err.Error(), "code section: function 0: "+want+" (at offset 0x") {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestMemoryImmediates(t *testing.T) {
	tests := []struct{ code, want string }{
		{"280200", ""}, {"280300", "i32.load: an alignment of 2^3 bytes, at most 2^2"},
		{"310000", ""}, {"310100", "i64.load8_u: an alignment of 2^1 bytes, at most 2^0"},
		{"3d01 ffffffff0f", ""}, {"3d02 00", "i64.store16: an alignment of 2^2 bytes, at most 2^1"},
		{"28 ffffffff0f 00", "i32.load: an alignment of 2^4294967295 bytes, at most 2^2"},
		{"28 02 8080808010", "i32.load: a number does not fit 32 bits"}, // an offset of 64 bits
		{"28 42 00 00", "i32.load: multiple memories are not allowed"},
		{"3f00", ""}, {"3f01", "memory.size: multiple memories are not allowed"},
		{"40 8000", "memory.grow: multiple memories are not allowed"}, // is one byte, not a number
		{"fc0b00", ""}, {"fc0b01", "memory.fill: multiple memories are not allowed"},
		{"fc0a0000", ""}, {"fc0a0001", "memory.copy: multiple memories are not allowed"},
		{"fc0a0100", "memory.copy: multiple memories are not allowed"},
		{"fc080001", "memory.init: multiple memories are not allowed"},
		{"fd000400", ""}, {"fd000500", "v128.load: an alignment of 2^5 bytes, at most 2^4"},
		{"fd56020003", ""}, {"fd56020004", "v128.load32_lane: lane index 4, but there are only 4"},
		{"fd56030000", "v128.load32_lane: an alignment of 2^3 bytes, at most 2^2"},
		{"fd150f", ""}, {"fd1510", "i8x16.extract_lane_s: lane index 16, but there are only 16"},
		{"fd2201", ""}, {"fd2202", "f64x2.replace_lane: lane index 2, but there are only 2"},
		{"fd0d 1f000000000000000000000000000000", ""},
		{"fd0d 00000000000000000000000000000020", "i8x16.shuffle: lane index 32, but there are only 32"},
	}
	for _, tt := range tests {
		b := full(x("00"), x(tt.code), x("00 0b"))
		if tt.want == "" {
			check(t, b)
			continue
		}
		refusedIn(t, b, tt.want)
	}
}

// Without memory, tables, globals and segments there is nothing to name.
func TestIndicesOfNothing(t *testing.T) {
	for code, want := range map[string]string{
		"280000":    "i32.load: memory index 0, but there are only 0",
		"3f00":      "memory.size: memory index 0, but there are only 0",
		"fc0b00":    "memory.fill: memory index 0, but there are only 0",
		"fd0b0000":  "v128.store: memory index 0, but there are only 0",
		"110000":    "call_indirect: table index 0, but there are only 0",
		"2000":      "local.get: local index 0, but there are only 0",
		"fc0d00":    "elem.drop: element segment index 0, but there are only 0",
		"fc0900":    "data.drop: names a data segment, but there is no data count section",
		"fc080000":  "memory.init: names a data segment, but there is no data count section",
		"05":        "else: belongs to no if",
		"0240 05":   "else: belongs to no if",
		"0440 0505": "else: belongs to no if",
		"0240":      "ends too early",
		"0440 05":   "ends too early",
		"0b":        "1 bytes behind its end",
		"0240 0b0b": "1 bytes behind its end",
	} {
		body := join(x("00"), x(code), x("0b"))
		refusedIn(t, module(section(1, x("01"), empty), section(3, x("01 00")), section(10, x("01"), u(len(body)), body)), want)
	}
}

// What a function names besides its own locals counts imports and all
// functions, also those that come later.
func TestCodeNamesWhatComesLater(t *testing.T) {
	b := module(section(1, x("01 60 01 7f 00")), section(2, x("01 00 00 00 00")), section(3, x("02 00 00")),
		section(10, x("02 06 00 2000 1002 0b 08 01 01 7f 2001 1000 0b")))
	check(t, b)
	refused(t, module(section(1, x("01 60 01 7f 00")), section(2, x("01 00 00 00 00")), section(3, x("02 00 00")),
		section(10, x("02 06 00 2000 1002 0b 08 01 01 7f 2002 1000 0b"))),
		"code section: function 2: local.get: local index 2, but there are only 2 (at offset 0x2a)")
}

// A table needs a maximum within the budget only if code grows it.
func TestE06_TablesThatGrowAreBounded(t *testing.T) {
	const grow = "d070 4101 fc0f00 1a"
	in := func(tables, code string) []byte {
		body := join(x("00"), x(code), x("0b"))
		return module(section(1, x("01"), empty), section(3, x("01 00")), section(4, x(tables)), section(10, x("01"), u(len(body)), body))
	}
	check(t, in("01 70 01 01 808004", grow))
	check(t, in("01 70 01 01 818004", "fc1000 1a"))
	check(t, in("01 70 00 01", "fc1000 1a"))
	check(t, in("02 70 01 01 02 70 00 01", grow))
	refusedIn(t, in("01 70 01 01 818004", grow), "table.grow: table 0 declares a maximum of 65537 entries, at most 65536")
	refusedIn(t, in("02 70 01 01 02 70 00 01", "d070 4101 fc0f01 1a"),
		"table.grow: table 1 declares no maximum, a table that grows needs one of at most 65536")
	refused(t, x("0061736d0100000001040160000003020100040401700001070501016600000a140112000340d070418080c000fc0f001a0c000b0b"),
		"code section: function 0: table.grow: table 0 declares no maximum, a table that grows needs one of at most 65536 (at offset 0x2d)")
}

// Values are counted by the type of what they are passed to: a loop takes its
// parameters again, any other block gives its results.
func TestValuesOfBranches(t *testing.T) {
	const params, results = 3, 5
	in := func(code string) []byte {
		body := join(x("00"), x(code), x("0b"))
		return module(section(1, x("02 60 00"), repeat(results, x("7f")), x("60"), repeat(params, x("7f")), repeat(results, x("7f"))),
			section(3, x("02 00 01")), section(4, x("01 70 00 01")), section(10, x("02"), u(len(body)), body, x("03 00 00 0b")))
	}
	for code, values := range map[string]int{
		"0f":                                results,
		"0c00":                              results,
		"0d00":                              results,
		"0e02 00 00 00":                     3 * results,
		"1001":                              params + results,
		"110100":                            params + results,
		"027f 0c00 0b":                      2,
		"0301 0c00 0b":                      params + results + params,
		"0201 0c00 0b":                      params + results + results,
		"0401 05 0c00 0b":                   params + results + results,
		"0301 0240 0c00 0c01 0b 00 0b 0c00": params + results + params + results,
	} {
		if _, err := wasmbin.Check(in(code), wasmbin.Budget{Values: values}); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		_, err := wasmbin.Check(in(code), wasmbin.Budget{Values: values - 1})
		if err == nil || !strings.Contains(err.Error(), "values passed, at most") {
			t.Errorf("%s passes %d: %v", code, values, err)
		}
	}
}
