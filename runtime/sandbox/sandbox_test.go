package sandbox

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

type mod = dialecttest.Module

func steps(s ...dialecttest.Step) []dialecttest.Step { return s }

// recorder is the state of an instance in these tests: what the guest wrote.
type recorder struct {
	out   strings.Builder
	lines []string
}

// hutchHost is as much of hutch:host as the modules here import.
func hutchHost() HostModule {
	i32, i64 := wasmbin.I32, wasmbin.I64
	types := func(t ...wasmbin.ValueType) []wasmbin.ValueType { return t }
	return HostModule{Name: "hutch:host", Funcs: []HostFunc{
		{"output_write", wasmbin.FuncType{Params: types(i32, i32), Results: types(i32)}, func(_ context.Context, in *Instance, stack []uint64) {
			b, ok := in.Read(uint32(stack[0]), uint32(stack[1]))
			if stack[0] = 0; !ok {
				stack[0] = uint64(1<<32 - 2)
			}
			in.State().(*recorder).out.Write(b)
		}},
		{"input_read", wasmbin.FuncType{Params: types(i32, i32, i32), Results: types(i32)}, func(_ context.Context, _ *Instance, stack []uint64) {
			stack[0] = 0
		}},
		{"kv_get", wasmbin.FuncType{Params: types(i32, i32), Results: types(i64)}, func(context.Context, *Instance, []uint64) {
			panic("the password is swordfish")
		}},
		{"result_read", wasmbin.FuncType{Params: types(i32, i32, i32), Results: types(i32)}, func(context.Context, *Instance, []uint64) {}},
		{"kv_set", wasmbin.FuncType{Params: types(i32, i32), Results: types(i64)}, func(_ context.Context, _ *Instance, stack []uint64) {
			none := make([]int, 0)
			stack[0] = uint64(none[len(stack)])
		}},
	}}
}

// checked is a module that passed the check.
func checked(t testing.TB, wasm []byte) *wasmbin.Module {
	t.Helper()
	m, err := wasmbin.Check(wasm, wasmbin.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func compiled(t *testing.T, wasm []byte, o Options) *Module {
	t.Helper()
	o.Hosts = append(o.Hosts, hutchHost())
	m, err := Compile(t.Context(), checked(t, wasm), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, m) })
	return m
}

// closed closes a module or an instance.
func closed(t *testing.T, c interface{ Close(context.Context) error }) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// run calls the export call of a new instance and returns what it wrote.
func run(t *testing.T, m *Module) (string, *recorder, error) {
	t.Helper()
	r := &recorder{}
	in, err := m.Instantiate(t.Context(), Config{State: r, Line: func(fd int, line []byte) {
		r.lines = append(r.lines, string(rune('0'+fd))+":"+string(line))
	}, LineBytes: 10})
	if err != nil {
		return "", r, err
	}
	defer closed(t, in)
	_, err = in.Call(t.Context(), "call")
	return r.out.String(), r, err
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name string
		wasm []byte
		want string
	}{
		{"trap", mod{Do: steps(dialecttest.Trap())}.Bytes(), "trap: trapped: unreachable"},
		{"exit", mod{Do: steps(dialecttest.Exit(3))}.Bytes(), "trap: left with exit code 3"},
		{"exit 0", mod{Do: steps(dialecttest.Exit(0))}.Bytes(), "trap: left with exit code 0"},
		{"E04 recursion", mod{Do: steps(dialecttest.Recurse())}.Bytes(), "limit: stack overflow: calls are nested too deeply (the engine's stack limit)"},
		{"E15 panic in a host function", mod{Do: steps(dialecttest.Op(abi.OpKVGet, 1, "{}"))}.Bytes(),
			"internal: a host function failed; the log says how"},
		{"panic with a stack trace", mod{Do: steps(dialecttest.Op(abi.OpKVSet, 1, "{}"))}.Bytes(),
			"internal: a host function failed; the log says how"},
		{"D20 start traps", mod{Start: steps(dialecttest.Trap())}.Bytes(), "trap: does not start: trapped: unreachable"},
		{"start leaves", mod{Start: steps(dialecttest.Exit(1))}.Bytes(), "trap: does not start: left with exit code 1"},
		{"unknown module", mod{Imports: [][2]string{{"env", "abort"}}}.Bytes(), `module: does not compile: import "env"."abort": there is no such module`},
		{"unknown function", mod{Imports: [][2]string{{"hutch:host", "nope"}}}.Bytes(),
			`module: does not compile: import "hutch:host"."nope": the module has no such function`},
		{"wrong type", mod{Imports: [][2]string{{"wasi_snapshot_preview1", "fd_write"}}}.Bytes(),
			`module: does not compile: import "wasi_snapshot_preview1"."fd_write" has type () -> (), want (i32, i32, i32, i32) -> (i32)`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if m, err := Compile(t.Context(), checked(t, tt.wasm), Options{Hosts: []HostModule{hutchHost()}}); err != nil {
				got = err.Error()
			} else {
				_, _, err := run(t, m)
				got = errorText(err)
				closed(t, m)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSystemFunctions(t *testing.T) {
	m := compiled(t, mod{}.Bytes(), Options{})
	has := m.runtime.Module(SystemModule).ExportedFunctionDefinitions()
	says := SystemFunctions()
	for name, f := range has {
		if got, want := says[name].String(), signature(f); got != want {
			t.Errorf("%s has type %s, the engine's is %s", name, got, want)
		}
	}
	if len(has) != len(says) {
		t.Errorf("%d functions, the engine has %d", len(says), len(has))
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	var f *abi.Failure
	if !errors.As(err, &f) {
		return "no failure: " + err.Error()
	}
	return f.Error()
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBothEnginesAgree(t *testing.T) {
	wasm := mod{Do: steps(dialecttest.Count())}.Bytes()
	for _, interpret := range []bool{false, true} {
		m := compiled(t, wasm, Options{Interpret: interpret})
		for range 2 {
			if out, _, err := run(t, m); err != nil || out != `{"content":[],"structuredContent":{"n":1}}` {
				t.Errorf("interpreter %v: %q, %v", interpret, out, err)
			}
		}
	}
}

func TestD15_FeaturesArePinned(t *testing.T) {
	want := []string{"bulk-memory-operations", "multi-value", "mutable-global", "nontrapping-float-to-int-conversion",
		"reference-types", "sign-extension-ops", "simd"}
	if got := strings.Split(features.String(), "|"); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("enabled %q, want %q", got, want)
	}
	if features != api.CoreFeaturesV2 {
		t.Error("not version 2.0")
	}
	modules := map[string]string{
		"tail call":   "0061736d01000000010401600000030201000a0601040012000b",
		"threads":     "0061736d0100000005040103010a",
		"memory64":    "0061736d0100000005030104" + "01",
		"exceptions":  "0061736d01000000010401600000" + "0d03010000",
		"two memory":  "0061736d010000000505020001" + "0001",
		"typed ref":   "0061736d01000000010401600000030201000a08010600d0000b1a0b",
		"gc (struct)": "0061736d010000000103015f00",
	}
	for name, code := range modules {
		if m, err := compile(t.Context(), unhex(t, code), Options{Logger: slog.New(slog.DiscardHandler)}, ""); err == nil {
			t.Errorf("%s compiles", name)
			closed(t, m)
		}
	}
}

func TestMemoryIsLimited(t *testing.T) {
	l := abi.Limits{MemoryBytes: 20 * abi.PageBytes} // a built module starts with 17
	m := compiled(t, mod{Do: steps(dialecttest.Grow(3), dialecttest.Write("ok"))}.Bytes(), Options{Limits: l})
	if out, _, err := run(t, m); err != nil || out != "ok" {
		t.Errorf("growing to the limit: %q, %v", out, err)
	}
	m = compiled(t, mod{Do: steps(dialecttest.Grow(4), dialecttest.Write("ok"))}.Bytes(), Options{Limits: l})
	if out, _, err := run(t, m); err != nil || out != "no memory" {
		t.Errorf("growing beyond it: %q, %v", out, err)
	}
	_, err := Compile(t.Context(), checked(t, mod{Pages: 4}.Bytes()), Options{Limits: l, Hosts: []HostModule{hutchHost()}})
	if got := errorText(err); !strings.Contains(got, "min 21 pages") || !strings.HasPrefix(got, "module: does not compile: ") {
		t.Errorf("starting beyond it: %s", got)
	}
	m = compiled(t, mod{MaxPages: 32768, Do: steps(dialecttest.Grow(4), dialecttest.Write("ok"))}.Bytes(), Options{Limits: l})
	if out, _, err := run(t, m); err != nil || out != "no memory" {
		t.Errorf("a declared maximum over the limit: %q, %v", out, err)
	}
}

// A guest that ends because memory was refused is told so, and only that one.
func TestRefusedMemoryIsToldAsTheLimit(t *testing.T) {
	l := abi.Limits{MemoryBytes: 20 * abi.PageBytes} // a built module starts with 17
	const over = "limit: memory of 1376256 bytes was asked for, at most 1310720; then the tool "
	for _, tt := range []struct {
		name string
		do   []dialecttest.Step
		want string
	}{
		{"refused and trapped", steps(dialecttest.GrowOrTrap(4)), over + "trapped: unreachable (limits.memory)"},
		{"refused and left", steps(dialecttest.GrowInVain(4), dialecttest.Exit(2)), over + "left with exit code 2 (limits.memory)"},
		{"refused and left in peace", steps(dialecttest.GrowInVain(4), dialecttest.Exit(0)), "trap: left with exit code 0"},
		{"granted and trapped", steps(dialecttest.GrowOrTrap(3), dialecttest.Trap()), "trap: trapped: unreachable"},
		{"refused at the engine's own limit", steps(dialecttest.GrowInVain(4), dialecttest.Recurse()),
			"limit: stack overflow: calls are nested too deeply (the engine's stack limit)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := run(t, compiled(t, mod{Do: tt.do}.Bytes(), Options{Limits: l}))
			if got := errorText(err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			var f *abi.Failure
			if errors.As(err, &f) && strings.HasPrefix(tt.want, over) != (f.Limit == abi.LimitMemory) {
				t.Errorf("limit %q", f.Limit)
			}
		})
	}
}

// What was refused in one call says nothing about the next.
func TestRefusalEndsWithItsCall(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.GrowInVain(4))}.Bytes(), Options{Limits: abi.Limits{MemoryBytes: 20 * abi.PageBytes}})
	in, err := m.Instantiate(t.Context(), Config{State: &recorder{}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	if _, err := in.Call(t.Context(), "call"); err != nil || in.memory.refused == 0 {
		t.Fatalf("%v, refused %d", err, in.memory.refused)
	}
	if _, err := in.Call(t.Context(), "describe"); err != nil || in.overMemory("") != nil {
		t.Errorf("%v, and of the call before %v", err, in.overMemory(""))
	}
}

// A memory that nobody exports, as the meter does, has the same limit.
func TestHiddenMemoryIsLimited(t *testing.T) {
	l := abi.Limits{MemoryBytes: 20 * abi.PageBytes}
	m, err := Compile(t.Context(), checked(t, mod{Pages: 4, Omit: []string{"memory"}}.Bytes()), Options{Limits: l, Unmetered: true, Hosts: []HostModule{hutchHost()}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, m)
	if _, err := m.Instantiate(t.Context(), Config{}); errorText(err) != "module: does not start: memory of min 21 pages, at most 20" {
		t.Errorf("starting beyond it: %v", err)
	}
	if m.users != 1 {
		t.Errorf("%d instances are left", m.users-1)
	}
}

// starved is a system that has no more memory after the first.
type starved struct{ n int }

func (s *starved) Reallocate(size uint64) []byte {
	if s.n++; s.n > 1 {
		return nil
	}
	return make([]byte, size)
}
func (*starved) Free() {}

func TestSystemWithoutMemory(t *testing.T) {
	in := &Instance{memory: &memory{LinearMemory: &starved{}, most: 100}}
	if in.memory.Reallocate(10) == nil || in.overMemory("") != nil || in.memory.Reallocate(20) != nil {
		t.Fatal("the system gives once")
	}
	const want = "limit: memory of 20 bytes was asked for, which the tool's process has not left; then the tool trapped (limits.memory)"
	if got := in.overMemory("trapped").Error(); got != want {
		t.Error(got)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errNoRoom) {
			t.Errorf("recovered %v", err)
		}
	}()
	(&memory{LinearMemory: &starved{n: 1}, most: 100}).Reallocate(10)
}

func TestMemoryAccessIsChecked(t *testing.T) {
	m := compiled(t, mod{}.Bytes(), Options{})
	in, err := m.Instantiate(t.Context(), Config{State: &recorder{}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	const size = 17 * abi.PageBytes
	tests := []struct {
		ptr, n uint32
		ok     bool
	}{
		{0, 0, true}, {0, size, true}, {size, 0, true}, {size - 1, 1, true},
		{size, 1, false}, {size + 1, 0, false}, {0, size + 1, false},
		{1<<32 - 1, 1<<32 - 1, false}, {1<<32 - 1, 1, false}, {0xffffff00, 0xffffffff, false}, {0x100, 0xffffffff, false},
	}
	for _, tt := range tests {
		b, ok := in.Read(tt.ptr, tt.n)
		if ok != tt.ok || in.Contains(tt.ptr, tt.n) != tt.ok || len(b) != int(tt.n) && ok {
			t.Errorf("%d bytes at %d: %v, want %v", tt.n, tt.ptr, ok, tt.ok)
		}
		if !ok && cap(b) > 0 {
			t.Errorf("%d bytes at %d: allocated", tt.n, tt.ptr)
		}
	}
	if in.Write(size-1, []byte("ab")) || !in.Write(size-2, []byte("ab")) {
		t.Error("writing at the memory's end")
	}
	b, _ := in.Read(size-2, 2)
	if in.Write(size-2, []byte("cd")); string(b) != "ab" {
		t.Errorf("E12: what was read changed to %q", b)
	}
}

func TestPrintedLines(t *testing.T) {
	m := compiled(t, mod{Do: steps(
		dialecttest.Print(1, "one\ntwo"), dialecttest.Print(2, "err\n\n"), dialecttest.Print(1, "three\n"),
		dialecttest.Print(1, "a line longer than ten\nlast"), dialecttest.Exit(1))}.Bytes(), Options{})
	_, r, err := run(t, m)
	want := "2:err 2: 1:one 1:twothree 1:a line lon 1:last"
	if got := sortedByStream(r.lines); got != want || errorText(err) != "trap: left with exit code 1" {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// sortedByStream puts lines of standard error first, for there is no order
// between the two.
func sortedByStream(lines []string) string {
	var first, second []string
	for _, l := range lines {
		if l[0] == '2' {
			first = append(first, l)
		} else {
			second = append(second, l)
		}
	}
	return strings.Join(append(first, second...), " ")
}

func TestSleepEndsWithTheContext(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Sleep(time.Hour), dialecttest.Write("awake"))}.Bytes(), Options{})
	r := &recorder{}
	in, err := m.Instantiate(t.Context(), Config{State: r})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel) // by then it sleeps, on a busy machine too
	if _, err := in.Call(ctx, "call"); err != nil || r.out.String() != "awake" {
		t.Errorf("%q, %v", r.out.String(), err)
	}
}

// E19: no clock that a guest can read is finer than a millisecond, and the
// monotonic one never goes back.
func TestE19_ClocksAreCoarse(t *testing.T) {
	in := &Instance{owner: &Module{started: time.Now()}}
	last, seen := int64(0), map[int64]bool{}
	for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
		n := in.nanotime()
		if n <= 0 || n%int64(tick) != 0 || n < last {
			t.Fatalf("monotonic clock reads %d after %d", n, last)
		}
		last = n
		seen[n] = true
		if _, nsec := walltime(); nsec%int32(tick) != 0 {
			t.Fatalf("wall clock reads %d ns", nsec)
		}
	}
	if most := int(time.Since(in.owner.started)/tick) + 2; len(seen) > most {
		t.Errorf("%d different readings, at most %d", len(seen), most)
	}
}

func TestCallingWhatIsNotThere(t *testing.T) {
	m := compiled(t, mod{}.Bytes(), Options{})
	in, err := m.Instantiate(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	if _, err := in.Call(t.Context(), "nope"); errorText(err) != `module: export "nope" is missing` {
		t.Error(err)
	}
	if m.Exports("nope") || !m.Exports("call") {
		t.Error("Exports is wrong")
	}
}

func TestCloseWaitsForNobodyAndHappensOnce(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Write("still here"))}.Bytes(), Options{})
	r := &recorder{}
	in, err := m.Instantiate(t.Context(), Config{State: r})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Instantiate(t.Context(), Config{}); errorText(err) != "internal: the module is closed" {
		t.Errorf("instance of a closed module: %v", err)
	}
	if _, err := in.Call(t.Context(), "call"); err != nil || r.out.String() != "still here" {
		t.Errorf("call in a module that was closed meanwhile: %q, %v", r.out.String(), err)
	}
	for range 2 {
		if err := in.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSystemCallsWithBadArguments(t *testing.T) {
	tests := []struct {
		name string
		step dialecttest.Step
		want string
	}{
		// 2^28 subscriptions of 48 bytes are 0 bytes in 32 bits.
		{"poll_oneoff", dialecttest.Import(SystemModule, "poll_oneoff", "iiii", "i", 0, 64, 1<<28, 128), "no error"},
		{"random_get", dialecttest.Import(SystemModule, "random_get", "ii", "i", -1, -1), "no error"},
		{"fd_write", dialecttest.Import(SystemModule, "fd_write", "iiii", "i", 1, -1, -1, -1), "no error"},
		{"path_open", dialecttest.Import(SystemModule, "path_open", "iiiiillii", "i", 3, 0, 0, 1, 0, 0, 0, 0, 0), "no error"},
	}
	for _, tt := range tests {
		m := compiled(t, mod{Do: steps(tt.step)}.Bytes(), Options{})
		if _, _, err := run(t, m); errorText(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestPanicInTheLineSink(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Print(1, "a\n"))}.Bytes(), Options{})
	in, err := m.Instantiate(t.Context(), Config{State: &recorder{}, Line: func(int, []byte) { panic("secret") }})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	if _, err := in.Call(t.Context(), "call"); errorText(err) != "internal: a host function failed; the log says how" {
		t.Error(err)
	}
}

func TestClosedMemoryIsOutOfReach(t *testing.T) {
	m := compiled(t, mod{Do: steps(dialecttest.Exit(1))}.Bytes(), Options{})
	in, err := m.Instantiate(t.Context(), Config{State: &recorder{}})
	if err != nil {
		t.Fatal(err)
	}
	if !in.Contains(0, 1) {
		t.Error("no memory while it lives")
	}
	if _, err := in.Call(t.Context(), "call"); err == nil {
		t.Error("no exit")
	}
	if in.Contains(0, 1) || in.Write(0, []byte("a")) {
		t.Error("memory can be reached after an exit")
	}
	if err := in.Close(t.Context()); err != nil || in.Contains(0, 1) {
		t.Errorf("memory can be reached after Close: %v", err)
	}
}

func TestNoMemoryForAnInstance(t *testing.T) {
	in := &Instance{owner: &Module{}}
	want := "limit: no memory for another instance: fewer calls at a time, or less memory for each (limits.memory)"
	if err := in.startPanic(errNoRoom); errorText(err) != want {
		t.Error(err)
	}
}

// skipUnlessRequired skips a test or benchmark for want of something that .ci/run has.
func skipUnlessRequired(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("HUTCH_REQUIRE") == "all" {
		t.Fatal(why)
	}
	t.Skip(why)
}
