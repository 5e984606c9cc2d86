package sandbox

import (
	"context"
	"slices"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// reentered exports call and again, which call env.back with their parameter;
// double, trap and forever; get, which returns global 0; and deep, which calls itself
// as often as its parameter says.
func reentered() []byte {
	section := func(id byte, items ...string) []byte {
		body := []byte{byte(len(items))}
		for _, i := range items {
			body = append(body, i...)
		}
		return append([]byte{id, byte(len(body))}, body...)
	}
	export := func(name, index string) string { return string(rune(len(name))) + name + "\x00" + index }
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, "\x60\x01\x7f\x01\x7f", "\x60\x00\x01\x7f"),
		section(2, "\x03env\x04back\x00\x00"),
		section(3, "\x00", "\x00", "\x00", "\x00", "\x01", "\x00"),
		section(6, "\x7f\x01\x41\x05\x0b", "\x7e\x01\x42\x05\x0b", "\x7f\x00\x41\x05\x0b"),
		section(7, export("call", "\x01"), export("again", "\x01"), export("double", "\x02"), export("trap", "\x03"), export("forever", "\x04"), export("get", "\x05"), export("deep", "\x06")),
		section(10, "\x06\x00\x20\x00\x10\x00\x0b", "\x07\x00\x20\x00\x41\x02\x6c\x0b", "\x03\x00\x00\x0b", "\x08\x00\x03\x40\x0c\x00\x0b\x00\x0b", "\x04\x00\x23\x00\x0b",
			"\x12\x00\x20\x00\x45\x04\x7f\x41\x00\x05\x20\x00\x41\x01\x6b\x10\x06\x0b\x0b"),
	)
}

// back reenters the guest in the way that its parameter says.
func back(ctx context.Context, in *Instance, stack []uint64) {
	exports := [...]string{"double", "again", "trap", "forever", "missing"}
	argument := uint64(0)
	if n := uint32(stack[0]); n == 0 {
		argument = 21
	}
	stack[0] = in.Reenter(ctx, exports[uint32(stack[0])], argument)[0]
}

func TestReenter(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		i32 := []wasmbin.ValueType{wasmbin.I32}
		o.Hosts = []HostModule{{Name: "env", Funcs: []HostFunc{{"back", wasmbin.FuncType{Params: i32, Results: i32}, back}}}}
		o.Limits = abi.Limits{Fuel: 1_000_000}
		m := compiled(t, reentered(), o)
		for how, want := range []string{
			"",
			"trap: trapped: it calls the host while the host calls it",
			"trap: trapped: unreachable",
			"limit: more than 1000000 units of fuel were burned (limits.fuel)",
			`module: export "missing" is missing`,
		} {
			in, err := m.Instantiate(t.Context(), Config{})
			if err != nil {
				t.Fatal(err)
			}
			results, err := in.Call(t.Context(), "call", uint64(how))
			if err == nil && want == "" {
				if uint32(results[0]) != 42 {
					t.Errorf("%d: got %d", how, results[0])
				}
			} else if got := errorText(err); got != want {
				t.Errorf("%d: got %q, want %q", how, got, want)
			}
			closed(t, in)
		}
	})
}

func TestSetGlobal(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		i32 := []wasmbin.ValueType{wasmbin.I32}
		o.Hosts = []HostModule{{Name: "env", Funcs: []HostFunc{{"back", wasmbin.FuncType{Params: i32, Results: i32}, back}}}}
		in, err := compiled(t, reentered(), o).Instantiate(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, in)
		for index, want := range []bool{true, false, false, false} { // an i64, one that does not change, none
			if got := in.SetGlobal(index, 7); got != want {
				t.Errorf("global %d: set %t", index, got)
			}
		}
		if results, err := in.Call(t.Context(), "get"); err != nil || uint32(results[0]) != 7 {
			t.Errorf("got %v, %v", results, err)
		}
	})
}

func TestStackUnits(t *testing.T) {
	i32 := []wasmbin.ValueType{wasmbin.I32}
	hosts := []HostModule{{Name: "env", Funcs: []HostFunc{{"back", wasmbin.FuncType{Params: i32, Results: i32}, back}}}}
	for units, want := range map[int64]string{
		50 * wasmbin.FrameUnits:  "limit: stack overflow: calls are nested too deeply (the engine's stack limit)",
		200 * wasmbin.FrameUnits: "no error",
	} {
		in, err := compiled(t, reentered(), Options{Hosts: hosts, StackUnits: units}).Instantiate(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, in)
		if _, err := in.Call(t.Context(), "deep", 100); errorText(err) != want {
			t.Errorf("%d: got %v, want %s", units, err, want)
		}
	}
}

// What the guest burns while the host calls it again is kept by a function that counts
// in a local, as one with a loop does.
func TestReenterBurnsFuel(t *testing.T) {
	const inside = 1000
	b, name := wasmbintest.Hex, wasmbintest.Name
	guest := wasmbintest.Module(
		wasmbintest.Section(1, b("01 60 01 7f 01 7f")),
		wasmbintest.Section(2, wasmbintest.Vector(wasmbintest.Join(name("env"), name("back"), b("00 00")))),
		wasmbintest.Section(3, b("02 00 00")),
		wasmbintest.Section(7, wasmbintest.Vector(wasmbintest.Join(name("outer"), b("00 01")), wasmbintest.Join(name("inner"), b("00 02")))),
		wasmbintest.Section(10, wasmbintest.Vector(
			// each counts its parameter down to 0, outer calls env.back meanwhile
			wasmbintest.Func(b("00"), b("0340 2000 1000 1a 2000 4101 6b 2200 0d00 0b 4100")),
			wasmbintest.Func(b("00"), b("0340 2000 4101 6b 2200 0d00 0b 4100")))),
	)
	both(t, func(t *testing.T, o Options) {
		i32 := []wasmbin.ValueType{wasmbin.I32}
		o.Hosts = []HostModule{{Name: "env", Funcs: []HostFunc{{"back", wasmbin.FuncType{Params: i32, Results: i32},
			func(ctx context.Context, in *Instance, stack []uint64) { in.Reenter(ctx, "inner", inside) }}}}}
		m := compiled(t, guest, o)
		var burned []int64
		for n := range uint64(3) {
			in, err := m.Instantiate(t.Context(), Config{})
			if err != nil {
				t.Fatal(err)
			}
			before := in.Fuel()
			if _, err := in.Call(t.Context(), "outer", n+1); err != nil {
				t.Fatal(err)
			}
			burned = append(burned, in.Fuel()-before)
			closed(t, in)
		}
		if once, again := burned[1]-burned[0], burned[2]-burned[1]; once != again || burned[0] < 4*inside || once < 4*inside {
			t.Errorf("burned %v in one, two and three turns", burned)
		}
	})
}
