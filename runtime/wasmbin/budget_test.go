package wasmbin_test

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// A limit is one field of a budget: how to set it, how to make a module that
// has n of what it limits, and what is said about one that has too many.
type limit struct {
	name     string
	standard int
	set      func(b *wasmbin.Budget, n int)
	build    func(n int) []byte
	want     string // found and allowed are filled in
}

var empty = x("60 00 00") // the type of a function without parameters and results

// functions are the sections of n functions with one body, and of a memory.
func functions(n int, body []byte) []byte {
	return join(section(1, x("01"), empty), section(3, repeat(n, x("00"))), section(5, x("01 00 01")),
		section(10, repeat(n, join(u(len(body)), body))))
}

// inBody is a module of one function without locals, with that code and an end.
func inBody(code ...[]byte) []byte {
	return module(functions(1, join(x("00"), join(code...), x("0b"))))
}

func times(n int, code string) []byte { return wasmbintest.Times(n, code) }

func nested(n int, begin string) []byte { return wasmbintest.Nested(n, begin) }

func brTable(n int) []byte { return wasmbintest.BrTable(n) }

// fileOf is a module of n bytes: a custom section with a long size fills it.
func fileOf(n int) []byte {
	rest := n - len(module()) - 6
	size := x("00 80 80 80 80 00")
	for i, v := 1, rest; v > 0; i, v = i+1, v>>7 {
		size[i] |= byte(v & 0x7f)
	}
	return join(module(), size, make([]byte, rest))
}

func exports(n int) []byte {
	var entries []byte
	for i := range n {
		entries = join(entries, name(fmt.Sprint(i)), x("02 00"))
	}
	return module(section(5, x("01 00 00")), section(7, u(n), entries))
}

// locals is a module whose functions declare up to 2,000 locals, n in all.
func locals(n int) []byte {
	var bodies [][]byte
	for ; n > 0; n -= 2000 {
		declared := u(min(n, 2000))
		bodies = append(bodies, join(u(len(declared)+4), x("01"), declared, x("7f 00 0b")))
	}
	return module(section(1, x("01"), empty), section(3, repeat(len(bodies), x("00"))),
		section(10, u(len(bodies)), join(bodies...)))
}

// passing is a function that passes n values, to blocks and calls with one, ten
// or twenty of them.
func passing(n int) []byte {
	ten := repeat(10, x("7f"))
	body := join(x("00"), times(n%10, "027f 4100 0b 1a"), times(n/20, "1000"), times(n/10%2, "0201 00 0b"), x("0b"))
	return module(section(1, x("02 60"), ten, ten, x("60 00"), ten), section(3, x("01 00")), section(10, x("01"), u(len(body)), body))
}

// limits lists every field of a budget; TestEveryBudgetFieldIsListed holds it.
func limits() []limit {
	type budget = wasmbin.Budget
	return []limit{
		{"FileBytes", 16 << 20, func(b *budget, n int) { b.FileBytes = n }, fileOf, "file: %d bytes, at most %d"},
		{"Types", 5_000, func(b *budget, n int) { b.Types = n },
			func(n int) []byte { return module(section(1, repeat(n, empty))) },
			"type section: %d types, at most %d"},
		{"Params", 1_000, func(b *budget, n int) { b.Params = n },
			func(n int) []byte { return module(section(1, x("01 60"), repeat(n, x("7f")), x("00"))) },
			"type section: type 0: %d parameters, at most %d"},
		{"Results", 1_000, func(b *budget, n int) { b.Results = n },
			func(n int) []byte { return module(section(1, x("01 60 00"), repeat(n, x("7f")))) },
			"type section: type 0: %d results, at most %d"},
		{"Imports", 200, func(b *budget, n int) { b.Imports = n },
			func(n int) []byte { return module(section(1, x("01"), empty), section(2, repeat(n, x("00 00 00 00")))) },
			"import section: %d imports, at most %d"},
		{"Functions", 50_000, func(b *budget, n int) { b.Functions = n },
			func(n int) []byte { return module(functions(n, x("00 0b"))) },
			"function section: %d functions, at most %d"},
		{"Tables", 4, func(b *budget, n int) { b.Tables = n },
			func(n int) []byte { return module(section(4, repeat(n, x("70 00 00")))) },
			"table section: %d tables, at most %d"},
		{"TableEntries", 65_536, func(b *budget, n int) { b.TableEntries = n },
			func(n int) []byte { return module(section(4, x("01 70 00"), u(n))) },
			"table section: table 0: starts with %d entries, at most %d"},
		{"MemoryBytes", 1024, func(b *budget, n int) { b.MemoryBytes = int64(n)*65_536 + 65_535 },
			func(n int) []byte { return module(section(5, x("01 00"), u(n))) },
			"memory section: memory 0: starts with %d pages of 64 KiB, at most %d"},
		{"Globals", 2_000, func(b *budget, n int) { b.Globals = n },
			func(n int) []byte { return module(section(6, repeat(n, x("7f 00 41 00 0b")))) },
			"global section: %d globals, at most %d"},
		{"Exports", 500, func(b *budget, n int) { b.Exports = n }, exports, "export section: %d exports, at most %d"},
		{"Segments", 200_000, func(b *budget, n int) { b.Segments = n },
			func(n int) []byte { return module(section(9, x("01 01 00 00")), section(11, repeat(n-1, x("01 00")))) },
			"data section: %d segments, at most %d"},
		{"BodyBytes", 512 << 10, func(b *budget, n int) { b.BodyBytes = n },
			func(n int) []byte { return module(functions(1, join(x("00"), bytes.Repeat(x("01"), n-2), x("0b")))) },
			"code section: function 0: %d bytes of code, at most %d"},
		{"Locals", 2_000, func(b *budget, n int) { b.Locals = n },
			func(n int) []byte {
				body := join(x("02 01 7e"), u(n-3), x("7f 0b")) // beside two parameters
				return module(section(1, x("01 60 02 7f7f 00")), section(3, x("01 00")), section(10, x("01"), u(len(body)), body))
			},
			"code section: function 0: %d locals, at most %d"},
		{"ModuleLocals", 1_000_000, func(b *budget, n int) { b.ModuleLocals = n }, locals,
			": %d locals in the module, at most %d"},
		{"Nesting", 5_000, func(b *budget, n int) { b.Nesting = n },
			func(n int) []byte { return inBody(nested(n, "0240")) },
			"code section: function 0: block: %d nested blocks, at most %d"},
		{"Blocks", 6_000, func(b *budget, n int) { b.Blocks = n },
			func(n int) []byte { return inBody(times(n, "4100 0440 0b")) },
			"code section: function 0: if: %d blocks, at most %d"},
		{"Loops", 500, func(b *budget, n int) { b.Loops = n },
			func(n int) []byte { return inBody(times(n, "0340 0b")) },
			"code section: function 0: loop: %d loops, at most %d"},
		{"LoopNesting", 64, func(b *budget, n int) { b.LoopNesting = n },
			func(n int) []byte { return inBody(times(n, "0340 0240"), times(2*n, "0b")) },
			"code section: function 0: loop: %d nested loops, at most %d"},
		{"LocalsTimesBlocks", 2_000, func(b *budget, n int) { b.LocalsTimesBlocks = 500*n + 499 },
			func(n int) []byte { return module(functions(1, join(x("01 f403 7f"), times(n, "0240 0b"), x("0b")))) },
			"code section: function 0: block: 500 locals times %[1]d blocks, at most "},
		{"LocalsTimesLoops", 400, func(b *budget, n int) { b.LocalsTimesLoops = 500*n + 499 },
			func(n int) []byte { return module(functions(1, join(x("01 f403 7f"), times(n, "0340 0b"), x("0b")))) },
			"code section: function 0: loop: 500 locals times %[1]d loops, at most "},
		{"BranchTargets", 20_000, func(b *budget, n int) { b.BranchTargets = n },
			func(n int) []byte { return inBody(brTable(n/2), brTable(n-n/2)) },
			"code section: function 0: br_table: %d targets in the function, at most %d"},
		{"Values", 100_000, func(b *budget, n int) { b.Values = n }, passing,
			": %d values passed, at most %d"},
		{"BulkOperations", 1_000, func(b *budget, n int) { b.BulkOperations = n },
			func(n int) []byte { return inBody(times(n-1, "4100 4100 4100 fc0a0000"), x("4100 4100 4100 fc0b00")) },
			"code section: function 0: memory.fill: %d bulk operations, at most %d"},
	}
}

// Each limit takes a module that is at it and refuses one that is one over it,
// by default and when it is set.
func TestD12_EveryLimitAtNAndAtOneMore(t *testing.T) {
	for _, l := range limits() {
		t.Run(l.name, func(t *testing.T) {
			l.hit(t, wasmbin.Budget{}, l.standard)
			const few = 30
			var b wasmbin.Budget
			l.set(&b, few)
			l.hit(t, b, few)
		})
	}
}

func (l limit) hit(t *testing.T, b wasmbin.Budget, n int) {
	t.Helper()
	if _, err := wasmbin.Check(l.build(n), b); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := wasmbin.Check(l.build(n+1), b)
	if want := fmt.Sprintf(l.want, n+1, n); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("over the limit: got  %v\nwant %s", err, want)
	}
}

func TestEveryBudgetFieldIsListed(t *testing.T) {
	var listed []string
	for _, l := range limits() {
		listed = append(listed, l.name)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[wasmbin.Budget]()) {
		if !slices.Contains(listed, field.Name) {
			t.Errorf("no module hits %s", field.Name)
		}
	}
}

func TestNegativeBudgetAllowsNothing(t *testing.T) {
	for _, b := range []wasmbin.Budget{{FileBytes: -1}, {Types: -1}} {
		if _, err := wasmbin.Check(module(section(1, x("00"))), b); err == nil || !strings.Contains(err.Error(), "at most -1") {
			t.Errorf("%v", err)
		}
	}
}

func TestD12_OtherWaysOverALimit(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		want string
	}{
		{"element segments", module(section(9, repeat(200_001, x("01 00 00")))), "element section: 200001 segments, at most 200000"},
		{"data count", join(module(section(12, u(200_001))), make([]byte, 200_001)), "data count section: 200001 segments, at most 200000"},
		{"bodies", module(section(10, repeat(50_001, x("02 00 0b")))), "code section: 50001 bodies, at most 50000"},
		{"params_100k", module(section(1, x("01 60"), repeat(100_000, x("7f")), repeat(100_000, x("7f")))),
			"type section: type 0: 100000 parameters, at most 1000"},
		{"locals_50k_x_2000", module(functions(2_000, x("01 d08603 7f 0b"))), "code section: function 0: 50000 locals, at most 2000"},
		{"locals, 2^32 times 2^32", module(functions(1, x("02 ffffffff0f 7f ffffffff0f 7f 0b"))),
			"code section: function 0: 8589934590 locals, at most 2000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := wasmbin.Check(tt.b, wasmbin.Budget{}); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestD14_MemoryMinimum(t *testing.T) {
	refused(t, x("0061736d0100000005050100808004"),
		"memory section: memory 0: starts with 65536 pages of 64 KiB, at most 1024 (at offset 0xc)")
	four := wasmbin.Budget{MemoryBytes: 1 << 40} // 32 bits address no more than 4 GiB
	_, err := wasmbin.Check(module(section(5, x("01 00 818004"))), four)
	if err == nil || !strings.Contains(err.Error(), "starts with 65537 pages of 64 KiB, at most 65536") {
		t.Error(err)
	}
	if m := check(t, module(section(5, x("01 00 01")))); m.Memory.HasMax || m.Memory.Min != 1 {
		t.Errorf("%+v", m.Memory)
	}
}

// allocated returns how many bytes f allocates. Nothing else may run meanwhile.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Checking and stripping allocate at most four times the file plus 1 MiB,
// whatever the file says.
func TestAllocationIsBoundedByTheFile(t *testing.T) {
	for name, b := range demanding() {
		t.Run(name, func(t *testing.T) {
			got := allocated(func() {
				if m, err := wasmbin.Check(b, wasmbin.Budget{}); err == nil {
					m.Stripped()
				}
			})
			if most := uint64(4*len(b) + 1<<20); got > most {
				t.Errorf("%d bytes for a file of %d, at most %d", got, len(b), most)
			}
		})
	}
}

// demanding are modules that ask for much: each limit at it and one over it,
// lying counts, and large things that are allowed.
func demanding() map[string][]byte {
	all := map[string][]byte{"like a Go guest": likeGo()}
	for _, l := range limits() {
		all[l.name] = l.build(l.standard)
		all[l.name+", one more"] = l.build(l.standard + 1)
	}
	for id := range byte(14) {
		all[fmt.Sprintf("count of section %d", id)] = join(module(), []byte{id}, x("05ffffffff0f"))
	}
	many := bytes.Repeat(custom("", nil), 4<<20)
	all["custom sections"] = module(many)
	all["types of 1,000 and 1,000"] = module(section(1, repeat(2_000, join(x("60"), repeat(1_000, x("7f")), repeat(1_000, x("7f"))))))
	all["a long name"] = module(section(1, x("01"), empty), section(2, x("01"), name(strings.Repeat("n", 8<<20)), x("00 00 00")))
	all["long names of exports"] = module(section(5, x("01 00 00")), section(7, x("01"), name(strings.Repeat("n", 8<<20)), x("02 00")))
	all["our custom sections"] = module(customs(8, wasmbin.MaxCustomBytes))
	all["entries of a segment"] = module(section(1, x("01"), empty), section(2, x("01 00 00 00 00")), section(9, x("01 01 00"), repeat(4<<20, x("00"))))
	all["a name that is not UTF-8"] = module(section(2, x("01"), name(strings.Repeat("\xff", 8<<20))))
	return all
}

// likeGo is a module of 3 MB in the shape of a Go guest: thousands of
// functions, one data segment for each run of bytes, a long name section.
func likeGo() []byte {
	body := join(x("01 05 7f"), bytes.Repeat(x("01"), 596), x("0b"))
	segment := join(x("00 41 80 80 04 0b"), name(strings.Repeat("d", 24)))
	return module(
		section(1, repeat(30, x("60 02 7f 7e 01 7c"))), section(2, repeat(20, join(name("wasi_snapshot_preview1"), name("fd_write"), x("00 00")))),
		section(3, repeat(3_000, x("00"))), section(4, x("01 70 00 8020")), section(5, x("01 00 20")), section(6, repeat(8, x("7f 01 41 00 0b"))),
		section(7, x("02"), name("memory"), x("02 00"), name("call"), x("00 20")),
		section(9, x("01 00 41 00 0b"), repeat(3_000, x("00"))),
		section(10, repeat(3_000, join(u(len(body)), body))), section(11, repeat(20_000, segment)),
		custom("name", bytes.Repeat([]byte("runtime.main"), 50_000)),
	)
}

func BenchmarkCheck(b *testing.B) {
	wasm := likeGo()
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wasmbin.Check(wasm, wasmbin.Budget{}); err != nil {
			b.Fatal(err)
		}
	}
}
