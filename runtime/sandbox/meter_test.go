package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// both runs a test in the compiler and in the interpreter.
func both(t *testing.T, test func(t *testing.T, o Options)) {
	for name, interpret := range map[string]bool{"compiler": false, "interpreter": true} {
		t.Run(name, func(t *testing.T) { test(t, Options{Interpret: interpret}) })
	}
}

// endless are guests that never end by themselves.
func endless() map[string]mod {
	random := dialecttest.Import(SystemModule, "random_get", "ii", "i", 0, 17*abi.PageBytes)
	print := dialecttest.Print(1, "again\n")
	return map[string]mod{
		"loop":             {Do: steps(dialecttest.Loop())},
		"calls":            {Do: steps(dialecttest.Exponential())},
		"start":            {Start: steps(dialecttest.Loop())},
		"start with calls": {Start: steps(dialecttest.Exponential())},
		"random numbers":   {Do: slices.Repeat(steps(random), 5_000)},
		"prints":           {Do: append(slices.Repeat(steps(print), 1_000), dialecttest.Loop())},
	}
}

// E01, E02: what never ends is ended where its fuel is, and says so.
func TestE01_E02_FuelEndsWhatNeverEnds(t *testing.T) {
	for name, m := range endless() {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, o Options) {
				o.Limits = abi.Limits{Fuel: 3_000_000}
				_, _, err := run(t, compiled(t, m.Bytes(), o))
				if got, want := errorText(err), "limit: more than 3000000 units of fuel were burned (limits.fuel)"; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}

// What nobody waits for ends at its next slice; the next instance knows nothing of it.
func TestCancelledGuestsEnd(t *testing.T) {
	for name, m := range endless() {
		t.Run(name, func(t *testing.T) {
			module := compiled(t, m.Bytes(), Options{Limits: abi.Limits{Fuel: 1 << 60}})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Millisecond, cancel)
			in, err := module.Instantiate(ctx, Config{State: &recorder{}})
			if err == nil {
				_, err = in.Call(ctx, "call")
				closed(t, in)
			}
			if got := errorText(err); got != "cancelled: the call was cancelled" {
				t.Error(got)
			}
			if m.Start != nil {
				return // so it would be again
			}
			if in, err = module.Instantiate(t.Context(), Config{}); err != nil {
				t.Fatal(err)
			}
			closed(t, in)
		})
	}
}

// expiring is a context whose deadline is over once it was asked for that often.
type expiring struct {
	context.Context
	asks int
}

func (c *expiring) Err() error {
	if c.asks--; c.asks < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// ranges is a module that works on all of its memory, after it grew by some pages.
func ranges() []byte {
	b, name := wasmbintest.Hex, wasmbintest.Name
	data := make([]byte, 3<<20)
	data[0], data[len(data)-1] = 1, 1
	return wasmbintest.Module(
		wasmbintest.Section(1, b("01 60 01 7f 00")), wasmbintest.Section(3, b("03 00 00 00")), wasmbintest.Section(5, b("01 00 01")),
		wasmbintest.Section(7, b("03"), name("fill"), b("00 00"), name("copy"), b("00 01"), name("init"), b("00 02")),
		wasmbintest.Section(12, b("01")),
		wasmbintest.Section(10, b("03"),
			wasmbintest.Func(b("00"), b("2000 4000 1a 4100 4101 3f00 4110 74 fc0b00")),
			wasmbintest.Func(b("00"), b("2000 4000 1a 4101 4100 3f00 4110 74 4101 6b fc0a0000")),
			wasmbintest.Func(b("00"), b("2000 4000 1a 4100 4100"), b("41"), wasmbintest.Int(len(data)), b("fc080000"))),
		wasmbintest.Section(11, b("01 01"), wasmbintest.Uint(len(data)), data))
}

// E01: an instruction that works on a gigabyte, which the system has yet to find, ends
// when its call does. Of the megabytes it was to write it has written few.
func TestE01_BulkOperationsEndAtTheirDeadline(t *testing.T) {
	for _, tt := range []struct {
		export string
		pages  uint64
		asks   int // for what is charged at once, and for a chunk
	}{{"fill", 16<<10 - 2, 3}, {"copy", 16<<10 - 2, 3}, {"init", 99, 1}} {
		t.Run(tt.export, func(t *testing.T) {
			both(t, func(t *testing.T, o Options) {
				o.Limits = abi.Limits{MemoryBytes: 1 << 30, Fuel: 1 << 60}
				in, err := compiled(t, ranges(), o).Instantiate(t.Context(), Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer closed(t, in)
				_, err = in.Call(&expiring{t.Context(), tt.asks}, tt.export, tt.pages)
				if got := errorText(err); got != "timeout: the time for this call is over" {
					t.Fatal(got)
				}
				memory := in.bytes()
				if len(memory) != int(tt.pages+1)*abi.PageBytes {
					t.Fatalf("%d bytes of memory", len(memory))
				}
				if last := len(memory) - 1; tt.export == "fill" && (memory[last] != 1 || memory[last-4<<20] != 0) {
					t.Error("it was not filled to where it ended")
				}
				if memory[0] != 0 {
					t.Error("it went on")
				}
			})
		})
	}
}

// caller is a module whose exports call what it imports, with four pages of memory.
func caller() []byte {
	b, name := wasmbintest.Hex, wasmbintest.Name
	functions := []struct {
		module, name string
		typ          byte
	}{{SystemModule, "fd_write", 0}, {SystemModule, "poll_oneoff", 0}, {SystemModule, "random_get", 1}, {"test", "read", 1}, {"test", "write", 1}, {"test", "look", 1}, {SystemModule, "path_unlink_file", 2}, {SystemModule, "path_rename", 3}, {SystemModule, "sched_yield", 4}}
	var imports, declared, exports, bodies [][]byte
	for i, f := range functions {
		arguments := [...]string{"2000 2001 2002 2003 10", "2000 2001 10", "2000 2001 2002 10", "2000 2001 2002 2003 2004 2005 10", "10"}[f.typ]
		declared = append(declared, []byte{f.typ})
		bodies = append(bodies, wasmbintest.Func(b("00"), b(arguments), []byte{byte(i)}))
		imports = append(imports, wasmbintest.Join(name(f.module), name(f.name), []byte{0, f.typ}))
		exports = append(exports, wasmbintest.Join(name(f.name), []byte{0, byte(len(functions) + i)}))
	}
	return wasmbintest.Module(
		wasmbintest.Section(1, b("05 60 04 7f7f7f7f 01 7f 60 02 7f7f 01 7f 60 03 7f7f7f 01 7f 60 06 7f7f7f7f7f7f 01 7f 60 00 01 7f")), wasmbintest.Section(2, wasmbintest.Vector(imports...)),
		wasmbintest.Section(3, wasmbintest.Vector(declared...)), wasmbintest.Section(5, b("01 00 04")),
		wasmbintest.Section(7, wasmbintest.Vector(exports...)), wasmbintest.Section(10, wasmbintest.Vector(bodies...)))
}

// called returns an instance of a caller that has fuel, so that it asks for none.
func called(t *testing.T, c Config) *Instance {
	t.Helper()
	function := func(name string, do func(in *Instance, ptr, n uint32) bool) HostFunc {
		t := wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I32}, Results: []wasmbin.ValueType{wasmbin.I32}}
		return HostFunc{name, t, func(_ context.Context, in *Instance, stack []uint64) {
			if stack[0] = 0; !do(in, 0, uint32(stack[1])) {
				stack[0] = 1
			}
		}}
	}
	in, err := compiled(t, caller(), Options{Hosts: []HostModule{{"test", []HostFunc{
		function("read", func(in *Instance, ptr, n uint32) bool { _, ok := in.Read(ptr, n); return ok }),
		function("write", func(in *Instance, ptr, n uint32) bool { return in.Write(ptr, make([]byte, n)) }),
		function("look", func(in *Instance, ptr, n uint32) bool { return in.Contains(ptr, n) }),
	}}}}).Instantiate(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, in) })
	if _, err := in.Call(t.Context(), "look", 0, 0); err != nil {
		t.Fatal(err)
	}
	return in
}

// list writes a list of one range, n bytes from page 1 on, to the beginning of memory.
func list(t *testing.T, in *Instance, n uint32) {
	t.Helper()
	entry := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, abi.PageBytes), n)
	if !in.Write(0, entry) {
		t.Fatal("it does not fit")
	}
}

// What the host moves for a guest costs what the guest would pay for it.
func TestHostCallsCostWhatTheyMove(t *testing.T) {
	for _, tt := range []struct {
		export string
		args   func(n uint64) []uint64
		want   int64 // more for 64 KiB than for nothing
	}{
		{"read", func(n uint64) []uint64 { return []uint64{0, n} }, 1024},
		{"write", func(n uint64) []uint64 { return []uint64{0, n} }, 1024},
		{"look", func(n uint64) []uint64 { return []uint64{0, n} }, 0},
		{"fd_write", func(uint64) []uint64 { return []uint64{1, 0, 1, 64} }, 1024},
		{"random_get", func(n uint64) []uint64 { return []uint64{0, n} }, 64 << 10},
	} {
		in := called(t, Config{})
		var burned []int64
		for _, n := range []uint32{0, 64 << 10} {
			list(t, in, n)
			in.meter.moved = 0
			before := in.Fuel()
			if got, err := in.Call(t.Context(), tt.export, tt.args(uint64(n))...); err != nil || uint32(got[0]) != 0 {
				t.Fatal(tt.export, got, err)
			}
			burned = append(burned, in.Fuel()-before)
		}
		if more := burned[1] - burned[0]; more != tt.want {
			t.Errorf("%s: 64 KiB cost %d more than nothing, want %d", tt.export, more, tt.want)
		}
	}
}

// A list that the system goes through costs by its length, which has an end.
func TestE01_ListsOfTheSystemEnd(t *testing.T) {
	for _, export := range []string{"fd_write", "poll_oneoff"} {
		in := called(t, Config{})
		args := func(n uint64) []uint64 {
			if export == "fd_write" {
				return []uint64{1, 2 * abi.PageBytes, n, 64}
			}
			return []uint64{0, 2 * abi.PageBytes, n, 64}
		}
		before := in.Fuel()
		if got, err := in.Call(t.Context(), export, args(mostListed)...); err != nil || uint32(got[0]) != 0 {
			t.Errorf("%s: %v, %v", export, got, err)
		}
		if burned := in.Fuel() - before; burned < mostListed*listedUnits || burned > 2*mostListed*listedUnits {
			t.Errorf("%s: burned %d", export, burned)
		}
		if got, err := in.Call(t.Context(), export, args(mostListed+1)...); err != nil || uint32(got[0]) != errnoInvalid {
			t.Errorf("%s: %v, %v", export, got, err)
		}
	}
}

// E01: a guest gets little at a time, because a unit can take 200 ns.
func TestE01_SlicesAreShort(t *testing.T) {
	in, err := compiled(t, mod{Do: steps(dialecttest.Loop())}.Bytes(), Options{}).Instantiate(t.Context(), Config{State: &recorder{}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	const slice = 20_000_000 / 200
	for asked := range int64(3) {
		before := in.Fuel()
		_, err := in.Call(&expiring{t.Context(), int(asked)}, "call")
		if got := errorText(err); got != "timeout: the time for this call is over" {
			t.Fatal(got)
		}
		if burned := in.Fuel() - before; burned > (asked+2)*slice {
			t.Errorf("burned %d in %d slices", burned, asked)
		}
	}
}

// E01: of a path the system copies as much as it may have, and the guest pays for that.
func TestE01_PathsHaveAnEnd(t *testing.T) {
	const noFolder = 8 // EBADF
	for _, tt := range []struct {
		export string
		args   func(n uint64) []uint64
	}{
		{"path_unlink_file", func(n uint64) []uint64 { return []uint64{3, 0, n} }},
		{"path_rename", func(n uint64) []uint64 { return []uint64{3, 0, n, 3, 0, 1} }},
		{"path_rename", func(n uint64) []uint64 { return []uint64{3, 0, 1, 3, 0, n} }},
	} {
		in := called(t, Config{})
		if !in.Write(0, bytes.Repeat([]byte("a"), mostPath+1)) {
			t.Fatal("it does not fit")
		}
		in.meter.moved = 0
		var burned []int64
		for n, want := range map[uint64]uint32{1: noFolder, mostPath: noFolder, mostPath + 1: errnoNameTooLong, 1<<32 - 1: errnoNameTooLong} {
			before := in.Fuel()
			if got, err := in.Call(t.Context(), tt.export, tt.args(n)...); err != nil || uint32(got[0]) != want {
				t.Errorf("%s: %d bytes: %v, %v, want %d", tt.export, n, got, err, want)
			}
			burned = append(burned, in.Fuel()-before)
		}
		if more := slices.Max(burned) - slices.Min(burned); more != mostPath>>bytesUnit {
			t.Errorf("%s: the longest path cost %d more than none, want %d", tt.export, more, mostPath>>bytesUnit)
		}
	}
}

// The functions that take paths are those that are bounded.
func TestPathsAreAllBounded(t *testing.T) {
	for name := range SystemFunctions() {
		if _, ok := paths[name]; ok != strings.HasPrefix(name, "path_") {
			t.Error(name)
		}
	}
}

// A guest that is in host functions all the time ends there, whatever they cost: after
// some of them, and in the middle of much that it prints.
func TestE01_HostCallsEndAtTheirDeadline(t *testing.T) {
	lines := 0
	in := called(t, Config{Line: func(int, []byte) { lines++ }})
	ended := func(err error) bool { return errorText(err) == "timeout: the time for this call is over" }
	if !in.Write(abi.PageBytes, bytes.Repeat([]byte("\n"), 3*abi.PageBytes)) {
		t.Fatal("it does not fit")
	}
	list(t, in, 3*abi.PageBytes)
	if _, err := in.Call(&expiring{t.Context(), 1}, "fd_write", 1, 0, 1, 64); !ended(err) || lines != 2*printedBytes {
		t.Errorf("printed %d lines, then %v", lines, err)
	}
	for name, args := range map[string][]uint64{"look": {0, 0}, "fd_write": {1, 0, 0, 64}, "path_unlink_file": {3, 0, 1}, "sched_yield": {}} {
		in, ctx := called(t, Config{}), &expiring{t.Context(), 0}
		n := 1
		for ; n < 100; n++ {
			if _, err := in.Call(ctx, name, args...); ended(err) {
				break
			}
		}
		if n == 1 || n > askedEach {
			t.Errorf("%s: ended after %d calls", name, n)
		}
	}
}

// A guest that computes lets a collection through.
func TestCollectionsDoNotWaitForGuests(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Exponential())}.Bytes(), Options{Limits: abi.Limits{Fuel: 1 << 60}})
	in, err := m.Instantiate(t.Context(), Config{State: &recorder{}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := in.Call(ctx, "call")
		ended <- err
	}()
	for range 20 {
		runtime.GC() // it would wait for ever
	}
	cancel()
	if err := <-ended; errorText(err) != "cancelled: the call was cancelled" {
		t.Error(err)
	}
}

// The same call burns the same, whatever the engine and the size of slices.
func TestFuelIsTheSameEachTime(t *testing.T) {
	m := mod{Do: steps(dialecttest.Print(1, "some\nlines\n"), dialecttest.Grow(2), dialecttest.Write("done"), dialecttest.Count())}
	burned := map[int64]bool{}
	both(t, func(t *testing.T, o Options) {
		for _, slice := range []int64{0, 1, 7, 1000} {
			o.Slice = slice
			module := compiled(t, m.Bytes(), o)
			for range 2 {
				in, err := module.Instantiate(t.Context(), Config{State: &recorder{}})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := in.Call(t.Context(), "call"); err != nil {
					t.Fatal(err)
				}
				burned[in.Fuel()] = true
				closed(t, in)
				if burned[in.Fuel()] = true; in.Fuel() <= 0 {
					t.Errorf("burned %d", in.Fuel())
				}
			}
		}
	})
	if len(burned) != 1 {
		t.Errorf("burned %v", burned)
	}
}

// The last unit may be burned, and one more may not.
func TestFuelToTheLastUnit(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Write("done"))}.Bytes(), Options{})
	call := func(fuel int64) (int64, error) {
		in, err := m.Instantiate(t.Context(), Config{State: &recorder{}, Fuel: fuel})
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, in)
		_, err = in.Call(t.Context(), "call")
		return in.Fuel(), err
	}
	burned, err := call(0)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := call(burned); err != nil || again != burned {
		t.Errorf("burned %d of %d: %v", again, burned, err)
	}
	if _, err := call(burned - 1); err == nil {
		t.Errorf("%d units were enough for %d", burned-1, burned)
	}
}

// What was ended for its fuel has burned all of it, also if the guest keeps what it
// has left in a local variable, and its calls begin with a slice in the global one.
func TestFuelThatIsUsedUpCounts(t *testing.T) {
	ways(t, func(t *testing.T, o Options) {
		kept := checkpointed(t, compiled(t, scribbler(), o), scribbled)
		for range 2 {
			in, err := kept.Instance(t.Context(), Config{Fuel: 3_000_000})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := in.Call(t.Context(), "loop"); err == nil {
				t.Fatal("it ended by itself")
			}
			if burned := in.Fuel(); burned <= 3_000_000 || burned > 3_000_100 {
				t.Errorf("burned %d of 3000000", burned)
			}
			if err := in.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// What is unmetered is so.
func TestUnmeteredBurnsNothing(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Print(1, "a\n"), dialecttest.Write("done"))}.Bytes(), Options{Unmetered: true, Limits: abi.Limits{Fuel: 1}})
	if out, _, err := run(t, m); err != nil || out != "done" {
		t.Errorf("%q, %v", out, err)
	}
}

// A module with a name of the meter's is refused, and so is one that was rewritten.
func TestReservedNamesAreRefused(t *testing.T) {
	want := `module: export section: export 0: "hutch:fuel": names that begin with "hutch:" are reserved, choose another one`
	named := wasmbintest.Module(wasmbintest.Section(6, wasmbintest.Hex("01 7e 01 4200 0b")),
		wasmbintest.Section(7, wasmbintest.Vector(wasmbintest.Join(wasmbintest.Name("hutch:fuel"), wasmbintest.Hex("03 00")))))
	if _, err := Compile(t.Context(), checked(t, named), Options{}); errorText(err) != want {
		t.Error(err)
	}
	twice, err := checked(t, mod{}.Bytes()).Rewrite(wasmbin.Rewriting{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(t.Context(), checked(t, twice.Wasm), Options{}); err == nil {
		t.Error("accepted")
	}
}

// kernels returns a module that computes, built from C.
func kernels(b *testing.B) *wasmbin.Module {
	b.Helper()
	path := filepath.Join(b.TempDir(), "kernels.wasm")
	build := exec.Command("clang", "--target=wasm32", "-O2", "-fno-builtin", "-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all",
		"-o", path, filepath.Join("testdata", "kernels.c"))
	if out, err := build.CombinedOutput(); err != nil {
		skipUnlessRequired(b, fmt.Sprintf("the kernels cannot be built: %v: %s", err, out))
	}
	return checked(b, readFile(b, path))
}

// BenchmarkMeter is what metering costs where it costs most: in code that computes.
func BenchmarkMeter(b *testing.B) {
	m := kernels(b)
	for _, k := range []struct {
		name string
		n    uint64
	}{{"sha256", 64}, {"sieve", 1}, {"fib", 30}, {"matmul", 3}} {
		for name, unmetered := range map[string]bool{"metered": false, "unmetered": true} {
			b.Run(k.name+"/"+name, func(b *testing.B) {
				module, err := Compile(b.Context(), m, Options{Unmetered: unmetered, Limits: abi.Limits{Fuel: 1 << 60}})
				if err != nil {
					b.Fatal(err)
				}
				defer module.Close(context.Background()) //nolint:errcheck // it was measured
				in, err := module.Instantiate(b.Context(), Config{})
				if err != nil {
					b.Fatal(err)
				}
				defer in.Close(context.Background()) //nolint:errcheck // it was measured
				for b.Loop() {
					if _, err := in.Call(b.Context(), k.name, k.n); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
