package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker"
)

func TestFailedLoadKeepsTheVersionBefore(t *testing.T) {
	w := newWorld(t)
	good := w.offers("x.wasm", "1", "x")
	w.apply(good)
	bad := []tool.Candidate{
		w.file("x.wasm", []byte("half a module")),
		{Name: "x.wasm", Source: "tools", Err: fmt.Errorf("17825792 bytes, at most 16777216")},
		w.module("x.wasm", dialecttest.Module{Tools: specs("x"), Requests: tool.Requests{"nonsense": json.RawMessage(`1`)}}),
		w.module("x.wasm", dialecttest.Module{Tools: specs("x"), Requests: tool.Requests{"http": json.RawMessage(`1`)}}),
	}
	for i, want := range []string{"pre-check", "at most 16777216", "asks for nonsense", "held: asks for something"} {
		w.apply(bad[i])
		w.says("x.wasm", tool.Ready, "serving the version before (sha256:"+good.Digest[:12]+"…): ")
		w.says("x.wasm", tool.Ready, want)
		w.lists("x")
		if m := w.Modules()[0]; m.Serving != good.Digest || m.Digest != bad[i].Digest {
			t.Errorf("serves %.12s, the file is %.12s", m.Serving, m.Digest)
		}
	}
	w.apply(w.offers("x.wasm", "2", "y"))
	w.says("x.wasm", tool.Ready, "")
	w.lists("y")
}

// Deleting a file while a call of it runs: the call ends well, the next finds
// nothing, and only then is the worker given up (F15).
func TestF15_DeleteWhileACallRuns(t *testing.T) {
	w := newWorld(t)
	c := w.offers("x.wasm", "1", "x")
	w.apply(c)
	running, finish := make(chan struct{}), make(chan struct{})
	w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) {
		close(running)
		<-finish
		return rawjson.Marshal(tool.Text("done"))
	}
	answer := make(chan string)
	go func() {
		text, err := w.text("x", `{}`)
		answer <- fmt.Sprint(text, err)
	}()
	<-running
	w.apply()
	w.lists()
	if _, err := w.text("x", `{}`); err == nil || err.Error() != "Tool not found: x" {
		t.Errorf("the next call: %v", err)
	}
	if len(w.workers.retired) != 0 {
		t.Error("retired while a call runs")
	}
	close(finish)
	if got := <-answer; got != "done<nil>" {
		t.Errorf("the running call: %s", got)
	}
	if !slices.Equal(w.workers.retired, []string{c.Digest}) {
		t.Errorf("retired %v, want the deleted module", w.workers.retired)
	}
}

// Two files with the same bytes are two modules on one worker (E22).
func TestE22_IdenticalBytesDoNotRetireEachOther(t *testing.T) {
	w := newWorld(t)
	a := w.offers("a.wasm", "1", "x")
	copied := a
	copied.Name = "copy.wasm"
	w.apply(a, copied)
	w.says("a.wasm", tool.Ready, "")
	w.says("copy.wasm", tool.Rejected, "already offered by a.wasm")
	w.apply(copied)
	w.says("copy.wasm", tool.Ready, "")
	if len(w.workers.retired) != 0 {
		t.Errorf("retired %v though a file has these bytes", w.workers.retired)
	}
	if got, err := w.text("x", `{}`); err != nil || got != "x{}" {
		t.Errorf("the other file's tool: %q, %v", got, err)
	}
	if n := len(w.workers.described); n != 1 {
		t.Errorf("the same bytes were described %d times", n)
	}
	w.apply()
	if !slices.Equal(w.workers.retired, []string{a.Digest}) {
		t.Errorf("retired %v, want it once", w.workers.retired)
	}
}

// A hundred calls race fifty reloads: every call is answered by one version
// (F16), and a list taken meanwhile never lacks a tool.
func TestF16_CallsRaceReloads(t *testing.T) {
	w := newWorld(t)
	var versions []tool.Candidate
	for i := range 50 {
		versions = append(versions, w.offers("x.wasm", fmt.Sprint(i), "x", "y"))
	}
	w.apply(versions[0])
	w.workers.call = func(_ context.Context, m worker.Module, in abi.Invocation) ([]byte, error) {
		raw, err := m.Bytes()
		if err != nil || len(raw) == 0 {
			return nil, abi.Failf(abi.ClassInternal, "no bytes")
		}
		return rawjson.Marshal(tool.Text(in.Tool))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				if got, err := w.text("x", `{"a":1}`); err != nil || got != "x" {
					t.Errorf("call = %q, %v", got, err)
				}
			}
		})
		all.Go(func() {
			for range 250 {
				if n := len(w.List(tool.Caller{})); n != 2 {
					t.Errorf("a list of %d tools, want 2 at any time", n)
				}
			}
		})
	}
	for _, v := range versions[1:] {
		w.apply(v)
	}
	all.Wait()
	w.apply()
	slices.Sort(w.workers.retired)
	if n := len(slices.Compact(w.workers.retired)); n != 50 {
		t.Errorf("%d versions retired, want all 50", n)
	}
	if len(w.uses) != 0 {
		t.Errorf("still in use: %v", w.uses)
	}
}

// Everything at once, for the race detector: applies from several goroutines,
// calls, lists, views, subscriptions.
func TestHammer(t *testing.T) {
	w := newWorld(t)
	var sets [][]tool.Candidate
	for i := range 8 {
		version := fmt.Sprint(i)
		sets = append(sets, []tool.Candidate{w.offers("a.wasm", version, "a", "a"+version), w.offers("b.wasm", version, "b")})
	}
	sets = append(sets, nil)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 20 {
				w.apply(sets[(g*7+i)%len(sets)]...)
			}
		})
		all.Go(func() {
			for range 50 {
				if _, err := w.text("b", `{}`); err != nil && err.Error() != "Tool not found: b" {
					t.Error(err)
				}
				w.List(tool.Caller{})
				w.Modules()
			}
		})
		all.Go(func() {
			for range 20 {
				w.Subscribe(func() { w.List(tool.Caller{}) })()
			}
		})
	}
	all.Wait()
	w.apply()
	if len(w.uses) != 0 {
		t.Errorf("still in use: %v", w.uses)
	}
}

// Who listens is told once for each change that can be seen, and only then.
func TestSubscribersAreToldOfVisibleChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		told := 0
		stop := w.Subscribe(func() { told++ })
		expect := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			if told != want {
				t.Errorf("%s: told %d times, want %d", what, told, want)
			}
			told = 0
		}
		a, b := w.offers("a.wasm", "1", "a"), w.offers("b.wasm", "1", "b")
		w.apply()
		expect("nothing at all", 0)
		w.apply(a, b)
		expect("two modules at once", 1)
		w.apply(b, a)
		expect("another order", 0)
		w.apply(w.offers("a.wasm", "2", "a"), b)
		expect("new bytes, same tools", 0)
		w.apply(w.file("a.wasm", []byte("broken")), b)
		expect("a broken version", 0)
		w.apply(w.offers("a.wasm", "3", "a", "more"), b)
		expect("one tool more", 1)
		w.apply(b)
		expect("one file less", 1)
		stop()
		w.apply()
		expect("after stop", 0)
	})
}

func TestSlowSubscriberIsToldOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		told, release := 0, make(chan struct{})
		w.Subscribe(func() { told++; <-release })
		for i := range 20 {
			w.apply(w.offers("a.wasm", "1", fmt.Sprint("t", i)))
			synctest.Wait()
		}
		if told != 1 {
			t.Errorf("told %d times while it was busy", told)
		}
		close(release)
		synctest.Wait()
		if told != 2 {
			t.Errorf("told %d times, want once more for all that came meanwhile", told)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanickingSubscriberHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		told := 0
		w.Subscribe(func() { panic("boom") })
		w.Subscribe(func() { told++ })
		w.apply(w.offers("a.wasm", "1", "a"))
		synctest.Wait()
		w.apply()
		synctest.Wait()
		if told != 2 {
			t.Errorf("the other one was told %d times, want 2", told)
		}
		if !strings.Contains(w.log.String(), "boom") {
			t.Error("the log does not say so")
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

// While something compiles, what is known is usable already.
func TestKnownToolsDoNotWaitForACompilation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		known := w.offers("known.wasm", "1", "known")
		w.apply(known)
		w.start()
		slow := w.offers("a-slow.wasm", "1", "slow")
		compiling := make(chan struct{})
		w.o.Workers = slowWorkers{w.workers, compiling}
		go w.apply(slow, known)
		synctest.Wait()
		w.lists("known")
		w.says("a-slow.wasm", tool.Held, "is being loaded")
		close(compiling)
		synctest.Wait()
		w.lists("known", "slow")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

type slowWorkers struct {
	*workers
	done chan struct{}
}

func (s slowWorkers) Describe(ctx context.Context, m worker.Module) ([]byte, error) {
	<-s.done
	return s.workers.Describe(ctx, m)
}

// At most two modules are in memory at once.
func TestAdmissionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &countingWorkers{workers: w.workers, done: make(chan struct{})}
		w.o.Workers = s
		var set []tool.Candidate
		for i := range 5 {
			set = append(set, w.offers(fmt.Sprint(i, ".wasm"), "1", fmt.Sprint("t", i)))
		}
		go w.apply(set...)
		synctest.Wait()
		if s.now != 2 {
			t.Errorf("%d modules at once, want 2", s.now)
		}
		close(s.done)
		synctest.Wait()
		w.lists("t0", "t1", "t2", "t3", "t4")
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

type countingWorkers struct {
	*workers
	mu   sync.Mutex
	now  int
	done chan struct{}
}

func (s *countingWorkers) Describe(ctx context.Context, m worker.Module) ([]byte, error) {
	s.mu.Lock()
	s.now++
	s.mu.Unlock()
	<-s.done
	return s.workers.Describe(ctx, m)
}

func TestCancelledApplyIsMadeGoodByTheNext(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := w.offers("x.wasm", "1", "x")
	w.Apply(ctx, []tool.Candidate{c})
	w.says("x.wasm", tool.Rejected, "was not read: hutch is stopping")
	w.apply(c)
	w.says("x.wasm", tool.Ready, "")
}
