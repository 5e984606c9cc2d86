package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestCallAndDescribe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		body, usage, err := f.Call(t.Context(), numbered(1), tool("echo", `{"a":1}`))
		wantAnswer(t, string(body), err, `{"a":1}`)
		if usage.LogLines != 7 {
			t.Errorf("usage %+v, want the guest's 7 log lines", usage)
		}
		text, err := f.Describe(t.Context(), numbered(1))
		wantAnswer(t, string(text), err, `{"tools":[]}`)
		if s := f.Stats(); s.Starts != 1 || s.Workers != 1 || s.Calls != 2 {
			t.Errorf("stats %+v, want one worker for both", s)
		}
	})
}

// What a call can come to without anybody being killed.
func TestCallFailures(t *testing.T) {
	small := numbered(1)
	small.Limits.InputBytes = 10
	bare := numbered(1)
	bare.Digest = "../../etc"
	for _, test := range []struct {
		name  string
		m     Module
		in    abi.Invocation
		class abi.Class
		text  string
	}{
		{"guest's own error", numbered(1), tool("nosuch", `{}`), abi.ClassGuest, `no tool "nosuch"`},
		{"error that is no failure", numbered(1), tool("fail", `{}`), abi.ClassInternal, "log has details"},
		{"panic in the worker", numbered(1), tool("panic", `{}`), abi.ClassInternal, "log has details"},
		{"result over the limit", numbered(1), tool("large", `{}`), abi.ClassLimit, "result of 2097152 bytes, at most 1048576"},
		{"arguments over the module's limit", small, tool("echo", `{"a":12345}`), abi.ClassLimit, "arguments of 11 bytes, at most 10"},
		{"digest that is no name for a folder", bare, tool("echo", `{}`), abi.ClassInternal, "64 lower-case hex digits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newUsual(t, Options{})
				_, _, err := f.Call(t.Context(), test.m, test.in)
				wantClass(t, err, test.class, test.text)
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("error %q shows what only the log may", err)
				}
				body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
				wantAnswer(t, string(body), err, `{}`)
			})
		})
	}
}

func TestFirstCallsShareOneStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{Calls: 64}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			time.Sleep(time.Second)
			return &fakeGuest{w, usual}, nil
		})
		var calls sync.WaitGroup
		for range 32 {
			calls.Go(func() {
				body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
				if err != nil || string(body) != `{}` {
					t.Errorf("got %q, %v", body, err)
				}
			})
		}
		calls.Wait()
		if s := f.Stats(); s.Starts != 1 {
			t.Errorf("%d starts, want 1", s.Starts)
		}
	})
}

// A start is nobody's own: the caller who gave up first does not stop it.
func TestStartOutlivesItsFirstCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			time.Sleep(5 * time.Second)
			return &fakeGuest{w, usual}, nil
		})
		hasty := tool("echo", `{}`)
		hasty.Limits.Wall = time.Second
		_, _, err := f.Call(t.Context(), numbered(1), hasty)
		wantClass(t, err, abi.ClassTimeout, "longer than 1s, its limit: the module is still being loaded (limits.timeout)")
		time.Sleep(5 * time.Second)
		body, _, err := f.Call(t.Context(), numbered(1), hasty)
		wantAnswer(t, string(body), err, `{}`)
		if s := f.Stats(); s.Starts != 1 {
			t.Errorf("%d starts, want 1", s.Starts)
		}
	})
}

func TestE01_CallOverItsWallIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		in := tool("stuck", `{}`)
		in.Limits.Wall = 300 * time.Millisecond
		began := time.Now()
		_, _, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassTimeout, "longer than 300ms, its limit")
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %v, want 300ms", took)
		}
		time.Sleep(time.Second)
		if s := f.Stats(); s.Ends["timeout"] != 1 || s.Workers != 0 {
			t.Errorf("stats %+v, want the worker killed", s)
		}
		body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantAnswer(t, string(body), err, `{}`)
	})
}

func TestCallersDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := f.Call(ctx, numbered(1), tool("polite", `{}`))
		wantClass(t, err, abi.ClassTimeout, "the caller's own deadline passed")
	})
}

func TestCancel(t *testing.T) {
	for _, test := range []struct {
		guest  string
		starts uint64 // a guest that does not end costs the worker
		late   uint64
	}{{"polite", 1, 1}, {"stuck", 2, 0}} {
		t.Run(test.guest, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newUsual(t, Options{})
				ctx, cancel := context.WithCancel(t.Context())
				wait := later(f, ctx, numbered(1), tool(test.guest, `{}`))
				synctest.Wait()
				cancel()
				began := time.Now()
				_, err := wait()
				wantClass(t, err, abi.ClassCancelled, "cancelled")
				if took := time.Since(began); took != 0 {
					t.Errorf("the caller waited %v for the guest", took)
				}
				time.Sleep(time.Second)
				body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
				wantAnswer(t, string(body), err, `{}`)
				if s := f.Stats(); s.Starts != test.starts || s.Late != test.late {
					t.Errorf("stats %+v, want %d starts and %d late", s, test.starts, test.late)
				}
			})
		})
	}
}

func TestNeighboursOfAKilledCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		over := tool("stuck", `{}`)
		over.Limits.Wall = time.Second
		clean := tool("slow", `{"clean":true}`)
		clean.Limits.Wall = 10 * time.Second
		gated := tool("asked", `{}`)
		gated.Host = func(context.Context, abi.Request) abi.Response { return abi.Response{Body: []byte("{}")} }

		guilty := later(f, t.Context(), numbered(1), over)
		innocent := later(f, t.Context(), numbered(1), clean)
		marked := later(f, t.Context(), numbered(1), gated)

		_, err := guilty()
		wantClass(t, err, abi.ClassTimeout, "1s")
		_, err = marked()
		wantClass(t, err, abi.ClassWorkerLost, "ended during the call")
		body, err := innocent()
		wantAnswer(t, body, err, `{"clean":true}`)
		if s := f.Stats(); s.Starts != 2 || s.Reruns != 1 {
			t.Errorf("stats %+v, want two starts and one rerun", s)
		}
	})
}

// The second run has what the first left of the call's time.
func TestRerunKeepsItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		over, clean := tool("stuck", `{}`), tool("slow", `{}`)
		over.Limits.Wall, clean.Limits.Wall = time.Second, 2500*time.Millisecond
		guilty := later(f, t.Context(), numbered(1), over)
		began := time.Now()
		_, _, err := f.Call(t.Context(), numbered(1), clean)
		wantClass(t, err, abi.ClassTimeout, "2.5s")
		if took := time.Since(began); took != 2500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		_, err = guilty()
		wantClass(t, err, abi.ClassTimeout, "1s")
	})
}

func TestCrashIsRunAgainOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		_, _, err := f.Call(t.Context(), numbered(1), tool("crash", `{}`))
		wantClass(t, err, abi.ClassWorkerLost, "ended during the call")
		synctest.Wait()
		if s := f.Stats(); s.Starts != 2 || s.Reruns != 1 || s.Ends["crash"] != 2 {
			t.Errorf("stats %+v, want two starts that crashed", s)
		}
		if log := f.logged.String(); !strings.Contains(log, "its last words") || !strings.Contains(log, "module=m1.wasm") {
			t.Errorf("log %q, want the module and what the worker said last", log)
		}
	})
}

// A module whose worker never answers anything is started ever more rarely.
func TestBrokenModuleDoesNotSpin(t *testing.T) {
	load := map[string]func(context.Context, *fakeWorker, []byte) (guest, error){
		"dies while loading": func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) { w.kill(); return nil, nil },
		"does not compile": func(context.Context, *fakeWorker, []byte) (guest, error) {
			return nil, abi.Failf(abi.ClassModule, "no")
		},
		"dies in each call": func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) { return &fakeGuest{w, usual}, nil },
	}
	for name, load := range load {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, Options{}, load)
				var last error
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
					if _, _, last = f.Call(t.Context(), numbered(1), tool("crash", `{}`)); last == nil {
						t.Fatal("call answered")
					}
				}
				// 250 ms, doubled each time, for a minute.
				if s := f.Stats(); s.Starts < 4 || s.Starts > 12 {
					t.Errorf("%d starts in a minute, want about 9", s.Starts)
				}
				if !strings.Contains(last.Error(), "times in a row, next try in") {
					t.Errorf("error %q does not say when it is tried again", last)
				}
			})
		})
	}
}

func TestModuleIsForgivenWhenItAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var starts int
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			if starts++; starts <= 3 {
				w.kill()
			}
			return &fakeGuest{w, usual}, nil
		})
		for range 3 {
			_, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
			wantClass(t, err, abi.ClassWorkerLost, "while it loaded the module")
			time.Sleep(2 * time.Second)
		}
		body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantAnswer(t, string(body), err, `{}`)
		// The fails before are no reason to make its next crash count more.
		if _, _, err = f.Call(t.Context(), numbered(1), tool("crash", `{}`)); err == nil {
			t.Fatal("crash answered")
		}
		body, _, err = f.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantAnswer(t, string(body), err, `{}`)
	})
}

func TestE17_CallsWaitTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var inside gauge
		f := newFake(t, Options{Calls: 3}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			return &fakeGuest{w, behaviour{"work": func(context.Context, *fakeWorker, abi.Invocation) ([]byte, error) {
				inside.enter()
				defer inside.leave()
				time.Sleep(time.Second)
				return []byte("{}"), nil
			}}}, nil
		})
		var order []int
		var mu sync.Mutex
		var calls sync.WaitGroup
		for i := range 9 {
			calls.Go(func() {
				if _, _, err := f.Call(t.Context(), numbered(1), tool("work", `{}`)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i/3)
			})
			synctest.Wait() // so that the line is in order
		}
		calls.Wait()
		if inside.most.Load() != 3 {
			t.Errorf("%d at once, want 3", inside.most.Load())
		}
		if got := fmt.Sprint(order); got != "[0 0 0 1 1 1 2 2 2]" {
			t.Errorf("served in order %v, want as they came", got)
		}
	})
}

func TestWaitingCountsAgainstTheWall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{Calls: 1})
		first := later(f, t.Context(), numbered(1), tool("slow", `{}`))
		synctest.Wait()
		in := tool("echo", `{}`)
		in.Limits.Wall = time.Second
		_, _, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassTimeout, "longer than 1s, its limit: other calls of the tool were running")
		body, err := first()
		wantAnswer(t, body, err, `{}`)
	})
}

func TestCompilationsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var inside gauge
		f := newFake(t, Options{Compilations: 2}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			inside.enter()
			defer inside.leave()
			time.Sleep(3 * time.Second)
			return &fakeGuest{w, usual}, nil
		})
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				m := numbered(i)
				m.Limits.Compile = 4 * time.Second // less than the line is long
				if _, err := f.Describe(t.Context(), m); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if inside.most.Load() != 2 {
			t.Errorf("%d compiled at once, want 2", inside.most.Load())
		}
	})
}

// What is in the cache already does not wait behind a slow compilation.
func TestReplacementDoesNotWaitToCompile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{Compilations: 1, CacheDir: t.TempDir()}, func(_ context.Context, w *fakeWorker, wasm []byte) (guest, error) {
			if string(wasm) == "slow" {
				time.Sleep(20 * time.Second)
			}
			return &fakeGuest{w, usual}, nil
		})
		if _, err := f.Describe(t.Context(), numbered(1)); err != nil {
			t.Fatal(err)
		}
		f.workers[0].kill()
		slow := numbered(2)
		slow.Bytes = func() ([]byte, error) { return []byte("slow"), nil }
		wait := later(f, t.Context(), slow, tool("echo", `{}`))
		synctest.Wait()
		began := time.Now()
		body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantAnswer(t, string(body), err, `{}`)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v", took)
		}
		body2, err := wait()
		wantAnswer(t, body2, err, `{}`)
	})
}

// What an earlier process compiled is used at once, whatever else compiles.
func TestKnownCodeDoesNotWaitToCompile(t *testing.T) {
	dir := t.TempDir()
	known := numbered(1)
	wasm, err := known.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, CodeDigest(wasm)), 0o700); err != nil {
		t.Fatal(err)
	}
	stranger := numbered(2)
	stranger.Bytes = func() ([]byte, error) { return []byte("strange"), nil }
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{Compilations: 1, CacheDir: dir}, func(_ context.Context, w *fakeWorker, wasm []byte) (guest, error) {
			if string(wasm) == "strange" {
				time.Sleep(20 * time.Second)
			}
			return &fakeGuest{w, usual}, nil
		})
		slow := later(f, t.Context(), stranger, tool("echo", `{}`))
		synctest.Wait()
		began := time.Now()
		body, _, err := f.Call(t.Context(), known, tool("echo", `{}`))
		wantAnswer(t, string(body), err, `{}`)
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		text, err := slow()
		wantAnswer(t, text, err, `{}`)
	})
}

func TestCompileOverItsLimitIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			<-w.killed
			return nil, nil
		})
		m := numbered(1)
		m.Limits.Compile = 10 * time.Second
		began := time.Now()
		_, err := f.Describe(t.Context(), m)
		wantClass(t, err, abi.ClassTimeout, "compiling the module took longer than 10s, the limit")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if s := f.Stats(); s.Workers != 0 || s.Ends["compile"] != 1 {
			t.Errorf("stats %+v, want it killed", s)
		}
	})
}

func TestModuleThatCannotBeHad(t *testing.T) {
	for _, test := range []struct {
		name  string
		bytes func() ([]byte, error)
		class abi.Class
		text  string
	}{
		{"error", func() ([]byte, error) { return nil, errors.New("/secret/path: gone") }, abi.ClassInternal, "cannot be read"},
		{"panic", func() ([]byte, error) { panic("/secret/path") }, abi.ClassInternal, "cannot be read"},
		{"too large", func() ([]byte, error) { return make([]byte, maxModule), nil }, abi.ClassModule, "at most 67108864"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newUsual(t, Options{})
				m := numbered(1)
				m.Bytes = test.bytes
				_, _, err := f.Call(t.Context(), m, tool("echo", `{}`))
				wantClass(t, err, test.class, test.text)
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("error %q names a path", err)
				}
			})
		})
	}
}

func TestRetire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		running := later(f, t.Context(), numbered(1), tool("slow", `{"old":true}`))
		synctest.Wait()
		f.Retire(numbered(1).Digest)
		f.Retire(numbered(2).Digest) // never seen: nothing to do

		// A later call is served by a new worker, beside the old one.
		body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{"new":true}`))
		wantAnswer(t, string(body), err, `{"new":true}`)
		if s := f.Stats(); s.Workers != 2 {
			t.Errorf("%d workers, want the old and the new", s.Workers)
		}
		old, err := running()
		wantAnswer(t, old, err, `{"old":true}`)
		synctest.Wait()
		if s := f.Stats(); s.Workers != 1 || s.Ends["retired"] != 1 {
			t.Errorf("stats %+v, want the old one gone", s)
		}
	})
}

func TestRetireIdleAndStarting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			time.Sleep(time.Second)
			return &fakeGuest{w, usual}, nil
		})
		if _, err := f.Describe(t.Context(), numbered(1)); err != nil {
			t.Fatal(err)
		}
		f.Retire(numbered(1).Digest)
		hasty := tool("echo", `{}`)
		hasty.Limits.Wall = time.Millisecond
		_, _, err := f.Call(t.Context(), numbered(2), hasty)
		wantClass(t, err, abi.ClassTimeout, "still being loaded")
		f.Retire(numbered(2).Digest)
		time.Sleep(2 * time.Second)
		if s := f.Stats(); s.Workers != 0 || s.Ends["retired"] != 2 {
			t.Errorf("stats %+v, want both ended", s)
		}
	})
}

func TestIdleWorkersEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{IdleTTL: time.Minute})
		if _, err := f.Describe(t.Context(), numbered(1)); err != nil {
			t.Fatal(err)
		}
		busy := tool("polite", `{}`)
		busy.Limits.Wall = 5 * time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		running := later(f, ctx, numbered(2), busy)
		time.Sleep(59 * time.Second)
		if s := f.Stats(); s.Workers != 2 {
			t.Fatalf("stats %+v after 59 s, want both alive", s)
		}
		time.Sleep(3 * time.Second)
		if s := f.Stats(); s.Workers != 1 || s.Ends["idle"] != 1 {
			t.Fatalf("stats %+v after 62 s, want the busy one left", s)
		}
		cancel()
		if _, err := running(); err == nil {
			t.Fatal("cancelled call answered")
		}
	})
}

func TestMemoryBudgetEvictsLeastRecentlyUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{MemoryBudget: 35 << 20}) // three workers of 10 MiB
		alive := func() string {
			var names []string
			for i := range 5 {
				f.mu.Lock()
				for _, w := range f.workers {
					select {
					case <-w.killed:
					default:
						if w.pid == i+1 {
							names = append(names, fmt.Sprint(w.pid))
						}
					}
				}
				f.mu.Unlock()
			}
			return strings.Join(names, " ")
		}
		use := func(n int) {
			t.Helper()
			body, _, err := f.Call(t.Context(), numbered(n), tool("echo", `{}`))
			wantAnswer(t, string(body), err, `{}`)
			time.Sleep(time.Millisecond)
		}
		use(1)
		use(2)
		use(3)
		use(1) // so 2 is the one used longest ago
		use(4)
		time.Sleep(2 * time.Second)
		if got := alive(); got != "1 3 4" {
			t.Errorf("alive are %q, want 1 3 4", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		running := later(f, ctx, numbered(3), tool("polite", `{}`))
		synctest.Wait()
		use(1)
		use(5) // 3 is older, but busy
		time.Sleep(2 * time.Second)
		if got := alive(); got != "1 3 5" {
			t.Errorf("alive are %q, want 1 3 5", got)
		}
		if s := f.Stats(); s.Ends["evicted"] != 2 || s.RSS != 30<<20 {
			t.Errorf("stats %+v, want 2 evicted and 30 MiB", s)
		}
		cancel()
		if _, err := running(); err == nil {
			t.Fatal("cancelled call answered")
		}
	})
}

func TestWorkerOverItsMemoryIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{Calls: 2})
		m := numbered(1)
		f.sizes[1] = f.ceiling(m.Limits.WithDefaults()) // at the limit
		running := later(f, t.Context(), m, tool("slow", `{}`))
		time.Sleep(1500 * time.Millisecond)
		if s := f.Stats(); s.Ends["memory"] != 0 {
			t.Fatalf("stats %+v, want it alive at the limit", s)
		}
		f.mu.Lock()
		f.sizes[1]++
		f.mu.Unlock()
		body, err := running() // is run again
		wantAnswer(t, body, err, `{}`)
		running = later(f, t.Context(), m, tool("stuck", `{}`))
		f.mu.Lock()
		f.sizes[1] = f.ceiling(m.Limits.WithDefaults()) + 1
		f.mu.Unlock()
		time.Sleep(2 * time.Second)
		f.Retire(m.Digest)
		if _, err = running(); err == nil {
			t.Fatal("stuck call answered")
		}
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{})
		var waits []func() (string, error)
		for n := range 3 {
			waits = append(waits, later(f, t.Context(), numbered(n), tool("stuck", `{}`)))
		}
		synctest.Wait()
		p := f.Pool
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		for _, wait := range waits {
			_, err := wait()
			wantClass(t, err, abi.ClassWorkerLost, "")
		}
		_, _, err := p.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantClass(t, err, abi.ClassWorkerLost, "hutch is stopping")
		if s := p.Stats(); s.Workers != 0 || s.Starts != 3 || s.Ends["closed"] != 3 {
			t.Errorf("stats %+v, want all closed and none replaced", s)
		}
	})
}

func TestProgressAndLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			return &fakeGuest{w, behaviour{"talk": func(_ context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) {
				for i := range 5 {
					in.Log(abi.Warn, fmt.Sprintf("line %d \xff%s", i, strings.Repeat("x", 200)))
				}
				for i := range maxProgressRun + 10 {
					in.Progress(json.RawMessage(fmt.Sprintf(`{"progress":%d}`, i)))
				}
				in.Progress(json.RawMessage(`{"progress":1,"message":"` + strings.Repeat("x", maxProgress) + `"}`))
				return []byte("{}"), nil
			}}}, nil
		})
		in := tool("talk", `{}`)
		in.Limits.LogLines, in.Limits.LogLineBytes = 2, 16
		var lines []string
		var steps int
		in.Log = func(level abi.LogLevel, line string) { lines = append(lines, fmt.Sprintf("%d %s", level, line[:9])) }
		in.Progress = func(json.RawMessage) { steps++ }
		body, usage, err := f.Call(t.Context(), numbered(1), in)
		wantAnswer(t, string(body), err, `{}`)
		if got := strings.Join(lines, "|"); got != "3 line 0 \uFFFD|3 line 1 \uFFFD|3 line 2 \uFFFD" && len(lines) != 3 {
			t.Errorf("lines %q", got)
		}
		if steps != maxProgressRun {
			t.Errorf("%d steps of progress, want %d", steps, maxProgressRun)
		}
		if usage.LogLines != 7 {
			t.Errorf("usage %+v, want the guest's own count", usage)
		}
	})
}

// A caller that has left hears no more, whatever the guest still says.
func TestNoCallbackAfterTheCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			return &fakeGuest{w, behaviour{"talk": func(ctx context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) {
				<-ctx.Done()
				in.Log(abi.Info, "too late")
				in.Progress(json.RawMessage(`{"progress":1}`))
				return nil, abi.Failf(abi.ClassCancelled, "stopped")
			}}}, nil
		})
		in := tool("talk", `{}`)
		in.Limits.Wall = time.Second
		in.Log = func(abi.LogLevel, string) { t.Error("log line after the call") }
		in.Progress = func(json.RawMessage) { t.Error("progress after the call") }
		_, _, err := f.Call(t.Context(), numbered(1), in)
		wantClass(t, err, abi.ClassTimeout, "1s")
		time.Sleep(time.Second)
		if s := f.Stats(); s.Late != 1 || s.Workers != 1 {
			t.Errorf("stats %+v, want a late answer and the worker kept", s)
		}
	})
}

func TestPanickingCallbackIsContained(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
			return &fakeGuest{w, behaviour{"talk": func(_ context.Context, _ *fakeWorker, in abi.Invocation) ([]byte, error) {
				in.Log(abi.Info, "hello")
				return []byte("{}"), nil
			}}}, nil
		})
		in := tool("talk", `{}`)
		in.Log = func(abi.LogLevel, string) { panic("oops") }
		body, _, err := f.Call(t.Context(), numbered(1), in)
		wantAnswer(t, string(body), err, `{}`)
		if !strings.Contains(f.logged.String(), "oops") {
			t.Error("the panic is not in the log")
		}
	})
}

// What a caller can do stands once in what it reads: whoever maps the class of a
// failure adds it.
func TestLostWorkersLeaveTheAdviceToOthers(t *testing.T) {
	_, _, err := outcome{lost: true}.result()
	wantClass(t, err, abi.ClassWorkerLost, "the tool's process ended during the call")
	if strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}
}
