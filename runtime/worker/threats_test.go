package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// D19: a start function has the time of a call and no more, and so has whatever
// else runs before the first call.
func TestD19_StartThatLoops(t *testing.T) {
	loop := []dialecttest.Step{dialecttest.Loop()}
	for name, hangs := range map[string]dialecttest.Module{
		"start": {Start: loop}, "initialize": {Initialize: loop}, "describe": {Describe: loop},
	} {
		t.Run(name, func(t *testing.T) {
			p := newReal(t, Options{})
			m := asModule(name+".wasm", hangs.Bytes())
			m.Limits.Wall = 300 * time.Millisecond
			began := time.Now()
			_, err := p.Describe(t.Context(), m)
			wantLimit(t, err, abi.ClassTimeout, abi.LimitWall)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			waitUntil(t, func() bool { return pending(p) == 0 })
			if s := p.Stats(); s.Starts != 1 || len(s.Ends) != 0 {
				t.Errorf("stats %+v, want the worker to go on", s)
			}
		})
	}
}

// D20: a start function that traps, or that is the host's own, is the module's
// failure and nobody else's.
func TestD20_StartThatCannotBe(t *testing.T) {
	w := wasmbintest.Hex
	imported := wasmbintest.Module(
		wasmbintest.Section(1, w("02 60 017f 00  60 00 017f")),
		wasmbintest.Section(2, wasmbintest.Vector(wasmbintest.Join(wasmbintest.Name("wasi_snapshot_preview1"), wasmbintest.Name("proc_exit"), w("00 00")),
			wasmbintest.Join(wasmbintest.Name("hutch:host"), wasmbintest.Name("input_len"), w("00 01")))),
		wasmbintest.Section(3, w("02 01 01")), wasmbintest.Section(5, w("01 0001")),
		wasmbintest.Section(7, wasmbintest.Vector(wasmbintest.Join(wasmbintest.Name("memory"), w("0200")),
			wasmbintest.Join(wasmbintest.Name("describe"), w("0002")), wasmbintest.Join(wasmbintest.Name("call"), w("0003")))),
		wasmbintest.Section(8, w("00")),
		wasmbintest.Section(10, wasmbintest.Repeat(2, wasmbintest.Func(w("00"), w("4100")))),
	)
	p := newReal(t, Options{})
	for _, c := range []struct {
		name  string
		wasm  []byte
		class abi.Class
		text  string
	}{
		{"traps", dialecttest.Module{Start: []dialecttest.Step{dialecttest.Trap()}}.Bytes(), abi.ClassTrap, "does not start: trapped: unreachable"},
		{"imported", imported, abi.ClassModule, "start function"},
	} {
		_, err := p.Describe(t.Context(), asModule(c.name+".wasm", c.wasm))
		wantClass(t, err, c.class, c.text)
	}
	if s := p.Stats(); s.Ends["crash"] != 0 {
		t.Errorf("stats %+v, want no worker lost", s)
	}
}

// E04: as many recursions at once as calls can run leave the worker alive, which
// must have room for their stacks, and this process as it was.
func TestE04_RecursionsAtOnce(t *testing.T) {
	p := newReal(t, Options{Calls: 8})
	m := doing(dialecttest.Recurse())
	if _, err := p.Describe(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	before := heap()
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			_, _, err := p.Call(t.Context(), m, tool("echo", `{}`))
			wantLimit(t, err, abi.ClassLimit, abi.LimitStack)
		})
	}
	calls.Wait()
	if s := p.Stats(); s.Starts != 1 || s.Workers != 1 {
		t.Errorf("stats %+v, want the one worker alive", s)
	}
	if grown := heap() - before; grown > 5<<20 {
		t.Errorf("this process grew by %d bytes", grown)
	}
}

// heap is what of this process's heap is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// E06: tables have no limit in the engine. One that grows needs a maximum; then
// growing it for ever costs the call its time, and nobody else anything.
func TestE06_TablesThatGrow(t *testing.T) {
	p := newReal(t, Options{Calls: 1})
	canary := asModule("canary.wasm", dialecttest.Module{}.Bytes())
	before := heap()
	in := tool("echo", `{}`)
	in.Limits.Wall = 500 * time.Millisecond
	for _, c := range []struct {
		module string
		class  abi.Class
		text   string
	}{
		{"tablegrowbounded", abi.ClassTimeout, "(limits.timeout)"},
		{"tablegrow", abi.ClassModule, "table 0 declares no maximum"},
	} {
		_, _, err := p.Call(t.Context(), asModule("grow.wasm", wasmbintest.ToolNamed(c.module)), in)
		wantClass(t, err, c.class, c.text)
		if body, _, err := p.Call(t.Context(), canary, tool("echo", `{}`)); err != nil {
			t.Errorf("canary: %q, %v", body, err)
		}
	}
	if grown := heap() - before; grown > 5<<20 {
		t.Errorf("this process grew by %d bytes", grown)
	}
}

// E15: a host that panics fails the operation, not the call, and its text stays
// on this side.
func TestE15_HostThatPanics(t *testing.T) {
	p := newReal(t, Options{})
	in := tool("echo", `{}`)
	in.Host = func(context.Context, abi.Request) abi.Response { panic("secret token") }
	m := doing(dialecttest.Op(abi.OpKVGet, 1, `{"key":"a"}`))
	for range 2 {
		body, _, err := p.Call(t.Context(), m, in)
		if err != nil || !strings.Contains(string(body), "the operation failed") || strings.Contains(string(body), "secret") {
			t.Errorf("got %q, %v", body, err)
		}
	}
	if s := p.Stats(); s.Starts != 1 {
		t.Errorf("stats %+v, want one worker", s)
	}
}

// E20: no two modules share a process, whatever goes on at once.
func TestE20_OneModuleAWorker(t *testing.T) {
	p := newReal(t, Options{})
	var calls sync.WaitGroup
	for i := range 6 {
		calls.Go(func() {
			m := doing(dialecttest.Write(fmt.Sprintf(`{"module":%d}`, i%3)))
			if _, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	byPID, byDigest := map[int]string{}, map[string]int{}
	for proc, s := range p.procs {
		if other, taken := byPID[proc.child.pid]; taken {
			t.Errorf("process %d runs %s and %s", proc.child.pid, other, s.module.Digest)
		}
		byPID[proc.child.pid] = s.module.Digest
		byDigest[s.module.Digest]++
	}
	if len(byPID) != 3 || len(byDigest) != 3 {
		t.Errorf("%d processes for %d modules, want 3 for 3", len(byPID), len(byDigest))
	}
}

// E21: calls that fail, in each way that leaves the worker alive, leak nothing on
// either side.
func TestE21_FailingCallsLeakNothing(t *testing.T) {
	calls := 3000 // of each kind
	if os.Getenv("HUTCH_SOAK") != "" {
		calls = 10_000
	}
	p := newReal(t, Options{Rate: 1 << 30})
	for name, m := range map[string]Module{
		"trap":   doing(dialecttest.Trap()),
		"error":  doing(dialecttest.Fail(1, "no such city")),
		"output": doing(dialecttest.Output(2 << 20)),
	} {
		fail := func(n int) {
			for range n {
				if _, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err == nil {
					t.Fatalf("%s: a call that fails answered", name)
				}
			}
		}
		fail(calls / 4) // pools and caches fill
		before, worker := heap(), p.weigh()
		fail(calls)
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("%s: this process grew by %d bytes in %d calls", name, grown, calls)
		}
		// Garbage comes and goes, 70 MB of it between two collections; an instance
		// that stayed each time would be 64 KiB a call, twice what is allowed.
		if grown := p.weigh() - worker; grown > int64(calls)*64<<10/2 {
			t.Errorf("%s: the worker grew by %d bytes in %d calls", name, grown, calls)
		}
		if n := pending(p); n != 0 {
			t.Errorf("%s: %d calls are still noted", name, n)
		}
		p.Retire(m.Digest)
		waitUntil(t, func() bool { return p.Stats().Workers == 0 })
	}
}

// E21: good calls of a guest written in Go leave its worker as large as it was after
// the first ones.
func TestE21_GoodCallsLeaveNoMemory(t *testing.T) {
	calls := 1000
	if os.Getenv("HUTCH_SOAK") != "" {
		calls = 10_000
	}
	p := newReal(t, Options{Calls: 1, Rate: 1 << 30})
	m := goGuest(t, "testdata/untidy")
	call := func(i int) {
		in := tool("check", `{}`)
		if i%16 == 0 {
			in.Tool = "fill"
		}
		if _, _, err := p.Call(t.Context(), m, in); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		call(i)
	}
	before := p.weigh()
	for i := range calls {
		call(i)
	}
	if grown := p.weigh() - before; grown > 4<<20 {
		t.Errorf("the worker grew by %d bytes in %d calls", grown, calls)
	}
	if s := p.Stats(); s.Starts != 1 {
		t.Errorf("stats %+v, want one worker", s)
	}
}

// Compiled code belongs to what is compiled: a description that is stamped into
// the file makes it another module, and costs no second compilation.
func TestStampedModuleIsNotCompiledAgain(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	p := newReal(t, Options{CacheDir: cache})
	plain := dialecttest.Module{}.Bytes()
	stamped, err := wasmbin.AppendCustom(plain, "hutch.manifest", dialecttest.Module{}.Description())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range [][]byte{plain, stamped} {
		m := asModule("echo.wasm", file)
		m.Bytes = func() ([]byte, error) {
			checked, err := wasmbin.Check(file, wasmbin.Budget{})
			if err != nil {
				return nil, err
			}
			return checked.Stripped(), nil
		}
		if _, err := p.Describe(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if folders, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(folders) != 1 {
		t.Errorf("compiled code in %d folders, %v, want 1", len(folders), err)
	}
	if p.Stats().Starts != 2 {
		t.Errorf("%d workers, want one for each file", p.Stats().Starts)
	}
}
