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

// A limit is one field of a budget with modules that hit it, how to set it, and what
// is said about one that has too many.
type limit struct {
	wasmbintest.Limit
	set  func(b *wasmbin.Budget, n int)
	want string // found and allowed are filled in
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

// limits lists every field of a budget; TestEveryBudgetFieldIsListed holds it.
func limits() (all []limit) {
	type budget = wasmbin.Budget
	fields := map[string]limit{
		"FileBytes":         {set: func(b *budget, n int) { b.FileBytes = n }, want: "file: %d bytes, at most %d"},
		"Types":             {set: func(b *budget, n int) { b.Types = n }, want: "type section: %d types, at most %d"},
		"Params":            {set: func(b *budget, n int) { b.Params = n }, want: "type section: type 0: %d parameters, at most %d"},
		"Results":           {set: func(b *budget, n int) { b.Results = n }, want: "type section: type 0: %d results, at most %d"},
		"Imports":           {set: func(b *budget, n int) { b.Imports = n }, want: "import section: %d imports, at most %d"},
		"Functions":         {set: func(b *budget, n int) { b.Functions = n }, want: "function section: %d functions, at most %d"},
		"Tables":            {set: func(b *budget, n int) { b.Tables = n }, want: "table section: %d tables, at most %d"},
		"TableEntries":      {set: func(b *budget, n int) { b.TableEntries = n }, want: "table section: table 0: starts with %d entries, at most %d"},
		"MemoryBytes":       {set: func(b *budget, n int) { b.MemoryBytes = int64(n)*65_536 + 65_535 }, want: "memory section: memory 0: starts with %d pages of 64 KiB, at most %d"},
		"Globals":           {set: func(b *budget, n int) { b.Globals = n }, want: "global section: %d globals, at most %d"},
		"Exports":           {set: func(b *budget, n int) { b.Exports = n }, want: "export section: %d exports, at most %d"},
		"Segments":          {set: func(b *budget, n int) { b.Segments = n }, want: "data section: %d segments, at most %d"},
		"BodyBytes":         {set: func(b *budget, n int) { b.BodyBytes = n }, want: "code section: function 0: %d bytes of code, at most %d"},
		"Locals":            {set: func(b *budget, n int) { b.Locals = n }, want: "code section: function 0: %d locals, at most %d"},
		"ModuleLocals":      {set: func(b *budget, n int) { b.ModuleLocals = n }, want: ": %d locals in the module, at most %d"},
		"Nesting":           {set: func(b *budget, n int) { b.Nesting = n }, want: "code section: function 0: block: %d nested blocks, at most %d"},
		"Blocks":            {set: func(b *budget, n int) { b.Blocks = n }, want: "code section: function 0: if: %d blocks, at most %d"},
		"Loops":             {set: func(b *budget, n int) { b.Loops = n }, want: "code section: function 0: loop: %d loops, at most %d"},
		"LoopNesting":       {set: func(b *budget, n int) { b.LoopNesting = n }, want: "code section: function 0: loop: %d nested loops, at most %d"},
		"LocalsTimesBlocks": {set: func(b *budget, n int) { b.LocalsTimesBlocks = 500*n + 499 }, want: "code section: function 0: block: 500 locals times %[1]d blocks, at most "},
		"LocalsTimesLoops":  {set: func(b *budget, n int) { b.LocalsTimesLoops = 500*n + 499 }, want: "code section: function 0: loop: 500 locals times %[1]d loops, at most "},
		"BranchTargets":     {set: func(b *budget, n int) { b.BranchTargets = n }, want: "code section: function 0: br_table: %d targets in the function, at most %d"},
		"Values":            {set: func(b *budget, n int) { b.Values = n }, want: ": %d values passed, at most %d"},
		"BulkOperations":    {set: func(b *budget, n int) { b.BulkOperations = n }, want: "code section: function 0: memory.fill: %d bulk operations, at most %d"},
	}
	for _, l := range wasmbintest.Limits() {
		all = append(all, limit{l, fields[l.Name].set, fields[l.Name].want})
	}
	return all
}

// Each limit takes a module that is at it and refuses one that is one over it,
// by default and when it is set.
func TestD12_EveryLimitAtNAndAtOneMore(t *testing.T) {
	for _, l := range limits() {
		t.Run(l.Name, func(t *testing.T) {
			l.hit(t, wasmbin.Budget{}, l.Standard)
			const few = 30
			var b wasmbin.Budget
			l.set(&b, few)
			l.hit(t, b, few)
		})
	}
}

func (l limit) hit(t *testing.T, b wasmbin.Budget, n int) {
	t.Helper()
	if _, err := wasmbin.Check(l.Build(n), b); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	_, err := wasmbin.Check(l.Build(n+1), b)
	if want := fmt.Sprintf(l.want, n+1, n); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("over the limit: got  %v\nwant %s", err, want)
	}
}

func TestEveryBudgetFieldIsListed(t *testing.T) {
	var listed []string
	for _, l := range limits() {
		listed = append(listed, l.Name)
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
		all[l.Name] = l.Build(l.Standard)
		all[l.Name+", one more"] = l.Build(l.Standard + 1)
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
