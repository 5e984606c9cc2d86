package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/registry"
	"github.com/hutch-run/hutch/runtime/reload"
)

// crowd is an app with so many modules, each of which asks for something, is
// granted it for its bytes, and is pinned; and two texts of its policy that differ.
func crowd(t testing.TB, n int) (app *App, texts [2]string) {
	t.Helper()
	cfg, p := newTestConfig(t, nil)
	o, err := cfg.takeOver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if app, err = NewApp(cfg, p, quiet, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Error(err)
		}
		if err := o.Release(); err != nil {
			t.Error(err)
		}
	})
	var policy strings.Builder
	policy.WriteString("version: 1\nmodules:\n")
	for i := range n {
		name := fmt.Sprintf("m%04d.wasm", i)
		m := dialecttest.Module{
			Tools:    []tool.Spec{dialecttest.Spec(fmt.Sprintf("tool_%d", i))},
			Requests: tool.Requests{"http": []byte(`[{"host":"api.example.com","reason":"looks things up"}]`), "kv": []byte(`[{"max":"1MiB","reason":"keeps"}]`)},
		}
		m.Manifest = m.Description() // nothing has to be started to read it
		body := m.Bytes()
		if err := writeAtomic(filepath.Join(cfg.Tools[0], name), body); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&policy, "  %s:\n    digest: sha256:%x\n    grant:\n      http:\n"+
			"        - {host: api.example.com, methods: [GET, POST], paths: [/repos/], ports: [443], max_response: 4MiB, rate: 60/min}\n"+
			"      kv: {max: 1MiB, ttl: 720h}\n    limits: {timeout: 10s, calls_per_day: 5000000}\n", name, sha256.Sum256(body))
	}
	for i := range texts {
		texts[i] = fmt.Sprintf("%s# text %d\ndefaults: {limits: {timeout: %ds}}\n", policy.String(), i, 10+i)
	}
	return app, texts
}

// reload takes a text in as the watch does.
func (a *App) reloadText(t testing.TB, text string) {
	if err := os.WriteFile(a.cfg.Policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := a.policy.reload(); !changed || err != nil {
		t.Fatalf("changed %t, %v", changed, err)
	}
	a.enforcePolicy(t.Context())
}

// Calls go on while the policy is changed a hundred times: none fails, and every
// list is that of one policy or the other.
func TestReloadDropsNoCall(t *testing.T) {
	const n = 20
	app, texts := crowd(t, n)
	texts[1] = strings.Replace(texts[1], "  m0001.wasm:\n", "  m0001.wasm:\n    tools: {tool_1: {approval: deny}}\n", 1)
	app.reloadText(t, texts[0])
	must(t, app.Load(t.Context()))
	app.note(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	var calls, lists atomic.Int64
	for i := range 4 {
		busy.Go(func() {
			name := fmt.Sprintf("tool_%d", 2+i%2)
			for ; ctx.Err() == nil && !t.Failed(); calls.Add(1) {
				res, err := app.tools.Call(t.Context(), tool.Caller{Conversation: fmt.Sprint(i)}, tool.Call{Name: name, Arguments: []byte(`{"a":1}`)})
				if err != nil || res.IsError {
					t.Errorf("%s: %+v, %v", name, res, err)
				}
			}
		})
	}
	busy.Go(func() {
		for ; ctx.Err() == nil && !t.Failed(); lists.Add(1) {
			all := app.tools.List(tool.Caller{})
			denied := !slices.ContainsFunc(all, func(s tool.Spec) bool { return s.Name == "tool_1" })
			if want := n - map[bool]int{true: 1}[denied]; len(all) != want {
				t.Errorf("%d tools are listed, tool_1 denied: %t", len(all), denied)
			}
		}
	})
	for i := 1; i <= 100; i++ {
		before := calls.Load()
		app.reloadText(t, texts[i%2])
		for calls.Load() < before+4 && !t.Failed() { // some begin under each policy
			runtime.Gosched()
		}
	}
	stop()
	busy.Wait()
	t.Logf("%d calls and %d lists", calls.Load(), lists.Load())
}

// A file is renamed over another a hundred times while it is called. No call fails,
// and each is answered by the version that served when it began or by the next one.
func TestHundredReloadsUnderLoad(t *testing.T) {
	const reloads, callers, kinds = 100, 4, 10
	app := watching(t, func(o *reload.Options) { o.Settle, o.Stable = 20*time.Millisecond, 20*time.Millisecond })
	body := func(version int) []byte {
		return answering("hi", "Says which it is.", fmt.Sprint("version ", version%kinds))
	}
	beside, place := t.TempDir(), filepath.Join(app.cfg.Tools[0], "hi.wasm")
	replace := func(version int) {
		next := filepath.Join(beside, "hi.wasm")
		must(t, os.WriteFile(next, body(version), 0o600))
		must(t, os.Rename(next, place))
		app.awaitServing(t, fmt.Sprintf("%x", sha256.Sum256(body(version))))
	}
	replace(0)
	ctx, stop := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	var calls, current atomic.Int64
	var since [callers]atomic.Int64 // the version under which each call began
	for i := range callers {
		busy.Go(func() {
			defer since[i].Store(reloads)
			for ; ctx.Err() == nil && !t.Failed(); calls.Add(1) {
				began := current.Load()
				since[i].Store(began)
				res, err := app.tools.Call(t.Context(), tool.Caller{Conversation: fmt.Sprint(i)}, tool.Call{Name: "hi", Arguments: []byte(`{"a":1}`)})
				if err != nil || res.IsError || len(res.Content) != 1 {
					t.Errorf("call under version %d: %+v, %v", began, res, err)
				} else if got := res.Content[0].Text; got != fmt.Sprint("version ", began%kinds) && got != fmt.Sprint("version ", (began+1)%kinds) {
					t.Errorf("call under version %d: %s", began, got)
				}
			}
		})
	}
	for version := 1; version <= reloads && !t.Failed(); version++ {
		for before := calls.Load(); calls.Load() < before+callers && !t.Failed(); {
			runtime.Gosched()
		}
		for i := range since { // none is left behind by two
			for since[i].Load() < int64(version)-1 && !t.Failed() {
				runtime.Gosched()
			}
		}
		replace(version)
		current.Store(int64(version))
	}
	stop()
	busy.Wait()
	t.Logf("%d calls", calls.Load())
}

// watching is an app that watches its folder, with options of the watch changed.
func watching(t *testing.T, change func(*reload.Options)) *App {
	t.Helper()
	cfg, p := newTestConfig(t, func(cfg *Config) { developing(cfg); cfg.Limits.PerSecond = 1_000_000 })
	o, err := cfg.takeOver(t.Context())
	must(t, err)
	app, err := NewApp(cfg, p, quiet, true)
	must(t, err)
	options := reload.Options{Blobs: app.blobs, Logger: quiet}
	change(&options)
	app.watcher = reload.New(cfg.Tools, options)
	ctx, stop := context.WithCancel(context.Background())
	done := launch(func() error { app.Run(ctx); return nil })
	t.Cleanup(func() {
		stop()
		must(t, <-done)
		must(t, app.Close())
		must(t, o.Release())
	})
	return app
}

// awaitServing waits until the bytes of a digest serve.
func (a *App) awaitServing(t *testing.T, digest string) {
	t.Helper()
	deadline := time.After(4 * patientFor)
	for tick := time.Tick(time.Millisecond); ; {
		if slices.ContainsFunc(a.modules.Modules(), func(m registry.Module) bool { return m.Serving == digest }) {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("sha256:%.12s never serves: %+v", digest, a.modules.Modules())
		}
	}
}

// BenchmarkReload is what a policy of a thousand modules takes from the file until
// it is in force for all of them, which are there and pinned. At most 300 ms are
// asked for.
func BenchmarkReload(b *testing.B) {
	const n = 1000
	app, texts := crowd(b, n)
	app.reloadText(b, texts[0])
	if err := app.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	app.note(b.Context())
	if got := len(app.tools.List(tool.Caller{})); got != n {
		b.Fatalf("%d tools, want %d", got, n)
	}
	if pins, err := app.db.Pins(b.Context()); err != nil || len(pins) != n {
		b.Fatalf("%d pins, %v", len(pins), err)
	}
	var took []time.Duration
	for i := 1; b.Loop(); i++ {
		began := time.Now()
		app.reloadText(b, texts[i%2])
		took = append(took, time.Since(began))
	}
	b.ReportMetric(float64(slices.Sorted(slices.Values(took))[len(took)/2].Microseconds())/1e3, "p50-ms")
	b.ReportMetric(0, "ns/op")
}

// One version that the store refuses to pin keeps no other from being pinned, and is
// told of once.
func TestPinsThatAreRefused(t *testing.T) {
	app, _ := crowd(t, 0)
	log := &transcript{}
	app.pins.log = slog.New(slog.NewTextHandler(log, nil))
	serving := func() (all []registry.Module) {
		for i, name := range append([]string{strings.Repeat("x", 600)}, strings.Fields(strings.Repeat("a ", 250))...) {
			all = append(all, registry.Module{Name: fmt.Sprint(name, i), Serving: "digest", Definitions: "definitions", Status: tool.Ready})
		}
		return all
	}
	for range 3 {
		app.pins.keep(t.Context(), serving)
	}
	if all, err := app.db.Pins(t.Context()); err != nil || len(all) != 250 {
		t.Errorf("%d pins, %v, want 250", len(all), err)
	}
	if lines := strings.Count(log.String(), "cannot be kept"); lines != 1 {
		t.Errorf("told %d times:\n%s", lines, log)
	}
}

// The registry asks for pins with its lock held, and is asked by them with theirs: which
// digest is pinned is answered without one, or each would wait for the other for ever.
func TestPinsAreAnsweredWhileTheyChange(t *testing.T) {
	app, _ := crowd(t, 0)
	m := registry.Module{Name: "note.wasm", Serving: "first", Definitions: "d", Status: tool.Ready}
	c := tool.Candidate{Name: m.Name, Digest: "second"}
	asked := 0
	asks := func() {
		asked++
		answer := make(chan string, 1)
		go func() { answer <- app.pins.digest(c) }()
		select {
		case <-answer:
		case <-time.After(patientFor):
			t.Fatal("waits for those who wait for it")
		}
	}
	app.pins.keep(t.Context(), func() []registry.Module { asks(); return []registry.Module{m} })
	app.pins.expect(t.Context(), []tool.Candidate{c}, func(string) (tool.Description, error) { asks(); return tool.Description{}, nil })
	if got := app.pins.digest(c); got != "first" || asked != 2 {
		t.Errorf("%q is pinned, asked %d times", got, asked)
	}
}
