package wasmbin_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"
)

// What a module of ranges has, in bytes. A chunk is what is done at once.
const (
	chunk       = 1 << 20
	rangeMemory = 5 * chunk
	rangeData   = 2*chunk + 12_345
)

// ranges is a module that does to its memory what it is told, with a passive segment.
func ranges() []byte {
	data := make([]byte, rangeData)
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(data); i++ {
		data[i] = byte(r.Uint32())
	}
	body := func(code string) []byte { return join(u(len(x(code))+8), x("00 2000 2001 2002"), x(code), x("0b")) }
	return module(
		section(1, x("01 60 03 7f7f7f 00")), section(3, x("03 00 00 00")), section(5, x("01 00"), u(rangeMemory>>16)),
		section(7, x("04"), name("fill"), x("00 00"), name("copy"), x("00 01"), name("init"), x("00 02"), name("memory"), x("02 00")),
		section(12, x("01")),
		section(10, x("03"), body("fc0b00"), body("fc0a0000"), body("fc080000")),
		section(11, x("01 01"), u(len(data)), data))
}

// rangeCalls are what is done one after the other: every operation with lengths
// around chunks, over itself in both directions, and at bounds and past them.
func rangeCalls() (calls []rangeCall) {
	add := func(export string, to, from, length int64) {
		calls = append(calls, rangeCall{export, []uint64{uint64(uint32(to)), uint64(uint32(from)), uint64(uint32(length))}})
	}
	add("init", 100, 0, rangeData)
	for _, n := range []int64{0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 2*chunk + 4097} {
		add("init", 3, 5, n)
		for _, apart := range []int64{0, 1, 4095, chunk / 2, chunk - 1, chunk, chunk + 1, 2*chunk - 1} {
			add("copy", 7, 7+apart, n)
			add("copy", 7+apart, 7, n)
		}
		add("fill", 77, n+0x1ff, n)
	}
	for _, n := range []int64{0, 1, chunk, chunk + 1, 3 * chunk} {
		for _, past := range []int64{0, 1, chunk} {
			at := rangeMemory - n + past
			add("fill", at, 9, n)
			add("copy", at, 0, n)
			add("copy", 0, at, n)
			add("copy", at, at, n)
			add("init", at, 0, n)
			add("init", 0, rangeData-n+past, n)
		}
	}
	for _, export := range []string{"fill", "copy", "init"} {
		add(export, 0, 0, math.MaxUint32)
		add(export, math.MaxUint32, 0, 2*chunk)
		add(export, 0, math.MaxUint32, 2*chunk)
		add(export, -2*chunk, -2*chunk, 2*chunk)
	}
	return calls
}

type rangeCall struct {
	export string
	args   []uint64
}

// Operations on ranges leave in memory what they do in the module as it was, trap
// where it does, and cost what their length says.
func TestRewrittenRangesAreTheSame(t *testing.T) {
	plain, compiled, interpreted := newWorld(t, wazero.NewRuntimeConfigCompiler()), newWorld(t, wazero.NewRuntimeConfigCompiler()), newWorld(t, wazero.NewRuntimeConfigInterpreter())
	m := check(t, ranges())
	plain.alone(t, m.Stripped())
	with := rewritten(t, m).Wasm
	traps := 0
	for _, w := range []*world{compiled, interpreted} {
		w.alone(t, with)
	}
	for _, c := range rangeCalls() {
		what := fmt.Sprint(c.export, c.args)
		want, _ := plain.call(t, plain.module, c.export, c.args)
		if want.trap != "" {
			traps++
		}
		for _, w := range []*world{compiled, interpreted} {
			before := w.used()
			if got, _ := w.call(t, w.module, c.export, c.args); got.trap != want.trap {
				t.Errorf("%s: %q, unmetered %q", what, got.trap, want.trap)
			}
			if got, want := w.used()-before, 4+20+int64(c.args[2])/64; got != want {
				t.Errorf("%s: burned %d, want %d", what, got, want)
			}
			if !bytes.Equal(w.bytes(), plain.bytes()) {
				t.Fatalf("%s: another memory", what)
			}
		}
	}
	if all := len(rangeCalls()); traps < 20 || all-traps < 100 {
		t.Errorf("%d of %d calls trap", traps, all)
	}
}

// alone starts a module that does not trap, and has calls go to it.
func (w *world) alone(t *testing.T, wasm []byte) {
	t.Helper()
	m, trap := w.start(t, wasm, "")
	if trap != "" {
		t.Fatal(trap)
	}
	w.keep(m, "")
}

// bytes is all of the module's memory.
func (w *world) bytes() []byte {
	memory := w.module.Memory()
	b, _ := memory.Read(0, memory.Size())
	return b
}

// The host is asked after each chunk, though there is fuel.
func TestLongRangesAsk(t *testing.T) {
	out := rewritten(t, check(t, ranges()))
	for _, tt := range []struct {
		export string
		args   []uint64
		asked  int
	}{
		{"fill", []uint64{0, 1, chunk}, 0}, {"fill", []uint64{0, 1, chunk + 1}, 1}, {"fill", []uint64{0, 1, 5 * chunk}, 4},
		{"copy", []uint64{0, 1, chunk}, 0}, {"copy", []uint64{0, 1, 2*chunk + 1}, 2}, {"copy", []uint64{1, 0, 2*chunk + 1}, 2},
		{"init", []uint64{0, 0, chunk}, 0}, {"init", []uint64{0, 0, 2*chunk + 1}, 2},
		{"fill", []uint64{1, 1, 5 * chunk}, 0},
	} {
		w := newWorld(t, wazero.NewRuntimeConfigCompiler())
		w.slice = 1 << 40
		w.alone(t, out.Wasm)
		w.call(t, w.module, "fill", []uint64{0, 0, 0}) // gets the first slice
		w.asked = 0
		w.call(t, w.module, tt.export, tt.args)
		if w.asked != tt.asked {
			t.Errorf("%s%v: asked %d times, want %d", tt.export, tt.args, w.asked, tt.asked)
		}
	}
}
