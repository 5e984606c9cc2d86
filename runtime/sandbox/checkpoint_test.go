package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// scribbler is a guest whose calls do one thing each to its state:
//
//	store(at, v)  load(at) -> v  fill(v)  grow(pages) -> before  size() -> pages
//	set(v)  sum() -> of all globals  trap()  loop()  deep(n)  close(fd) -> errno
//
// deep calls itself n times and traps.
func scribbler() []byte {
	b := wasmbintest.Hex
	types := wasmbintest.Vector(b("60 02 7f7f 00"), b("60 01 7f 01 7f"), b("60 00 01 7f"), b("60 01 7f 00"), b("60 00 01 7e"), b("60 00 00"))
	functions := []struct {
		name string
		typ  byte
		code string
	}{
		{"store", 0, "2000 2001 3a0000"},
		{"load", 1, "2000 2d0000"},
		{"fill", 3, "4100 2000 3f00 4110 74 fc0b00"},
		{"grow", 1, "2000 4000"},
		{"size", 2, "3f00"},
		{"set", 3, "2000 2400 2000 ad 2401 2000 b2 2402 2000 b7 2403"},
		{"sum", 4, "2300 ac 2301 7c 2302 bc ad 7c 2303 bd 7c"},
		{"trap", 5, "00"},
		{"loop", 5, "0340 0c00 0b"},
		{"deep", 3, "2000 45 0440 00 0b 2000 4101 6b 100a"},
		{"close", 1, "2000 1000"},
	}
	var declared, exports, bodies [][]byte
	for i, f := range functions {
		declared = append(declared, []byte{f.typ})
		exports = append(exports, wasmbintest.Join(wasmbintest.Name(f.name), []byte{0, byte(i + 1)}))
		bodies = append(bodies, wasmbintest.Func(b("00"), b(f.code)))
	}
	return wasmbintest.Module(
		wasmbintest.Section(1, types),
		wasmbintest.Section(2, wasmbintest.Vector(wasmbintest.Join(wasmbintest.Name(SystemModule), wasmbintest.Name("fd_close"), b("00 01")))),
		wasmbintest.Section(3, wasmbintest.Vector(declared...)),
		wasmbintest.Section(5, b("01 00 02")),
		wasmbintest.Section(6, wasmbintest.Vector(b("7f 01 4107 0b"), b("7e 01 4208 0b"), b("7d 01 43 00000041 0b"), b("7c 01 44 0000000000002240 0b"))),
		wasmbintest.Section(7, wasmbintest.Vector(exports...)),
		wasmbintest.Section(10, wasmbintest.Vector(bodies...)),
		wasmbintest.Section(11, wasmbintest.Vector(wasmbintest.Join(b("00 4110 0b"), wasmbintest.Name("data")))),
	)
}

// paged are the options of a module whose pages the system tells of, where it does.
func paged(t testing.TB, o Options) Options {
	t.Helper()
	pages, err := OpenPages(64 << 20)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	o.Pages = pages
	return o
}

// ways runs a test with both ways to bring memory back, in both engines.
func ways(t *testing.T, test func(t *testing.T, o Options)) {
	t.Run("pages", func(t *testing.T) { test(t, paged(t, Options{})) })
	t.Run("compared", func(t *testing.T) { test(t, Options{}) })
	t.Run("interpreter", func(t *testing.T) { test(t, paged(t, Options{Interpret: true})) })
}

func nothing() Config { return Config{} }

// scribbled is what a scribbler's calls find: not what its module says.
func scribbled(ctx context.Context, in *Instance) error {
	for _, do := range [][]uint64{{0, 5}, {100_000, 6}} {
		if _, err := in.Call(ctx, "store", do...); err != nil {
			return err
		}
	}
	if _, err := in.Call(ctx, "set", 77); err != nil {
		return err
	}
	_, err := in.Call(ctx, "grow", 20) // more pages than are copied one by one
	return err
}

func checkpointed(t testing.TB, m *Module, boot func(context.Context, *Instance) error) *Checkpoint {
	t.Helper()
	c, err := m.Checkpoint(t.Context(), 2, nothing, boot)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func leased(t testing.TB, c *Checkpoint) *Lease {
	t.Helper()
	in, err := c.Instance(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// stateOf is all that a guest could see of its instance but for descriptors, in short.
func stateOf(t testing.TB, in *Instance) string {
	t.Helper()
	if in.module.IsClosed() {
		return "closed"
	}
	sum, err := in.Call(t.Context(), "sum")
	if err != nil {
		t.Fatal(err)
	}
	b := in.bytes()
	return fmt.Sprintf("%d bytes %x, globals %x, stack %d", len(b), sha256.Sum256(b), sum, in.mutableGlobals()[0].Get())
}

// descriptorsOf closes descriptors, which tells whether they were open, and ends the
// instance's use.
func descriptorsOf(t testing.TB, in *Instance) string {
	t.Helper()
	var errno []uint64
	for fd := range uint64(3) {
		got, err := in.Call(t.Context(), "close", fd)
		if err != nil {
			t.Fatal(err)
		}
		errno = append(errno, got...)
	}
	return fmt.Sprintf(", descriptors %v", errno)
}

// E16: whatever a call did to memory, globals and descriptors, and however it ended,
// the next one finds what every one finds.
func TestE16_CallsLeaveNothing(t *testing.T) {
	do := func(export string, args ...uint64) func(*testing.T, *Instance) {
		return func(t *testing.T, in *Instance) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if export == "loop" {
				cancel()
			}
			_, err := in.Call(ctx, export, args...)
			if ends := export == "trap" || export == "deep" || export == "loop"; (err != nil) != ends {
				t.Errorf("%s: %v", export, err)
			}
		}
	}
	acts := []struct {
		name string
		do   []func(*testing.T, *Instance)
	}{
		{"every page", []func(*testing.T, *Instance){do("fill", 9)}},
		{"one byte", []func(*testing.T, *Instance){do("store", 70_000, 1)}},
		{"every global", []func(*testing.T, *Instance){do("set", 1<<31-1)}},
		{"trap", []func(*testing.T, *Instance){do("set", 3), do("store", 1, 1), do("trap")}},
		{"trap in the deep", []func(*testing.T, *Instance){do("deep", 1000)}},
		{"out of stack", []func(*testing.T, *Instance){do("deep", 1<<30)}},
		{"cancelled", []func(*testing.T, *Instance){do("fill", 1), do("loop")}},
		{"more memory", []func(*testing.T, *Instance){do("grow", 2), do("fill", 4)}},
		{"a descriptor", []func(*testing.T, *Instance){do("close", 1)}},
	}
	ways(t, func(t *testing.T, o Options) {
		m := compiled(t, scribbler(), o)
		c := checkpointed(t, m, scribbled)
		first := leased(t, c)
		want := stateOf(t, first.Instance) + descriptorsOf(t, first.Instance)
		closed(t, first)
		if !strings.HasPrefix(want, "1441792 bytes") || !strings.Contains(want, "descriptors [0 0 0]") {
			t.Fatal(want)
		}
		for _, act := range acts {
			for range 2 { // once on an instance that was brought back, once on one that was made from the image
				in := leased(t, c)
				for _, f := range act.do {
					f(t, in.Instance)
				}
				closed(t, in)
				next := leased(t, c)
				if got := stateOf(t, next.Instance) + descriptorsOf(t, next.Instance); got != want {
					t.Errorf("%s: the next call finds %s\nwant %s", act.name, got, want)
				}
				closed(t, next)
			}
		}
	})
}

// An instance is used again after a call that only wrote, trapped or was cancelled,
// and not after one that left what its image does not cover.
func TestInstancesAreUsedAgain(t *testing.T) {
	ways(t, func(t *testing.T, o Options) {
		c := checkpointed(t, compiled(t, scribbler(), o), scribbled)
		for export, again := range map[string]bool{
			"fill": true, "set": true, "trap": true, "deep": true, "grow": false, "close": false,
		} {
			in := leased(t, c)
			var args []uint64
			if export != "trap" {
				args = []uint64{1}
			}
			_, err := in.Call(t.Context(), export, args...)
			if ends := export == "trap" || export == "deep"; (err != nil) != ends {
				t.Fatal(export, err)
			}
			closed(t, in)
			next := leased(t, c)
			if (in.Instance == next.Instance) != again {
				t.Errorf("%s: the same instance %v, want %v", export, !again, again)
			}
			closed(t, next)
		}
	})
}

func TestLeaseIsClosedOnce(t *testing.T) {
	c := checkpointed(t, compiled(t, scribbler(), paged(t, Options{})), scribbled)
	one, two := leased(t, c), leased(t, c)
	closed(t, one)
	closed(t, one)
	three, four := leased(t, c), leased(t, c)
	if three.Instance == four.Instance || three.Instance == two.Instance {
		t.Error("two calls have one instance")
	}
	for _, in := range []*Lease{two, three, four} {
		closed(t, in)
	}
	if len(c.idle) != 2 {
		t.Errorf("%d instances are kept, at most 2", len(c.idle))
	}
}

// Instances that are kept make room for others of the module.
func TestKeptInstancesMakeRoom(t *testing.T) {
	m := compiled(t, scribbler(), paged(t, Options{}))
	c := checkpointed(t, m, scribbled)
	one, two := leased(t, c), leased(t, c)
	closed(t, one)
	closed(t, two)
	for n := range 3 {
		in, err := m.Instantiate(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, in)
		if alive := m.users - 1; alive != max(2, n+1) {
			t.Errorf("%d instances are alive", alive)
		}
	}
}

// What a call is given, its fuel above all, is its own.
func TestLeaseHasItsOwnConfig(t *testing.T) {
	wasm := mod{Do: steps(dialecttest.Print(1, "said\n"), dialecttest.Print(2, "unfinished"), dialecttest.Write("done"))}.Bytes()
	m := compiled(t, wasm, paged(t, Options{}))
	c := checkpointed(t, m, func(ctx context.Context, in *Instance) error { return nil })
	var fuel []int64
	for range 3 {
		r := &recorder{}
		in, err := c.Instance(t.Context(), Config{State: r, LineBytes: 5, Line: func(_ int, line []byte) { r.lines = append(r.lines, string(line)) }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Call(t.Context(), "call"); err != nil || r.out.String() != "done" || strings.Join(r.lines, ",") != "said,unfin" {
			t.Errorf("%v: %q, %q", err, r.out.String(), r.lines)
		}
		fuel = append(fuel, in.Fuel())
		closed(t, in)
	}
	if fuel[0] <= 0 || fuel[0] != fuel[1] || fuel[1] != fuel[2] {
		t.Errorf("burned %d", fuel)
	}
	in, err := c.Instance(t.Context(), Config{State: &recorder{}, Fuel: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, in)
	if _, err := in.Call(t.Context(), "call"); errorText(err) != "limit: more than 5 units of fuel were burned (limits.fuel)" {
		t.Error(err)
	}
}

func TestNotCovered(t *testing.T) {
	b := wasmbintest.Hex
	module := func(code string, more ...[]byte) []byte {
		sections := [][]byte{wasmbintest.Section(1, b("01 60 00 00")), wasmbintest.Section(3, b("01 00")), wasmbintest.Section(4, b("01 70 00 02"))}
		sections = append(append(sections, more...), wasmbintest.Section(10, wasmbintest.Vector(wasmbintest.Func(b("00"), b(code)))))
		return wasmbintest.Module(sections...)
	}
	for _, tt := range []struct {
		name string
		wasm []byte
		want string
	}{
		{"table", module("4100 d070 2600"), "its code changes tables"},
		{"vector", module("", wasmbintest.Section(6, b("01 7b 01 fd0c 00000000000000000000000000000000 0b"))), "global 0 is mutable and of type v128"},
		{"reference", module("", wasmbintest.Section(6, b("01 70 01 d070 0b"))), "global 0 is mutable and of type funcref"},
	} {
		m := compiled(t, tt.wasm, paged(t, Options{}))
		_, err := m.Checkpoint(t.Context(), 1, nothing, func(context.Context, *Instance) error { return nil })
		var not *NotCovered
		if !errors.As(err, &not) || not.Reason != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		}
		if m.users != 1 {
			t.Errorf("%s: %d instances are left", tt.name, m.users-1)
		}
	}
	m := compiled(t, scribbler(), paged(t, Options{}))
	_, err := m.Checkpoint(t.Context(), 1, nothing, func(ctx context.Context, in *Instance) error {
		_, err := in.Call(ctx, "close", 2)
		return err
	})
	if !errors.As(err, new(*NotCovered)) || m.users != 1 {
		t.Errorf("a closed descriptor: %v, %d users", err, m.users)
	}
	for _, boot := range []string{"trap", "loop"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := m.Checkpoint(ctx, 1, nothing, func(ctx context.Context, in *Instance) error {
			cancel()
			_, err := in.Call(ctx, boot)
			return err
		})
		if !errors.As(err, new(*abi.Failure)) || m.users != 1 {
			t.Errorf("%s: %v, %d users", boot, err, m.users)
		}
	}
	if c := checkpointed(t, m, scribbled); c.owner != m {
		t.Error("no checkpoint after all")
	}
	if _, err := m.Checkpoint(t.Context(), 1, nothing, scribbled); err == nil {
		t.Error("a second checkpoint")
	}
}

// An instance that is still out when its module is closed is not kept.
func TestCheckpointEndsWithItsModule(t *testing.T) {
	m, err := Compile(t.Context(), checked(t, scribbler()), paged(t, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	c := checkpointed(t, m, scribbled)
	in, other := leased(t, c), leased(t, c)
	closed(t, other)
	closed(t, m)
	if m.users != 1 {
		t.Errorf("%d users while one instance is out", m.users)
	}
	if _, err := in.Call(t.Context(), "fill", 1); err != nil {
		t.Error(err)
	}
	closed(t, in)
	if m.users != 0 {
		t.Errorf("%d users at the end", m.users)
	}
	if _, err := c.Instance(t.Context(), Config{}); err == nil {
		t.Error("an instance of a closed module")
	}
}

// Calls on kept instances and on others, of one module, while it is closed.
func TestCheckpointHammer(t *testing.T) {
	m, err := Compile(t.Context(), checked(t, scribbler()), paged(t, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	var c atomic.Pointer[Checkpoint]
	call := func(i int) error {
		if c := c.Load(); c != nil && i%3 != 0 {
			in, err := c.Instance(t.Context(), Config{})
			if err != nil {
				return err
			}
			got, err := in.Call(t.Context(), "load", 70_000)
			if err != nil || got[0] != 0 {
				t.Errorf("%v, %v: another call was here", got, err)
			}
			if _, err := in.Call(t.Context(), "fill", 1); err != nil {
				t.Error(err)
			}
			return in.Close(t.Context())
		}
		in, err := m.Instantiate(t.Context(), Config{})
		if err != nil {
			return err
		}
		return in.Close(t.Context())
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 50 {
				if err := call(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	kept, err := m.Checkpoint(t.Context(), 2, nothing, scribbled)
	if err != nil {
		t.Fatal(err)
	}
	c.Store(kept)
	all.Wait()
	for i := range 4 {
		all.Go(func() { // whatever comes of it while the module closes
			_ = call(i)
		})
	}
	closed(t, m)
	all.Wait()
	if m.users != 0 {
		t.Errorf("%d users at the end", m.users)
	}
}

func TestUncoveredSaysWhatCodeDoes(t *testing.T) {
	if got := Uncovered(&wasmbin.Rewritten{DropsData: true}); got != "its code drops data segments" {
		t.Error(got)
	}
	if got := Uncovered(&wasmbin.Rewritten{Mutable: []wasmbin.MutableGlobal{{Type: wasmbin.F64}}}); got != "" {
		t.Error(got)
	}
}

// FuzzCheckpoint makes the same calls on instances of a checkpoint and on new ones:
// both give the same, whatever the calls before did.
func FuzzCheckpoint(f *testing.F) {
	for _, seed := range []string{"\x00\x01\x02", "\x07\x00\x00\x01\x05\x09", "\x03\x01\x00\x02\x06\xff", "\x08\x00\x00\x09\x10\x00\x0a\x01\x00"} {
		f.Add([]byte(strings.Repeat(seed, 20)))
	}
	random := rand.NewChaCha8([32]byte{1})
	for range 20 {
		script := make([]byte, 120)
		_, _ = random.Read(script) // it never fails
		f.Add(script)
	}
	type maker struct {
		m *Module
		c *Checkpoint
	}
	var makers []maker
	for _, o := range []Options{paged(f, Options{}), {}} {
		o.Limits = abi.Limits{MemoryBytes: 24 * abi.PageBytes}
		m, err := Compile(f.Context(), checked(f, scribbler()), o)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() {
			if err := m.Close(context.Background()); err != nil {
				f.Error(err)
			}
		})
		makers = append(makers, maker{m, checkpointed(f, m, scribbled)})
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		for calls := slices.Collect(slices.Chunk(script, 12)); len(calls) > 0; calls = calls[1:] {
			fresh, err := makers[0].m.Instantiate(t.Context(), Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := scribbled(t.Context(), fresh); err != nil {
				t.Fatal(err)
			}
			want := playOn(t, fresh, calls[0])
			closed(t, fresh)
			for i, m := range makers {
				in := leased(t, m.c)
				if got := playOn(t, in.Instance, calls[0]); got != want {
					t.Fatalf("way %d: %q gives\n%s\nwant\n%s", i, calls[0], got, want)
				}
				closed(t, in)
			}
		}
	})
}

// playOn makes calls that bytes stand for, three for each, and returns all that came
// of them.
func playOn(t *testing.T, in *Instance, script []byte) string {
	exports := []struct {
		name string
		args int
	}{{"store", 2}, {"load", 1}, {"fill", 1}, {"grow", 1}, {"size", 0}, {"set", 1}, {"sum", 0}, {"trap", 0}, {"loop", 0}, {"deep", 1}, {"close", 1}}
	var said strings.Builder
	for op := range slices.Chunk(script, 3) {
		op = append(slices.Clone(op), 0, 0)
		e := exports[int(op[0])%len(exports)]
		number := uint64(binary.LittleEndian.Uint16(op[1:]))
		args := []uint64{number * 3, number}[:e.args]
		if e.name == "grow" || e.name == "close" {
			args[0] %= 5
		}
		ctx, cancel := context.WithCancel(t.Context())
		if e.name == "loop" {
			cancel()
		}
		results, err := in.Call(ctx, e.name, args...)
		cancel()
		fmt.Fprintf(&said, "%s %v: %v %s\n", e.name, args, results, errorText(err))
		if f := (*abi.Failure)(nil); errors.As(err, &f) && f.Limit == abi.LimitStack {
			return said.String() // it has none left, and is good for closing only
		}
	}
	return said.String() + stateOf(t, in)
}
