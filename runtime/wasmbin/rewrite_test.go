package wasmbin_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// metered are modules that have what a meter needs to see.
func metered() [][]byte {
	all := [][]byte{numbered(), segmented(x("00 4100 0b 01 61"), x("00 4102 0b 01 62"))}
	for _, code := range []string{
		"0340 0c00 0b 0b", "0340 0f 0b 0b", "0240 0340 0c01 0b 0b 0b", "0340 0340 4100 0d01 0c02 0b 0b 0b", "0340 4100 0e03 00 01 01 00 0b 0b",
		"0240 0340 4100 0e03 00 01 02 02 0b 0b 0b", "0340 1000 0c00 0b 0b", "1001 0b", "0340 1001 4100 0d00 0b 0b", "0440 0f 0b 0b",
		"0340 4100 4100 4100 fc0b00 0c00 0b 0b", "0340 4100 4000 1a 0c00 0b 0b", "0340 4100 110000 0b 0b",
	} {
		all = append(all, full(x(code)))
	}
	return all
}

// numbered has functions 0, which is imported, and 1, named wherever one can be.
func numbered() []byte {
	return module(
		section(1, x("02 60 00 00 60 00 01 7f")),
		section(2, x("01"), name("spectest"), name("print"), x("00 00")),
		section(3, x("02 00 01")),
		section(4, x("01 70 00 0a")),
		section(6, x("01 70 00 d201 0b")),
		section(7, x("02"), name("f"), x("00 02"), name("print"), x("00 00")),
		section(8, x("01")),
		section(9, x("08  00 4100 0b 01 01  01 00 01 00  02 00 4101 0b 00 02 01 02  03 00 01 02"+
			"04 4104 0b 01 d201 0b  05 70 01 d202 0b  06 00 4105 0b 70 01 d200 0b  07 70 01 d201 0b")),
		section(10, x("02 02 00 0b 0b 00 1000 1001 d202 1a 4107 0b")),
	)
}

// segmented has a page of memory and these data segments.
func segmented(segments ...[]byte) []byte {
	return module(section(5, x("01 00 01")), section(11, u(len(segments)), join(segments...)))
}

// sections returns the bodies of a module's sections.
func sections(t *testing.T, b []byte) map[byte][]byte {
	t.Helper()
	bodies := map[byte][]byte{}
	for b = b[8:]; len(b) > 0; {
		size, n := binary.Uvarint(b[1:])
		bodies[b[0]] = b[1+n : 1+n+int(size)]
		b = b[1+n+int(size):]
	}
	return bodies
}

// become checks what a module's sections are once it is rewritten, by their ids.
func become(t *testing.T, in []byte, want map[byte]string) {
	t.Helper()
	got := sections(t, rewritten(t, check(t, in)).Wasm)
	for id, digits := range want {
		if !bytes.Equal(got[id], x(digits)) {
			t.Errorf("section %d\ngot  %x\nwant %s", id, got[id], strings.ReplaceAll(digits, " ", ""))
		}
	}
}

// What is added to a module that has nothing: types, the import, functions of which
// the first two ask for fuel and the rest charge by a length, globals, exports.
func TestRewriteAddsToNothing(t *testing.T) {
	check := "2300 4200 59 0440 05 1001 0b"
	become(t, module(), map[byte]string{
		1: "04 60027e7e017e 600000 60017e017e 60017f017f",
		2: "01 0b 68757463683a6d65746572 04 7469636b 00 00",
		3: "04 01 02 03 03",
		6: "02 7e01 4200 0b 7e01 4280808001 0b",
		7: "02 0a 68757463683a6675656c 0300 0b 68757463683a737461636b 0301",
		10: "04 0a 00 2300 2301 1000 2400 0b  08 00 2000 2301 1000 0b" +
			"26 00 2300 2000 41808004 2000 41808004 49 1b ad 4203 88 7d 2400" + check + "2000 0b" +
			"26 00 2300 2000 41808004 2000 41808004 49 1b ad 4206 86 7d 2400" + check + "2000 0b",
	})
}

// The code of a function with a local of its own, in a module where fuel is global 1,
// the stack is global 2, and the helpers begin with function 2.
func TestRewriteBodies(t *testing.T) {
	const (
		ask   = "4200 59 0440 05 1002 0b"           // of the global
		fill  = "4200 59 0440 05 2001 1003 2101 0b" // of local 1
		local = "02 01 7f 01 7e"
	)
	tests := []struct{ name, code, want string }{
		{"empty", "0b", "01 01 7f 2301 4200 7d 2401 2301" + ask + "0b"},
		{"return", "0f 0b", "01 01 7f 2301 4201 7d 2401 2301" + ask + "0f 0b"},
		{"call", "1000 0b", "01 01 7f 2301 4201 7d 2401 2301 2302 4211 7d 2402 2302 84" + ask + "0240 1001 0b 2302 426f 7d 2402 0b"},
		{"call and return", "2000 0440 0f 0b 1000 0b", "01 01 7f 2301 4202 7d 2401 2301 2302 4211 7d 2402 2302 84" + ask +
			"0240 2000 0440 2301 4201 7d 2401 0c01 0b 2301 4201 7d 2401 1001 0b 2302 426f 7d 2402 0b"},
		{"call_indirect", "4100 110000 0b", "01 01 7f 2301 4202 7d 2401 2301 2302 4211 7d 2402 2302 84" + ask +
			"0240 4100 110000 0b 2302 426f 7d 2402 0b"},
		{"loop", "0340 2000 0d00 0b 0b", local + "2301 4200 7d 2201" + fill + "0240" +
			"0340 2001 4202 7d 2201" + fill + "2000 0d00 0b  0b 2001 2401 0b"},
		{"out of a loop", "0240 0340 2000 0d01 0f 0b 0b 0b", local + "2301 4200 7d 2201" + fill + "0240 0240" +
			"0340 2001 4203 7d 2201" + fill + "2000 0d01 0c02 0b 0b  0b 2001 2401 0b"},
		{"table of a loop", "0240 0340 2000 0e02 00 01 02 0b 0b 0b", local + "2301 4200 7d 2201" + fill + "0240 0240" +
			"0340 2001 4202 7d 2201" + fill + "2000 0e02 00 01 02 0b 0b  0b 2001 2401 0b"},
		{"loop in a loop", "0340 0340 0c01 0b 0b 0b", local + "2301 4200 7d 2201" + fill + "0240" +
			"0340 2001 4200 7d 2201" + fill + "0340 2001 4201 7d 2201" + fill + "0c01 0b 0b  0b 2001 2401 0b"},
		{"loop with a call", "0340 1000 0c00 0b 0b", local + "2301 4200 7d 2201 2302 4211 7d 2402 2302 84" + fill +
			"0240 0340 2001 4202 7d 2201" + fill + "2001 2401 1001 2301 2101 0c00 0b 0b 2001 2401 2302 426f 7d 2402 0b"},
		{"loop and a call", "0340 0b 1000 0b", local + "2301 4201 7d 2201 2302 4211 7d 2402 2302 84" + fill + "0240" +
			"0340 2001 4200 7d 2201" + fill + "0b  2001 2401 1001 2301 2101  0b 2001 2401 2302 426f 7d 2402 0b"},
		{"fill", "4100 4100 4100 fc0b00 0b", "01 01 7f 2301 4218 7d 2401 2301" + ask + "4100 4100 4100 1006 fc0b00 0b"},
		{"fill and a loop", "0340 0b 4100 4100 4100 fc0b00 0b", local + "2301 4218 7d 2201" + fill + "0240" +
			"0340 2001 4200 7d 2201" + fill + "0b 4100 4100 4100 2001 2401 1006 2301 2101 fc0b00 0b 2001 2401 0b"},
		{"copy", "4100 4100 4100 fc0a0000 0b", "01 01 7f 2301 4218 7d 2401 2301" + ask + "4100 4100 4100 1007 fc0a0000 0b"},
		{"init", "4100 4100 4100 fc080000 0b", "01 01 7f 2301 4218 7d 2401 2301" + ask + "4100 4100 4100 1008 fc080000 0b"},
		{"table.fill", "4100 d070 4100 fc1100 0b", "01 01 7f 2301 4218 7d 2401 2301" + ask + "4100 d070 4100 1004 fc1100 0b"},
		{"switch", "0340 0240 0240 2000 0e01 00 01 0b 01 0c01 0b 01 01 0c00 0b 0b", local + "2301 4200 7d 2201" + fill + "0240" +
			"0340 2001 4202 7d 2201" + fill + "0240 0240 2000 0e01 00 01 0b 2001 4202 7d 2101 01 0c01 0b 2001 4203 7d 2101 01 01 0c00 0b  0b 2001 2401 0b"},
		{"memory.grow", "4100 4000 1a 0b", "01 01 7f 2301 4217 7d 2401 2301" + ask + "4100 1005 4000 1a 0b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := sections(t, rewritten(t, check(t, full(x(tt.code)))).Wasm)[10]
			want := x(tt.want)
			if want = join(x("0b"), u(len(want)), want); !bytes.HasPrefix(got, want) {
				t.Errorf("got  %x\nwant %x", got[:min(len(got), len(want))], want)
			}
		})
	}
}

// Wherever a function can be named, the one that is meant is another one now.
func TestRewriteNumbersFunctionsAnew(t *testing.T) {
	become(t, numbered(), map[byte]string{
		4: "01 70 01 0a 808004",
		6: "03 70 00 d202 0b 7e01 4200 0b 7e01 4280808001 0b",
		8: "02",
		9: "08  00 4100 0b 01 02  01 00 01 00  02 00 4101 0b 00 02 02 03  03 00 01 03" +
			"04 4104 0b 01 d202 0b  05 70 01 d203 0b  06 00 4105 0b 70 01 d200 0b  07 70 01 d202 0b",
	})
	out := sections(t, rewritten(t, check(t, numbered())).Wasm)
	if want := join(x("05"), name("f"), x("00 03"), name("print"), x("00 00")); !bytes.HasPrefix(out[7], want) {
		t.Errorf("exports %x, want first %x", out[7], want)
	}
	if want := x("1000 1002 d203 1a 4107 0b"); !bytes.Contains(out[10], want) {
		t.Errorf("code %x, want in it %x", out[10], want)
	}
}

func TestRewriteMergesSegments(t *testing.T) {
	far := x("00 4187040b 01 63") // at 519, 517 behind what ends at 2
	tests := []struct {
		name, want string
		segments   [][]byte
	}{
		{"side by side", "01 00 4100 0b 02 6162", [][]byte{x("00 4100 0b 01 61"), x("02 00 4101 0b 01 62")}},
		{"with a gap", "01 00 4100 0b 04 61000062", [][]byte{x("00 4100 0b 01 61"), x("00 4103 0b 01 62")}},
		{"far from each other", "02 00 4100 0b 02 6162 00 4187040b 01 63", [][]byte{x("00 4100 0b 01 61"), x("00 4101 0b 01 62"), far}},
		{"mostly gaps", "02 00 4100 0b 01 61 00 41c801 0b 01 62", [][]byte{x("00 4100 0b 01 61"), x("00 41c801 0b 01 62")}},
		{"over each other", "02 00 4100 0b 02 6162 00 4101 0b 01 63", [][]byte{x("00 4100 0b 02 6162"), x("00 4101 0b 01 63")}},
		{"out of order", "02 00 4101 0b 01 62 00 4100 0b 01 61", [][]byte{x("00 4101 0b 01 62"), x("00 4100 0b 01 61")}},
		{"a passive one", "02 00 4100 0b 01 61 01 01 62", [][]byte{x("00 4100 0b 01 61"), x("01 01 62")}},
		{"behind the memory", "02 00 4100 0b 01 61 00 4180 8004 0b 01 62", [][]byte{x("00 4100 0b 01 61"), x("00 4180 8004 0b 01 62")}},
		{"at its end", "01 00 41ffff03 0b 01 62", [][]byte{x("00 41ffff03 0b 01 62"), x("00 4180 8004 0b 00")}},
		{"below zero", "02 00 4100 0b 01 61 00 417f 0b 01 62", [][]byte{x("00 4100 0b 01 61"), x("00 417f 0b 01 62")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { become(t, segmented(tt.segments...), map[byte]string{11: tt.want}) })
	}
	used := module(section(1, x("01"), empty), section(3, x("01 00")), section(5, x("01 00 01")), section(12, x("02")),
		section(10, x("01 05 00 fc0900 0b")), section(11, x("02 00 4100 0b 01 61 00 4101 0b 01 62")))
	become(t, used, map[byte]string{11: "02 00 4100 0b 01 61 00 4101 0b 01 62", 12: "02"})
	unused := module(section(5, x("01 00 01")), section(12, x("02")), section(11, x("02 00 4100 0b 01 61 00 4101 0b 01 62")))
	become(t, unused, map[byte]string{11: "01 00 4100 0b 02 6162", 12: "01"})
}

// What a copy of the state needs is exported, and what it would miss is told.
func TestRewriteTellsOfState(t *testing.T) {
	out := rewritten(t, check(t, full(x("4100 d070 2600 fc0900 0b"))))
	if got, want := fmt.Sprint(out.Mutable, out.ChangesTables, out.DropsData), "[{0 i32}] true true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m, err := wasmbin.Check(out.Wasm, wide)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range m.Exports {
		names = append(names, fmt.Sprint(e.Kind, " ", e.Index, " ", e.Name))
	}
	want := "global 1 hutch:fuel, global 2 hutch:stack, memory 0 hutch:memory, table 0 hutch:table.0, table 1 hutch:table.1, global 0 hutch:global.0"
	if got := strings.Join(names, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if out := rewritten(t, check(t, good())); out.ChangesTables || out.DropsData || len(out.Mutable) != 1 {
		t.Errorf("%v", out.Mutable)
	}
}

// A name that is added is nobody else's.
func TestRewriteRefusesReservedNames(t *testing.T) {
	tests := map[string][]byte{
		`export section: export 0: "hutch:fuel": names that begin with "hutch:" are reserved, choose another one`: module(
			section(6, x("01 7e 01 4200 0b")), section(7, x("01"), name("hutch:fuel"), x("03 00"))),
		`export section: export 0: "hutch:": names that begin with "hutch:" are reserved, choose another one`: module(
			section(6, x("01 7e 01 4200 0b")), section(7, x("01"), name("hutch:"), x("03 00"))),
		`import section: import 0: "hutch:meter" "tick": the module is reserved, nothing can be imported from it`: module(
			section(1, x("01 60 02 7e7e 01 7e")), section(2, x("01"), name("hutch:meter"), name("tick"), x("00 00"))),
	}
	for want, b := range tests {
		_, err := check(t, b).Rewrite(wasmbin.Rewriting{})
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if err := check(t, good()).Reserved(); err != nil {
		t.Error(err)
	}
}

// Past what a module has, nothing is there to name, though something will be.
func TestRewriteLeavesNothingToName(t *testing.T) {
	for name, code := range map[string]string{
		"fuel": "2301 1a 0b", "stack": "4200 2402 0b", "the meter": "1001 0b", "a helper": "1002 0b", "its reference": "d201 1a 0b",
		"a type": "4100 110100 0b", "the local": "0340 2001 1a 0b 0b",
	} {
		if _, err := wasmbin.Check(full(x(code)), wasmbin.Budget{}); err == nil || !strings.Contains(err.Error(), "but there are only") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// spent returns what a call in a new instance burns, for the given engine.
func spent(t *testing.T, wasm []byte, config wazero.RuntimeConfig) int64 {
	t.Helper()
	w := newWorld(t, config)
	m, trap := w.start(t, rewritten(t, check(t, wasm)).Wasm, "")
	if trap != "" {
		t.Fatal(trap)
	}
	if r, ok := w.call(t, m, "f", nil); !ok || r.trap != "" {
		t.Fatalf("%v %v", r, ok)
	}
	return w.used()
}

// exported is a module with a memory and a table whose one function, with an i32 of
// its own, is exported.
func exported(code ...[]byte) []byte {
	body := join(x("01 01 7f"), join(code...))
	return module(section(1, x("01"), empty), section(3, x("01 00")), section(4, x("01 70 01 01 808004")), section(5, x("01 01 01 10")),
		section(7, x("01"), name("f"), x("00 00")), section(10, x("01"), u(len(body)), body))
}

// What code costs, in both engines, each time.
func TestRewriteCosts(t *testing.T) {
	tests := []struct {
		name, code string
		want       int64
	}{
		{"nothing", "0b", 0},
		{"straight", "01 01 01 0b", 3},
		{"a hundred turns", "41e400 2100 0340 2000 4101 6b 2200 0d00 0b 0b", 2 + 100*5},
		{"turns of a loop in a loop", "410a 2100 0340 0340 0b 2000 4101 6b 2200 0d00 0b 0b", 2 + 10*5},
		{"64 KiB filled", "4100 4100 41808004 fc0b00 0b", 4 + 20 + 1024},
		{"nothing filled", "4100 4100 4100 fc0b00 0b", 4 + 20},
		{"64 KiB moved", "4100 4100 41808004 fc0a0000 0b", 4 + 20 + 1024},
		{"two pages more", "4102 4000 1a 0b", 3 + 20 + 2*64},
		{"too many pages more", "417f 4000 1a 0b", 3 + 20 + 65536*64},
		{"80 entries more", "d070 41d000 fc0f00 1a 0b", 4 + 20 + 10},
		{"too many entries more", "d070 417f fc0f00 1a 0b", 4 + 20 + 65536/8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wasm := exported(x(tt.code))
			for range 2 {
				compiled, interpreted := spent(t, wasm, wazero.NewRuntimeConfigCompiler()), spent(t, wasm, wazero.NewRuntimeConfigInterpreter())
				if compiled != tt.want || interpreted != tt.want {
					t.Errorf("burns %d, interpreted %d, want %d", compiled, interpreted, tt.want)
				}
			}
		})
	}
}

// BenchmarkRewriteGuest is what rewriting takes, and how many bytes it adds.
func BenchmarkRewriteGuest(b *testing.B) {
	for _, path := range guests(b) {
		wasm := read(b, path)
		m, err := wasmbin.Check(wasm, wasmbin.Budget{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.SetBytes(int64(len(wasm)))
			b.ReportAllocs()
			for b.Loop() {
				out, err := m.Rewrite(wasmbin.Rewriting{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(out.Wasm))/float64(len(m.Stripped())), "times-size")
			}
		})
	}
}

// atLimits are modules at each limit of the default budget, by its name.
func atLimits(t *testing.T) map[string]*wasmbin.Module {
	t.Helper()
	all := map[string]*wasmbin.Module{}
	for _, l := range limits() {
		wasm := l.Build(l.Standard)
		all[l.Name] = check(t, wasm)
		var less wasmbin.Budget
		l.set(&less, l.Standard-1)
		if _, err := wasmbin.Check(wasm, less); err == nil {
			t.Errorf("%s: not at the limit", l.Name)
		}
	}
	return all
}

// A module at each limit is valid once it is rewritten, and as large as is said of it.
func TestD12_MeteredAtEachLimit(t *testing.T) {
	engine := judge(t, 0)
	for name, m := range atLimits(t) {
		if err := engine(m.Stripped()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		out := rewritten(t, m)
		if err := engine(out.Wasm); err != nil {
			t.Errorf("%s, rewritten: %v", name, err)
		}
		most := wide
		most.FileBytes, most.BodyBytes = wasmbin.MeteredTimes*16<<20, wasmbin.MeteredTimes*512<<10
		most.Locals, most.Blocks, most.Nesting = 2_000+1, 6_000+2+500, 5_000+2
		if _, err := wasmbin.Check(out.Wasm, most); err != nil {
			t.Errorf("%s, rewritten: %v", name, err)
		}
	}
}

// What becomes too large with a meter is refused, though it was not before.
func TestD12_TooLargeWithAMeter(t *testing.T) {
	calls := func(n int) []byte { return join(x("00 0340 0b"), times(n, "1000"), x("0b")) }
	tests := []struct {
		name string
		wasm []byte
		most wasmbin.Budget
		want string
	}{
		{"function", module(functions(2, calls(200_000))), wasmbin.Budget{},
			"code section: function 0: 2000073 bytes of code with a meter, at most 1048576 (at offset 0x61aa5)"},
		{"file", module(functions(200, calls(100))), wasmbin.Budget{FileBytes: 50_000}, "file: 216140 bytes with a meter, at most 100000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wasmbin.Check(tt.wasm, tt.most)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Rewrite(wasmbin.Rewriting{})
			if err == nil || err.Error() != tt.want || out != nil {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
