package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// E16: what a call was given, the next one does not find where it lay.
func TestE16_ArgumentsAreGone(t *testing.T) {
	const bufferAt, most = 16 * abi.PageBytes, 64
	old := dialecttest.Import("hutch:host", "output_write", "ii", "i", bufferAt, most)
	g := loaded(t, mod{Do: steps(old, dialecttest.Echo())}, Options{})
	for i, secret := range []string{"swordfish-1", "swordfish-2", "swordfish-3"} {
		got := answer(t, g, abi.Invocation{Arguments: json.RawMessage(`"` + secret + `"`)})
		if strings.Trim(got[:most], "\x00") != "" {
			t.Errorf("call %d finds %q", i, got[:most])
		}
		if !strings.Contains(got[most:], secret) {
			t.Errorf("call %d answers %q", i, got)
		}
	}
	if g.begun.Load().kept == nil {
		t.Error("no state was kept")
	}
}

// tabled is a guest whose call says whether its table is as it was, and changes it.
func tabled() []byte {
	b, name := wasmbintest.Hex, wasmbintest.Name
	return wasmbintest.Module(
		wasmbintest.Section(1, b("02 60 00 01 7f 60 02 7f7f 01 7f")),
		wasmbintest.Section(2, wasmbintest.Vector(wasmbintest.Join(name("hutch:host"), name("output_write"), b("00 01")))),
		wasmbintest.Section(3, b("02 00 00")),
		wasmbintest.Section(4, b("01 70 01 01 01")),
		wasmbintest.Section(5, b("01 00 01")),
		wasmbintest.Section(7, wasmbintest.Vector(
			wasmbintest.Join(name("memory"), b("02 00")), wasmbintest.Join(name("describe"), b("00 01")), wasmbintest.Join(name("call"), b("00 02")))),
		wasmbintest.Section(10, wasmbintest.Vector(
			wasmbintest.Func(b("00"), b("4100")),
			// memory[0] = '0' + (table[0] is null); table[0] = describe; write 1 byte
			wasmbintest.Func(b("00"), b("4100 4100 2500 d1 4130 6a 3a0000 4100 d201 2600 4100 4101 1000")))),
	)
}

// What begins each call in a kept state, what does not, and why.
func TestWhatStartsAnew(t *testing.T) {
	asks := steps(dialecttest.Op(abi.OpKVGet, 1, `{"key":"a"}`))
	most := int(abi.Limits{}.WithDefaults().MemoryBytes / abi.PageBytes)
	rest := most - firstPages(t, mod{}.Bytes())
	for _, tt := range []struct {
		name, anew string
		wasm       []byte
	}{
		{"nothing", "", mod{}.Bytes()},
		{"v1", "", mod{V1: true}.Bytes()},
		{"a start", "", mod{Start: steps(dialecttest.Print(1, "hello\n")), Initialize: steps(dialecttest.Grow(1))}.Bytes()},
		{"describing asks, which a v1 guest does not at first", "", mod{V1: true, Describe: asks}.Bytes()},
		{"a table", "its code changes tables", tabled()},
		{"_initialize asks", "it asks for what belongs to a call while it starts", mod{Initialize: asks}.Bytes()},
		{"start asks", "it asks for what belongs to a call while it starts", mod{Start: asks}.Bytes()},
		{"describing asks", "it asks for configuration or the host while it describes itself", mod{Describe: asks}.Bytes()},
		{"describing is configured", "it asks for configuration or the host while it describes itself", mod{Describe: steps(dialecttest.Config("city"))}.Bytes()},
		{"describing grows", "it takes more than half of its memory to describe itself", mod{Describe: steps(dialecttest.Grow(most / 2))}.Bytes()},
		{"describing grows to a page less than may be", "it takes more than half of its memory to describe itself", mod{Describe: steps(dialecttest.Grow(rest - 1))}.Bytes()},
		{"describing grows to what may be", "it takes more than half of its memory to describe itself", mod{Describe: steps(dialecttest.Grow(rest))}.Bytes()},
		{"describing grows to a page more", "it fails to describe itself", mod{Describe: steps(dialecttest.Grow(rest + 1))}.Bytes()},
		{"describing gets on without a page more", "it is refused memory while it describes itself", mod{Describe: steps(dialecttest.GrowInVain(rest + 1))}.Bytes()},
		{"describing grows to a page more, or traps", "it does not start without what a call is given", mod{Describe: steps(dialecttest.GrowOrTrap(rest + 1))}.Bytes()},
		{"describing fails", "it fails to describe itself", mod{Describe: steps(dialecttest.Fail(-1, "no"))}.Bytes()},
		{"_initialize grows to what may be", "", mod{Initialize: steps(dialecttest.GrowInVain(rest))}.Bytes()},
		{"_initialize traps", "it does not start without what a call is given", mod{Initialize: steps(dialecttest.Trap())}.Bytes()},
		{"describing traps", "it does not start without what a call is given", mod{Describe: steps(dialecttest.Trap())}.Bytes()},
		{"a descriptor", "it changes its descriptors while it starts", mod{Initialize: steps(dialecttest.Import("wasi_snapshot_preview1", "fd_close", "i", "i", 2))}.Bytes()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := Load(t.Context(), tt.wasm, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := g.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			var answers []string
			for _, fresh := range []bool{false, false, true} {
				answers = append(answers, answer(t, g, abi.Invocation{Limits: abi.Limits{Fresh: fresh}}))
			}
			if answers[0] != answers[1] || answers[1] != answers[2] {
				t.Errorf("answers %q", answers)
			}
			if s := g.begun.Load(); s.anew != tt.anew || (s.kept == nil) != (tt.anew != "") {
				t.Errorf("starts anew because %q, want %q", s.anew, tt.anew)
			}
		})
	}
}

// firstPages is how many pages of memory a module starts with.
func firstPages(t *testing.T, wasm []byte) int {
	t.Helper()
	m, err := wasmbin.Check(wasm, wasmbin.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	return int(m.Memory.Min)
}

func TestAnewSaysWhatBytesTell(t *testing.T) {
	for _, tt := range []struct {
		wasm []byte
		want string
	}{{tabled(), "its code changes tables"}, {mod{}.Bytes(), ""}} {
		m, err := wasmbin.Check(tt.wasm, wasmbin.Budget{})
		if err != nil {
			t.Fatal(err)
		}
		if got := Anew(m); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// A call that wants to starts anew, beside others that do not.
func TestFreshCallsStartAnew(t *testing.T) {
	g := loaded(t, mod{Initialize: steps(dialecttest.Print(1, "starting\n"))}, Options{})
	for _, fresh := range []bool{false, true, false} {
		started := 0
		answer(t, g, abi.Invocation{Limits: abi.Limits{Fresh: fresh}, Log: func(abi.LogLevel, string) { started++ }})
		if (started == 1) != fresh {
			t.Errorf("fresh %v: started %d times", fresh, started)
		}
	}
}

// A guest that never leaves _initialize ends when its call does, each time anew.
func TestEndlessInitialize(t *testing.T) {
	g := loaded(t, mod{Initialize: steps(dialecttest.Loop())}, Options{})
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, _, err := g.Call(ctx, 1, abi.Invocation{})
		cancel()
		var f *abi.Failure
		if !errors.As(err, &f) || f.Class != abi.ClassTimeout {
			t.Error(err)
		}
		if g.begun.Load() != nil || len(g.turn) != 0 {
			t.Error("it is not tried again")
		}
	}
}
