package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// neighbours are modules that do what they can to disturb others. Each is called
// again and again, as an agent would that does not learn.
func neighbours() map[string]Module {
	return map[string]Module{
		"spinner":    doing(dialecttest.Exponential()),
		"recursion":  doing(dialecttest.Recurse()),
		"tables":     asModule("grow.wasm", wasmbintest.ToolNamed("tablegrowbounded")),
		"memory":     doing(dialecttest.Grow(1000), dialecttest.Loop()),
		"log flood":  doing(dialecttest.Log(abi.Info, 1<<30, "look at me, look at me, look at me, look at me")),
		"output":     doing(dialecttest.Output(8 << 20)),
		"calls host": doing(dialecttest.Op(abi.OpKVGet, 1<<30, `{"key":"a"}`)),
	}
}

// beside runs f while a module is called over and over from two goroutines.
func beside(t testing.TB, p *Pool, m Module, f func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for ctx.Err() == nil {
				in := tool("echo", `{}`)
				in.Limits.Wall = 500 * time.Millisecond
				in.Log = func(abi.LogLevel, string) {}
				in.Host = func(context.Context, abi.Request) abi.Response { return abi.Response{Body: []byte("{}")} }
				// It fails, which is the point.
				_, _, _ = p.Call(ctx, m, in)
			}
		})
	}
	f()
	cancel()
	callers.Wait()
}

// disturbance is what a good module's calls and this process's own work took.
type disturbance struct{ calls, collections, wakeups []time.Duration }

// measure calls a good module, collects garbage and wakes up, n times each.
func (d *disturbance) measure(t testing.TB, p *Pool, good Module, n int) {
	for range n {
		d.calls = append(d.calls, during(func() {
			if _, _, err := p.Call(t.Context(), good, tool("echo", `{}`)); err != nil {
				t.Errorf("a good call beside: %v", err)
			}
		}))
		d.collections = append(d.collections, during(runtime.GC))
		woken := during(func() { time.Sleep(time.Millisecond) })
		d.wakeups = append(d.wakeups, woken-time.Millisecond)
	}
}

func during(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// quantile returns the value below which the share q of took lies.
func quantile(took []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[int(q*float64(len(sorted)-1))]
}

// Whatever a module does in its worker, no call of another fails, and this
// process goes on collecting garbage. The bounds are for liveness: a collection
// that waits for a guest would take the half second that its call lasts.
func TestHostileNeighboursDisturbNobody(t *testing.T) {
	good := asModule("good.wasm", dialecttest.Module{}.Bytes())
	for name, m := range neighbours() {
		t.Run(name, func(t *testing.T) {
			p := newReal(t, Options{})
			if _, err := p.Describe(t.Context(), good); err != nil {
				t.Fatal(err)
			}
			var d disturbance
			beside(t, p, m, func() {
				time.Sleep(50 * time.Millisecond) // the neighbour starts
				d.measure(t, p, good, 40)
			})
			if took := quantile(d.collections, 0.5); took > 200*time.Millisecond {
				t.Errorf("half of the collections took more than %v", took)
			}
			if took := quantile(d.wakeups, 0.5); took > 200*time.Millisecond {
				t.Errorf("half of the timers were more than %v late", took)
			}
		})
	}
}

// E01: a call that its time, its fuel or its caller has left stops at a slice of its
// fuel. Others of the module in the same worker go on meanwhile and answer, one that
// only computes and one that asks in between; none of them is run again.
func TestE01_NeighboursInOneWorkerGoOn(t *testing.T) {
	m := asModule("scribbler.wasm", scribbler())
	for name, loop := range map[string]soil{
		"deadline": {tool: "loop", limits: abi.Limits{Wall: 200 * time.Millisecond}, class: abi.ClassTimeout},
		"fuel":     {tool: "loop", limits: abi.Limits{Fuel: 50 << 20}, class: abi.ClassLimit},
		"caller":   {tool: "loop", leave: true, class: abi.ClassCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			p := newReal(t, Options{Calls: 3, Grace: 10 * time.Second})
			if _, err := p.Describe(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			want, worker := soil{tool: "check"}.in(t, p, m), onlyProcess(t, p)
			asking, asked, stopped := asksUntil()
			answers := make(chan string)
			for _, in := range []abi.Invocation{asking, tool("steady", `{}`)} {
				go func() {
					body, _, err := p.Call(t.Context(), m, in)
					answers <- fmt.Sprintf("%s%v", body, err)
				}()
			}
			<-asked
			waitUntil(t, func() bool { return pending(p) == 2 })
			loop.call(t, p, m)
			stopped()
			for range 2 {
				if got := <-answers; got != want+"<nil>" {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			waitUntil(t, func() bool { return pending(p) == 0 })
			if s := p.Stats(); onlyProcess(t, p) != worker || s.Starts != 1 || s.Reruns != 0 || len(s.Ends) != 0 {
				t.Errorf("stats %+v, want the one worker alive", s)
			}
		})
	}
}

// asksUntil returns a call that goes on until it is stopped, and what tells that it
// has begun.
func asksUntil() (in abi.Invocation, asked <-chan struct{}, stop func()) {
	first, stopped := make(chan struct{}), make(chan struct{})
	var once sync.Once
	in = tool("wait", `{}`)
	in.Limits.HostCalls = 1 << 30
	in.Host = func(context.Context, abi.Request) abi.Response {
		once.Do(func() { close(first) })
		select {
		case <-stopped:
			return abi.Response{Body: json.RawMessage(`{}`)}
		default:
			return abi.Response{Body: json.RawMessage(`{"go":"on"}`)}
		}
	}
	return in, first, sync.OnceFunc(func() { close(stopped) })
}

// BenchmarkNeighbour is a good module's call, a garbage collection and a timer of
// this process, alone and beside each hostile module.
func BenchmarkNeighbour(b *testing.B) {
	good := asModule("good.wasm", dialecttest.Module{}.Bytes())
	run := func(b *testing.B, m *Module) {
		p := newReal(b, Options{Rate: 1 << 30})
		if _, err := p.Describe(b.Context(), good); err != nil {
			b.Fatal(err)
		}
		var d disturbance
		measure := func() { d.measure(b, p, good, b.N) }
		if m == nil {
			measure()
		} else {
			beside(b, p, *m, measure)
		}
		for unit, took := range map[string][]time.Duration{"call": d.calls, "gc": d.collections, "timer": d.wakeups} {
			b.ReportMetric(float64(quantile(took, 0.5).Nanoseconds())/1e3, unit+"-p50-us")
			b.ReportMetric(float64(quantile(took, 0.99).Nanoseconds())/1e3, unit+"-p99-us")
		}
	}
	b.Run("alone", func(b *testing.B) { run(b, nil) })
	for name, m := range neighbours() {
		b.Run(name, func(b *testing.B) { run(b, &m) })
	}
}
