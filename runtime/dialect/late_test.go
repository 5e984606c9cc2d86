package dialect

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// lateMemory is how much memory an endless guest may have: the default.
const lateMemory = 64 << 20

// repeating is a guest whose call does something for ever, after it grew by as much
// memory as it may have, which the system has yet to find. It may print, poll, and
// draw random numbers: functions 0 to 2.
func repeating(code string) []byte {
	b, name := wasmbintest.Hex, wasmbintest.Name
	system := func(f string, typ byte) []byte {
		return wasmbintest.Join(name("wasi_snapshot_preview1"), name(f), []byte{0, typ})
	}
	return wasmbintest.Module(
		wasmbintest.Section(1, b("03 60 00 01 7f 60 04 7f7f7f7f 01 7f 60 02 7f7f 01 7f")),
		wasmbintest.Section(2, wasmbintest.Vector(system("fd_write", 1), system("poll_oneoff", 1), system("random_get", 2),
			wasmbintest.Join(name("hutch:host"), name("output_write"), b("00 02")))),
		wasmbintest.Section(3, b("02 00 00")),
		wasmbintest.Section(5, b("01 00 10")),
		wasmbintest.Section(7, wasmbintest.Vector(
			wasmbintest.Join(name("memory"), b("02 00")), wasmbintest.Join(name("describe"), b("00 04")), wasmbintest.Join(name("call"), b("00 05")))),
		wasmbintest.Section(10, wasmbintest.Vector(
			wasmbintest.Func(b("00"), b("4100")),
			wasmbintest.Func(b("01 01 7f"), b("41"), wasmbintest.Int(lateMemory>>16-17), b("4000 1a 0340"), b(code), b("0c00 0b 4100")))),
	)
}

// allocating takes so many times three MiB of Extism's memory.
func allocating(n int) []dialecttest.Step {
	return slices.Repeat(steps(dialecttest.Import(extismModule, "alloc", "l", "l", 3<<20)), n)
}

// number is the code of a constant.
func number(n int) string { return fmt.Sprintf("41 %x", wasmbintest.Int(n)) }

// endless are guests that would go on for ever, and keep the host busy if they can.
func endless(tb testing.TB) map[string]*Guest {
	const all, far, many = "3f00 4110 74", 1 << 24, 1 << 10 // of memory, a place behind the lists, entries
	printed := func(list string, entries int) string {
		return list + number(1) + number(0) + number(entries) + number(8) + "1000 1a"
	}
	one := number(0) + number(far) + "360200" + number(4) + number(lateMemory/2) + "360200"
	pieces := "4100 2100 0340 2000" + number(far) + "360200 2000" + number(1) + "360204 2000 4108 6a 2200" + number(8*many) + "49 0d00 0b"
	modules := map[string][]byte{
		"spinner":          mod{Do: steps(dialecttest.Exponential())}.Bytes(),
		"loop":             mod{Do: steps(dialecttest.Loop())}.Bytes(),
		"tables":           wasmbintest.ToolNamed("tablegrowbounded"),
		"growth":           wasmbintest.ToolNamed("growloop"),
		"memory":           mod{Do: steps(dialecttest.Grow(1000), dialecttest.Loop())}.Bytes(),
		"log flood":        mod{Do: steps(dialecttest.Log(abi.Info, 1<<30, "look at me, look at me, look at me, look at me"))}.Bytes(),
		"calls host":       mod{Do: steps(dialecttest.Op(abi.OpKVGet, 1<<30, `{"key":"a"}`))}.Bytes(),
		"extism":           mod{V1: true, Do: append(allocating(20), dialecttest.Loop())}.Bytes(),
		"fills":            repeating("4100 4100" + all + "fc0b00"),
		"copies":           repeating("4101 4100" + all + "4101 6b fc0a0000"),
		"prints much":      repeating(printed(one, 1)),
		"prints lines":     repeating(number(far) + "410a" + number(lateMemory/2) + "fc0b00" + printed(one, 1)),
		"prints in pieces": repeating(printed(pieces, many)),
		"writes":           repeating(number(0) + number(32<<10) + "1003 1a"),
		"polls":            repeating(number(0) + number(far) + number(many) + number(far-8) + "1001 1a"),
		"random":           repeating(number(0) + number(lateMemory/2) + "1002 1a"),
	}
	guests := map[string]*Guest{}
	for name, wasm := range modules {
		g, err := Load(tb.Context(), wasm, Options{Limits: abi.Limits{MemoryBytes: lateMemory, Fuel: 1 << 60}})
		if err != nil {
			tb.Fatal(name, err)
		}
		tb.Cleanup(func() {
			if err := g.Close(context.Background()); err != nil {
				tb.Error(err)
			}
		})
		guests[name] = g
	}
	guests["script"] = jsGuest(tb, running("for (;;) {}"))
	guests["script of strings"] = jsGuest(tb, running("for (;;) { 'x'.repeat(1 << 12).split('').sort().join(',').replace(/x+y/g, '') }"))
	return guests
}

// late has a guest run until its time is over, and returns how late it ended.
func late(tb testing.TB, g *Guest, given time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(tb.Context(), given)
	defer cancel()
	in := abi.Invocation{Tool: "t", Limits: abi.Limits{MemoryBytes: lateMemory, Fuel: 1 << 60, HostCalls: 1 << 30}, Log: func(abi.LogLevel, string) {}}
	in.Host = func(context.Context, abi.Request) abi.Response { return abi.Response{Body: []byte("{}")} }
	deadline, _ := ctx.Deadline()
	_, _, err := g.Call(ctx, 1, in)
	over := time.Since(deadline)
	if over < 0 {
		tb.Errorf("it ended before its time: %v", err)
	}
	return over
}

// BenchmarkLate is how late guests end that would go on for ever, and how long a
// collection waits while one runs. Both count what a call costs at its end, where all of
// its memory is brought back.
//
//	go test ./runtime/dialect -run '^$' -bench Late
func BenchmarkLate(b *testing.B) {
	for name, g := range endless(b) {
		late(b, g, time.Second) // finds out where calls begin
		b.Run("end/"+name, func(b *testing.B) {
			var most time.Duration
			for b.Loop() {
				most = max(most, late(b, g, 50*time.Millisecond))
			}
			b.ReportMetric(inMilliseconds(most), "max-ms")
		})
		b.Run("collection/"+name, func(b *testing.B) {
			var waits []time.Duration
			for b.Loop() {
				waits = append(waits, collectBeside(b, g)...)
			}
			slices.Sort(waits)
			b.ReportMetric(inMilliseconds(waits[len(waits)*99/100]), "p99-ms")
		})
	}
}

// collectBeside collects garbage as long as a guest runs.
func collectBeside(tb testing.TB, g *Guest) (waits []time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		late(tb, g, 200*time.Millisecond)
	}()
	for {
		began := time.Now()
		runtime.GC()
		waits = append(waits, time.Since(began))
		select {
		case <-ended:
			return waits
		default:
		}
	}
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
