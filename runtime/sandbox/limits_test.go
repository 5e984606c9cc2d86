package sandbox

import (
	"context"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// compiles is how long a module at a limit may compile. The worst takes half a second on
// an idle machine, and took 21 s on a busy one with the race detector; what the limits
// keep away takes minutes without either.
const compiles = 2 * time.Minute

// A module at each limit of the pre-check compiles with its meter, starts, and runs.
func TestD12_MeteredAtEachLimit(t *testing.T) {
	ran := 0
	imported := HostModule{Name: "m", Funcs: []HostFunc{{Name: "f", Call: func(context.Context, *Instance, []uint64) {}}}}
	for _, l := range wasmbintest.Limits() {
		t.Run(l.Name, func(t *testing.T) {
			began := time.Now()
			m := compiled(t, l.Build(l.Standard), Options{Limits: abi.Limits{MemoryBytes: 64 << 20}, Hosts: []HostModule{imported}})
			if took := time.Since(began); took > compiles {
				t.Errorf("compiled for %v", took)
			}
			in, err := m.Instantiate(t.Context(), Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, in)
			if !m.Exports("f") {
				return
			}
			ran++
			args := make([]uint64, len(m.compiled.ExportedFunctions()["f"].ParamTypes()))
			if _, err := in.Call(t.Context(), "f", args...); err != nil {
				t.Error(err)
			}
		})
	}
	if ran < 10 {
		t.Errorf("%d modules ran, at least 10", ran)
	}
}

// A module that a meter makes too large is at fault itself.
func TestD12_TooLargeWithAMeter(t *testing.T) {
	code := wasmbintest.Join(wasmbintest.Hex("0340 0b"), wasmbintest.Times(200_000, "1000"))
	wasm := wasmbintest.Module(wasmbintest.Section(1, wasmbintest.Hex("01 60 00 00")), wasmbintest.Section(3, wasmbintest.Hex("01 00")),
		wasmbintest.Section(10, wasmbintest.Vector(wasmbintest.Func(wasmbintest.Hex("00"), code))))
	m, err := wasmbin.Check(wasm, wasmbin.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Compile(t.Context(), m, Options{})
	const want = "module: code section: function 0: 2000073 bytes of code with a meter, at most 1048576 (at offset 0x61a9f)"
	if errorText(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
