package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// Many callers, workers killed at random, versions retired, calls cancelled:
// every call ends, with its own answer or a failure of a class that fits.
func TestHammer(t *testing.T) {
	callers, rounds := 8, 40
	if testing.Short() {
		rounds = 10
	}
	p := newReal(t, Options{Calls: 4, MemoryBudget: 16 << 20, Grace: 5 * time.Millisecond, CacheDir: t.TempDir() + "/cache"})
	modules := []Module{
		doing(),
		doing(dialecttest.Log(abi.Info, 1, "a"), dialecttest.Echo()),
		doing(dialecttest.Sleep(2*time.Millisecond), dialecttest.Echo()),
	}
	stop := make(chan struct{})
	var chaos, calls sync.WaitGroup
	chaos.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(rand.N(30 * time.Millisecond)):
			}
			if n%3 == 0 {
				p.Retire(modules[rand.N(len(modules))].Digest)
				continue
			}
			if procs := p.processes(); len(procs) > 0 {
				procs[rand.N(len(procs))].child.kill()
			}
		}
	})
	for c := range callers {
		calls.Go(func() {
			for r := range rounds {
				hammerOnce(t, p, modules[rand.N(len(modules))], fmt.Sprintf(`{"call":"%d-%d"}`, c, r))
			}
		})
	}
	calls.Wait()
	close(stop)
	chaos.Wait()
	if s := p.Stats(); s.Running != 0 || s.Calls != uint64(callers*rounds) {
		t.Errorf("stats %+v, want no call left", s)
	}
	waitUntil(t, func() bool { return pending(p) == 0 })
}

func hammerOnce(t *testing.T, p *Pool, m Module, arguments string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := tool("echo", arguments)
	in.Log = func(abi.LogLevel, string) {}
	hasty := rand.N(4) == 0
	if hasty {
		defer time.AfterFunc(rand.N(3*time.Millisecond), cancel).Stop()
	}
	body, _, err := p.Call(ctx, m, in)
	switch {
	case err == nil:
		if !strings.Contains(string(body), arguments) {
			t.Errorf("asked %s, got %q", arguments, body)
		}
	case hasty && errors.Is(err, &abi.Failure{Class: abi.ClassCancelled}):
	case errors.Is(err, &abi.Failure{Class: abi.ClassWorkerLost}):
	default:
		t.Errorf("asked %s, got %v", arguments, err)
	}
}

// First calls, later calls and retirements of a few modules, as fast as workers
// in memory can be started: locks taken in two orders would meet here.
func TestHammerStarts(t *testing.T) {
	f := newUsual(t, Options{Rate: 1 << 30})
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range 300 {
				m := numbered(rand.N(3))
				if rand.N(2) == 0 {
					f.Retire(m.Digest)
				}
				body, _, err := f.Call(t.Context(), m, tool("echo", `{}`))
				if err != nil || string(body) != `{}` {
					t.Errorf("got %q, %v", body, err)
				}
			}
		})
	}
	callers.Wait()
	if s := f.Stats(); s.Running != 0 || s.Reruns != 0 || s.Ends["retired"] == 0 {
		t.Errorf("stats %+v, want nothing but retirements", s)
	}
}
