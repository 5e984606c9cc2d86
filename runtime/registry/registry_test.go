package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/worker"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

func TestMain(m *testing.M) {
	code := workertest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// workers runs modules without running them: what a module would say is known
// from how it was built.
type workers struct {
	mu        sync.Mutex
	said      map[string][]byte // by digest: what describe writes
	fail      map[string]error  // by digest: what describe fails with
	hang      chan struct{}     // hang.wasm describes itself once this is closed
	wall      time.Duration     // that the last describe was given
	described []string          // names, in order
	retired   []string          // digests, in order
	running   map[string]int
	call      func(ctx context.Context, m worker.Module, in abi.Invocation) ([]byte, error)
	used      abi.Usage // by each call
}

func (w *workers) Describe(_ context.Context, m worker.Module) ([]byte, error) {
	if _, err := m.Bytes(); err != nil {
		return nil, abi.Failf(abi.ClassInternal, "no bytes")
	}
	if m.Name == "hang.wasm" {
		<-w.hang
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wall = m.Limits.Wall
	w.described = append(w.described, m.Name)
	if err := w.fail[m.Digest]; err != nil {
		return nil, err
	}
	return w.said[m.Digest], nil
}

func (w *workers) Call(ctx context.Context, m worker.Module, in abi.Invocation) ([]byte, abi.Usage, error) {
	w.mu.Lock()
	w.running[m.Digest]++
	call := w.call
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running[m.Digest]--
	}()
	if call == nil {
		raw, err := rawjson.Marshal(tool.Text(in.Tool + string(in.Arguments)))
		return raw, w.used, err
	}
	raw, err := call(ctx, m, in)
	return raw, w.used, err
}

func (w *workers) Retire(digest string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[digest] > 0 {
		panic("retired while a call runs")
	}
	w.retired = append(w.retired, digest)
}

// policy is ready for all but those who ask for something.
type policy struct{}

func (policy) Decide(c tool.Caller, m tool.Module, s tool.Spec) tool.Decision {
	switch {
	case m.Requests["nonsense"] != nil:
		return tool.Decision{Status: tool.Rejected, Reason: "asks for nonsense"}
	case len(m.Requests) > 0:
		return tool.Decision{Status: tool.Held, Reason: "asks for something"}
	case s.Name == "told":
		return tool.Decision{Status: tool.Held, Reason: "is denied by the policy", Told: true}
	case s.Name == "asks":
		return tool.Decision{Status: tool.Ready, Ask: true}
	case c.Agent == "stranger":
		return tool.Decision{Status: tool.Held, Reason: "not for strangers"}
	}
	return tool.Decision{Status: tool.Ready}
}

// world is a registry with its surroundings.
type world struct {
	*testing.T
	*Registry
	workers *workers
	cache   string
	jail    string // the quarantine's folder
	build   string
	log     *lockedBuffer
	options func(*Options) // changes those of start; may be nil
	mu      sync.Mutex
	blobs   map[string][]byte
	fetched int
}

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T) *world { return newWorldWith(t, nil) }

func newWorldWith(t *testing.T, options func(*Options)) *world {
	w := &world{options: options, T: t, cache: t.TempDir(), jail: t.TempDir(), build: "test", log: &lockedBuffer{}, blobs: map[string][]byte{},
		workers: &workers{said: map[string][]byte{}, fail: map[string]error{}, running: map[string]int{}}}
	w.start()
	return w
}

// start opens a registry, as a new process would.
func (w *world) start() {
	o := Options{
		Workers: w.workers, Policy: policy{}, Fetch: w.fetch, CacheDir: w.cache, Build: w.build, QuarantineDir: w.jail, Deaths: 3,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if w.options != nil {
		w.options(&o)
	}
	r, err := New(o)
	if err != nil {
		w.Fatal(err)
	}
	w.Registry = r
	w.workers.described, w.workers.retired, w.fetched = nil, nil, 0
	w.Cleanup(func() {
		if err := r.Close(); err != nil {
			w.Error(err)
		}
	})
}

func (w *world) fetch(digest string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fetched++
	if raw, ok := w.blobs[digest]; ok {
		return raw, nil
	}
	return nil, errors.New("its bytes are gone")
}

// file offers bytes under a name; "folder/x.wasm" names the folder too.
func (w *world) file(name string, raw []byte) tool.Candidate {
	sum := sha256.Sum256(raw)
	c := tool.Candidate{Name: name, Source: "tools", Digest: hex.EncodeToString(sum[:]), Size: int64(len(raw))}
	if source, bare, ok := strings.Cut(name, "/"); ok {
		c.Source, c.Name, c.Shipped = source, bare, source == "shipped"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blobs[c.Digest] = raw
	return c
}

// module offers a module that does what it is built to do.
func (w *world) module(name string, m dialecttest.Module) tool.Candidate {
	c := w.file(name, m.Bytes())
	w.workers.mu.Lock()
	defer w.workers.mu.Unlock()
	w.workers.said[c.Digest] = m.Description()
	return c
}

// offers is a module of the given version with tools of the given names.
func (w *world) offers(name, version string, tools ...string) tool.Candidate {
	return w.module(name, dialecttest.Module{Version: version, Tools: specs(tools...)})
}

func specs(names ...string) []tool.Spec {
	var out []tool.Spec
	for _, name := range names {
		out = append(out, dialecttest.Spec(name))
	}
	return out
}

func (w *world) apply(c ...tool.Candidate) {
	w.Helper()
	w.Apply(w.Context(), c)
}

// lists fails unless exactly these tools are listed.
func (w *world) lists(want ...string) {
	w.Helper()
	var got []string
	for _, s := range w.List(tool.Caller{}) {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, want) {
		w.Errorf("lists %q, want %q", got, want)
	}
}

// says fails unless the file has that status, and a reason with the words.
func (w *world) says(name string, status tool.Status, words string) {
	w.Helper()
	source := "tools"
	if s, bare, ok := strings.Cut(name, "/"); ok {
		source, name = s, bare
	}
	for _, m := range w.Modules() {
		if m.Name == name && m.Source == source {
			if m.Status != status || !strings.Contains(m.Reason, words) || words == "" && m.Reason != "" {
				w.Errorf("%s is %s: %q, want %s: %q", name, m.Status, m.Reason, status, words)
			}
			return
		}
	}
	w.Errorf("%s/%s is not there", source, name)
}

func (w *world) text(name, args string) (string, error) {
	res, err := w.Call(w.Context(), tool.Caller{}, tool.Call{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		return "", err
	}
	return res.Content[0].Text, nil
}

func TestModulesInTheFolderAreTools(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("b.wasm", "1", "zeta", "alpha"), w.offers("a.wasm", "1", "mid"))
	w.lists("alpha", "mid", "zeta")
	if got, err := w.text("mid", `{"x":1}`); err != nil || got != `mid{"x":1}` {
		t.Errorf("call = %q, %v", got, err)
	}
	if got, err := w.text("mid", ""); err != nil || got != "mid{}" {
		t.Errorf("call without arguments = %q, %v", got, err)
	}
}

func TestBadModulesSaySo(t *testing.T) {
	good := dialecttest.Module{}.Bytes()
	spec := func(schema string) []tool.Spec {
		return []tool.Spec{{Name: "x", Description: "x", InputSchema: json.RawMessage(schema)}}
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprintf("t%d", i)
	}
	tests := []struct {
		name   string
		module any // bytes, or a Module
		want   string
	}{
		{"not wasm", []byte("#!/bin/sh"), "pre-check: "},
		{"empty", []byte{}, "pre-check: "},
		{"cut off", good[:len(good)-1], "pre-check: "},
		{"no call", dialecttest.Module{Omit: []string{"call"}}, `export "call" is missing`},
		{"unknown import (D22)", dialecttest.Module{Imports: [][2]string{{"env", "fork"}}}, `"env"."fork"`},
		{"65 tools (D23)", dialecttest.Module{Tools: specs(many...)}, "65 tools, at most 64"},
		{"no tools", dialecttest.Module{Tools: []tool.Spec{}}, "tools is empty"},
		{"schema null", dialecttest.Module{Tools: spec(`null`)}, "inputSchema"},
		{"schema an array", dialecttest.Module{Tools: spec(`[]`)}, "inputSchema"},
		{"schema of another type", dialecttest.Module{Tools: spec(`{"type":"string"}`)}, "inputSchema"},
		{"schema does not compile", dialecttest.Module{Tools: spec(`{"type":"object","required":7}`)}, "inputSchema"},
		{"schema points elsewhere", dialecttest.Module{Tools: spec(
			`{"type":"object","properties":{"a":{"$ref":"https://evil.test/s.json"}}}`)}, "$ref"},
		{"bad name", dialecttest.Module{Tools: specs("naïve")}, "tool name"},
		{"two names become one", dialecttest.Module{Tools: specs("a.b", "a_b")}, `would both be listed as "a_b"`},
		{"policy", dialecttest.Module{Requests: tool.Requests{"nonsense": json.RawMessage(`{}`)}}, "asks for nonsense"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			bad := tool.Candidate{}
			switch m := tt.module.(type) {
			case []byte:
				bad = w.file("bad.wasm", m)
			case dialecttest.Module:
				bad = w.module("bad.wasm", m)
			}
			w.apply(bad, w.offers("canary.wasm", "1", "canary"))
			w.says("bad.wasm", tool.Rejected, tt.want)
			w.lists("canary")
		})
	}
}

// A module cut off at any byte is never half a tool (D17).
func TestD17_TruncationNeverGivesATool(t *testing.T) {
	w := newWorld(t)
	good := dialecttest.Module{}.Bytes()
	var cuts []tool.Candidate
	for i := range good {
		cuts = append(cuts, w.file(fmt.Sprintf("%d.wasm", i), good[:i]))
	}
	w.apply(cuts...)
	w.lists()
	for _, m := range w.Modules() {
		if m.Status != tool.Rejected || m.Reason == "" {
			t.Errorf("cut at %s: %s %q", m.Name, m.Status, m.Reason)
		}
	}
}

func TestUnreadableFileSaysSo(t *testing.T) {
	w := newWorld(t)
	w.apply(tool.Candidate{Name: "x.wasm", Source: "tools", Err: errors.New("symlink leaves the folder")})
	w.says("x.wasm", tool.Rejected, "symlink leaves the folder")
}

func TestDescribeFailuresSaySo(t *testing.T) {
	for _, class := range []abi.Class{abi.ClassModule, abi.ClassGuest, abi.ClassTrap, abi.ClassLimit,
		abi.ClassTimeout, abi.ClassWorkerLost, abi.ClassInternal} {
		w := newWorld(t)
		c := w.offers("x.wasm", "1", "x")
		w.workers.fail[c.Digest] = abi.Failf(class, "it went wrong")
		w.apply(c)
		w.says("x.wasm", tool.Rejected, "describe: "+string(class)+": it went wrong")
	}
}

// What may have been bad luck is tried again at the next Apply, and only that.
func TestOnlyPassingFailuresAreTriedAgain(t *testing.T) {
	for class, again := range map[abi.Class]bool{abi.ClassTrap: false, abi.ClassTimeout: false,
		abi.ClassWorkerLost: true, abi.ClassInternal: true, abi.ClassCancelled: true} {
		w := newWorld(t)
		c := w.offers("x.wasm", "1", "x")
		w.workers.fail[c.Digest] = abi.Failf(class, "it went wrong")
		w.apply(c)
		delete(w.workers.fail, c.Digest)
		w.apply(c)
		if listed := len(w.List(tool.Caller{})) == 1; listed != again {
			t.Errorf("%s: tried again %t, want %t", class, listed, again)
		}
	}
}

func TestHeldModulesAreNeitherListedNorCallable(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("net.wasm", dialecttest.Module{Tools: specs("get"),
		Requests: tool.Requests{"http": json.RawMessage(`[{"reason":"to fetch"}]`)}}))
	w.says("net.wasm", tool.Held, "asks for something")
	w.lists()
	if m := w.Modules()[0]; len(m.Tools) != 1 || m.Tools[0].Status != tool.Held {
		t.Errorf("an operator sees %+v", m.Tools)
	}
}

// A tool that a caller may not see is, for it, a tool that is not there (P09).
func TestP09_HiddenIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("x.wasm", "1", "search"))
	stranger := tool.Caller{Agent: "stranger"}
	if got := w.List(stranger); len(got) != 0 {
		t.Errorf("a stranger sees %v", got)
	}
	_, hidden := w.Call(t.Context(), stranger, tool.Call{Name: "search", Arguments: json.RawMessage("not JSON")})
	_, unknown := w.Call(t.Context(), stranger, tool.Call{Name: "search2"})
	if !errors.Is(hidden, tool.ErrNotFound) || hidden.Error()+"2" != unknown.Error() {
		t.Errorf("hidden: %v; unknown: %v", hidden, unknown)
	}
}

// What the policy decided about a tool alone is said to who may use its module (P09).
func TestP09_WhatThePolicyTellsIsSaid(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("x.wasm", "1", "search", "told"))
	w.lists("search")
	_, err := w.text("told", `{}`)
	if !errors.Is(err, tool.ErrDenied) || errors.Is(err, tool.ErrNotFound) || err.Error() != `tool "told" is denied by the policy` {
		t.Errorf("Call = %v", err)
	}
}

func TestUnknownToolText_S1_052(t *testing.T) {
	_, err := newWorld(t).text("nope", `{}`)
	if !errors.Is(err, tool.ErrNotFound) || err.Error() != "Tool not found: nope" {
		t.Errorf("Call = %v", err)
	}
}

// A tool that waits for a person is not started before one allowed the call, and nobody
// is asked about arguments that do not fit.
func TestCallsThatWaitForAPerson(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("x.wasm", "1", "asks"))
	w.lists("asks")
	_, err := w.text("asks", `{}`)
	var ask *tool.AskError
	if !errors.As(err, &ask) || ask.Tool != "asks" {
		t.Errorf("Call = %v", err)
	}
	if _, err := w.text("asks", `[]`); !errors.Is(err, tool.ErrInvalid) {
		t.Errorf("Call = %v", err)
	}
	res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "asks", Approved: true})
	if err != nil || len(res.Content) != 1 || res.Content[0].Text != "asks{}" {
		t.Errorf("Call = %+v, %v", res, err)
	}
}

func TestForeignNameStaysKnown(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("x.wasm", "1", "repo.search"))
	w.lists("repo_search")
	for _, name := range []string{"repo_search", "repo.search"} {
		if got, err := w.text(name, `{}`); err != nil || got != "repo.search{}" {
			t.Errorf("%s = %q, %v: the guest shall hear its own name", name, got, err)
		}
	}
}

func TestInspectShowsOwnAndPublished(t *testing.T) {
	w := newWorld(t)
	own := tool.Spec{Name: "repo.search", InputSchema: json.RawMessage(`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema"}`)}
	c := w.module("x.wasm", dialecttest.Module{Version: "1.2.0", Tools: []tool.Spec{own}})
	w.apply(c)
	m := w.Modules()[0]
	if m.Digest != c.Digest || m.Serving != c.Digest || m.Size != c.Size || m.Dialect != "hutch" || m.Version != "1.2.0" {
		t.Errorf("module: %+v", m)
	}
	if !slices.Contains(m.Imports, "hutch:host output_write") {
		t.Errorf("imports: %v", m.Imports)
	}
	got := m.Tools[0]
	if got.Own.Name != "repo.search" || got.Published.Name != "repo_search" || !strings.Contains(string(got.Own.InputSchema), "$schema") ||
		strings.Contains(string(got.Published.InputSchema), "$schema") || len(got.Warnings) == 0 {
		t.Errorf("tool: %+v", got)
	}
}

// Hosts cancel what they take for a writing tool in runs that nobody watches.
func TestToolsOfAModuleThatAsksForNothingAreListedAsPure(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		module dialecttest.Module
		want   string
	}{
		"unsaid":   {dialecttest.Module{Tools: specs("x")}, `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`},
		"said":     {dialecttest.Module{Tools: []tool.Spec{{Name: "x", Annotations: &tool.Annotations{IdempotentHint: &no}}}}, `{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false}`},
		"requests": {dialecttest.Module{Tools: specs("x"), Requests: tool.Requests{"http": json.RawMessage(`[]`)}}, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range c.module.Tools {
				c.module.Tools[i].InputSchema = json.RawMessage(`{"type":"object"}`)
			}
			w.apply(w.module("x.wasm", c.module))
			got, err := json.Marshal(w.Modules()[0].Tools[0].Published.Annotations)
			if err != nil || string(got) != c.want {
				t.Errorf("annotations %s, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestWhatFailedInPassingIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	c, bad := w.offers("x.wasm", "1", "x"), w.offers("y.wasm", "1", "y")
	w.workers.fail[c.Digest] = abi.Failf(abi.ClassWorkerLost, "lost")
	w.workers.fail[bad.Digest] = abi.Failf(abi.ClassModule, "broken")
	w.apply(c, bad)
	w.says("x.wasm", tool.Rejected, "lost")
	w.workers.fail[c.Digest] = nil
	w.Retry(t.Context())
	w.says("x.wasm", tool.Ready, "")
	asked := len(w.workers.described)
	w.Retry(t.Context())
	if n := len(w.workers.described); n != asked {
		t.Errorf("described %d times more, though nothing failed in passing", n-asked)
	}
}

// A module that hangs while it describes itself keeps nobody from the others,
// and may not do so for as long as a call may take.
func TestD19_OneThatHangsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.workers.hang = make(chan struct{})
	changed := make(chan struct{}, 1)
	defer w.Subscribe(func() { changed <- struct{}{} })()
	hangs, good := w.offers("hang.wasm", "1", "slow"), w.offers("zgood.wasm", "1", "good")
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		w.apply(hangs, good)
	}()
	select {
	case <-changed:
	case <-applied:
		t.Fatal("it did not hang")
	case <-t.Context().Done():
		t.Fatal("nothing is published while one module hangs")
	}
	w.lists("good")
	close(w.workers.hang)
	<-applied
	w.lists("good", "slow")
	if w.workers.wall > describeWall {
		t.Errorf("describe may take %v, at most %v", w.workers.wall, describeWall)
	}
}

// A module that was described and cannot be called leaves no worker behind, and no
// place among the workers: files that come and go would fill it.
func TestUncallableModulesKeepNoWorker(t *testing.T) {
	w := newWorld(t)
	refused := w.module("refused.wasm", dialecttest.Module{Tools: []tool.Spec{{Name: "no schema"}}})
	lost := w.module("zlost.wasm", dialecttest.Module{Version: "2", Tools: specs("x")})
	w.apply(w.offers("x.wasm", "1", "x"), refused, lost)
	for _, c := range []tool.Candidate{refused, lost} {
		if n := w.timesRetired(c.Digest); n != 1 {
			t.Errorf("%s: retired %d times, want 1", c.Name, n)
		}
	}
	w.lists("x")

	// One that may do better next time keeps its place until its file goes.
	flaky := w.offers("flaky.wasm", "1", "f")
	w.workers.fail = map[string]error{flaky.Digest: abi.Failf(abi.ClassWorkerLost, "gone")}
	w.apply(flaky)
	if n := w.timesRetired(flaky.Digest); n != 0 {
		t.Errorf("retired %d times while it is tried again", n)
	}
	w.apply()
	if n := w.timesRetired(flaky.Digest); n != 1 {
		t.Errorf("retired %d times when it was gone, want 1", n)
	}
}

func (w *world) timesRetired(digest string) (n int) {
	w.workers.mu.Lock()
	defer w.workers.mu.Unlock()
	for _, d := range w.workers.retired {
		if d == digest {
			n++
		}
	}
	return n
}

func TestBrokenWorkerNeverTakesAToolAway(t *testing.T) {
	w := newWorld(t)
	w.apply(w.offers("x.wasm", "1", "x"))
	w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) {
		return nil, abi.Failf(abi.ClassModule, "the cache is broken")
	}
	if _, err := w.text("x", `{}`); !errors.Is(err, tool.ErrFailed) {
		t.Errorf("Call = %v", err)
	}
	w.lists("x")
}

func TestWorkersGetStrippedBytes(t *testing.T) {
	w := newWorld(t)
	with, err := wasmbin.AppendCustom(dialecttest.Module{}.Bytes(), "name", []byte("debug"))
	if err != nil {
		t.Fatal(err)
	}
	c := w.file("x.wasm", with)
	raw, err := w.workerModule(c.Name, c.Digest, w.o.Limits).Bytes()
	if err != nil || len(raw) >= len(with) {
		t.Errorf("%d bytes of %d, %v", len(raw), len(with), err)
	}
}

func TestClosedRegistryRefuses(t *testing.T) {
	w := newWorld(t)
	c := w.offers("x.wasm", "1", "x")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.apply(c)
	w.lists()
	if _, err := w.text("x", `{}`); !errors.Is(err, tool.ErrUnavailable) {
		t.Errorf("Call = %v", err)
	}
}
