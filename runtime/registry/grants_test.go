package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// operator is a policy that can change, with its grants.
type operator struct {
	mu       sync.Mutex
	accepted map[string]string // definitions by file name; others are held
	pinned   map[string]string // digests by file name
	limits   abi.Limits
	refuse   error
	begun    []string
	ended    int
}

func (o *operator) Decide(_ tool.Caller, m tool.Module, _ tool.Spec) tool.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	if want, ok := o.accepted[m.Name]; ok && (want == "" || want == m.Definitions) {
		return tool.Decision{Status: tool.Ready}
	}
	return tool.Decision{Status: tool.Held, Reason: "not decided"}
}

func (o *operator) Limits(tool.Module) abi.Limits { return o.limits }

func (o *operator) Begin(_ context.Context, c tool.Caller, m tool.Module, name string, args json.RawMessage) (Grant, error) {
	o.begun = append(o.begun, fmt.Sprintf("%s %s %s %s", c.CallID, m.Name, name, args))
	return Grant{
		Host:   func(context.Context, abi.Request) abi.Response { return abi.Response{Body: []byte(`"served"`)} },
		Config: map[string]string{"key": "value"},
		Log:    func(_ abi.LogLevel, line string) { o.begun = append(o.begun, line) },
		End:    func() { o.ended++ },
	}, o.refuse
}

// decide makes the operator accept one version of a file, that which is there, and
// the world hear of it.
func (o *operator) decide(w *world, name, definitions, digest string) {
	o.mu.Lock()
	o.accepted[name], o.pinned[name] = definitions, digest
	o.mu.Unlock()
	w.Reconsider(w.Context())
}

func newOperated(t *testing.T) (*world, *operator) {
	o := &operator{accepted: map[string]string{}, pinned: map[string]string{}}
	return newWorldWith(t, func(options *Options) {
		options.Policy, options.Grants = o, o
		options.Pinned = func(c tool.Candidate) string {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.pinned[c.Name]
		}
	}), o
}

func TestCallsGetWhatTheyAreGranted(t *testing.T) {
	w, o := newOperated(t)
	o.accepted["a.wasm"] = ""
	o.limits = abi.Limits{OutputBytes: 123, HostCalls: 7, Fuel: 1_000_000, Fresh: true}
	w.apply(w.offers("a.wasm", "1", "take"))
	var in abi.Invocation
	w.workers.call = func(ctx context.Context, m worker.Module, got abi.Invocation) ([]byte, error) {
		if in = got; m.Limits != got.Limits {
			t.Errorf("the worker has the limits %+v, the call %+v", m.Limits, got.Limits)
		}
		got.Log(abi.Info, "a line")
		return rawjson.Marshal(tool.Text(got.Config["key"] + string(got.Host(ctx, abi.Request{}).Body)))
	}
	res, err := w.Call(t.Context(), tool.Caller{CallID: "7"}, tool.Call{Name: "take", Arguments: json.RawMessage(`{"n":1}`)})
	if err != nil || res.Content[0].Text != `value"served"` {
		t.Errorf("got %+v, %v", res, err)
	}
	if got := strings.Join(o.begun, ", "); got != `7 a.wasm take {"n":1}, a line` || o.ended != 1 {
		t.Errorf("begun %s, ended %d times", got, o.ended)
	}
	want := abi.Limits{OutputBytes: 123, HostCalls: 7, Fuel: 1_000_000, Fresh: true}.WithDefaults()
	if in.Limits != want {
		t.Errorf("limits %+v, want %+v", in.Limits, want)
	}
	o.refuse = &callError{kind: tool.ErrLimit, text: "used up"}
	if _, err := w.text("take", `{}`); !errors.Is(err, tool.ErrLimit) || o.ended != 1 {
		t.Errorf("a refused call: %v", err)
	}
}

// blackout is a redactor of one word.
type blackout struct{}

func (blackout) Text(s string) (string, int) {
	return strings.ReplaceAll(s, "hunter2", "[redacted:pw]"), strings.Count(s, "hunter2")
}

func (b blackout) JSON(raw []byte) ([]byte, int) {
	return bytes.ReplaceAll(raw, []byte("hunter2"), []byte("[redacted:pw]")), 0
}

// S18: whatever way a value takes out of a guest, it is not in what callers get.
func TestS18_WhatToolsSayIsRedacted(t *testing.T) {
	w := newWorldWith(t, func(o *Options) { o.Redactor = blackout{} })
	w.apply(w.module("a.wasm", dialecttest.Module{Tools: []tool.Spec{{
		Name: "take", InputSchema: json.RawMessage(`{"type":"object"}`),
	}}}))
	for _, tt := range []struct {
		name string
		raw  string
		err  error
	}{
		{"text", `{"content":[{"type":"text","text":"pw hunter2"}]}`, nil},
		{"structure", `{"content":[],"structuredContent":{"pw":"hunter2"}}`, nil},
		{"failed result", `{"content":[{"type":"text","text":"hunter2"}],"isError":true}`, nil},
		{"answer that is none", `{"content":"hunter2"}`, nil},
		{"guest's error", "", abi.Failf(abi.ClassGuest, "no hunter2")},
		{"trap", "", abi.Failf(abi.ClassTrap, "panic: hunter2")},
	} {
		var told []tool.Progress
		w.workers.call = func(_ context.Context, _ worker.Module, in abi.Invocation) ([]byte, error) {
			in.Progress(json.RawMessage(`{"progress":1,"message":"hunter2"}`))
			return []byte(tt.raw), tt.err
		}
		res, err := w.Call(t.Context(), tool.Caller{}, tool.Call{Name: "take", Progress: func(p tool.Progress) { told = append(told, p) }})
		all := fmt.Sprintf("%+v %v %+v", res, err, told)
		if strings.Contains(all, "hunter2") || tt.name != "answer that is none" && strings.Count(all, "[redacted:pw]") < 2 {
			t.Errorf("%s: %s", tt.name, all)
		}
	}
}

// A change of policy is told once, if it changes what is seen, and at once.
func TestReconsiderPublishesWhatThePolicySaysNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := newOperated(t)
		told := 0
		defer w.Subscribe(func() { told++ })()
		w.apply(w.offers("a.wasm", "1", "one", "two"))
		w.lists()
		w.says("a.wasm", tool.Held, "not decided")
		synctest.Wait()
		for i, accepted := range []bool{false, true, true, false} {
			delete(o.accepted, "a.wasm")
			if accepted {
				o.accepted["a.wasm"] = ""
			}
			w.Reconsider(t.Context())
			synctest.Wait()
			if want := []int{0, 1, 1, 2}[i]; told != want {
				t.Errorf("step %d: told %d times, want %d", i, told, want)
			}
		}
		w.lists()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		o.accepted["a.wasm"] = ""
		w.Reconsider(t.Context())
		w.says("a.wasm", tool.Held, "not decided")
	})
}

// definitionsOf returns the hash of what a served file says.
func (w *world) definitionsOf(name string) string {
	for _, e := range w.current.Load().entries {
		if e.candidate.Name == name && e.mount != nil {
			return e.mount.module.Definitions
		}
	}
	w.Fatalf("%s is not served", name)
	return ""
}

// F07, F08: a version that nobody accepted waits, and what was accepted goes on
// serving from the bytes that were kept, byte for byte, after a restart too.
func TestF07_F08_TheAcceptedVersionGoesOnServing(t *testing.T) {
	w, o := newOperated(t)
	o.accepted["a.wasm"] = ""
	old := w.offers("a.wasm", "1", "one")
	w.apply(old)
	o.decide(w, "a.wasm", w.definitionsOf("a.wasm"), old.Digest)
	listed := func() string {
		list, err := rawjson.Marshal(w.List(tool.Caller{}))
		return fmt.Sprint(string(list), err)
	}
	before := listed()
	changed := w.offers("a.wasm", "2", "one", "other")
	waits := func(when string) {
		t.Helper()
		w.apply(changed)
		if listed() != before {
			t.Errorf("%s: the list changed: %s", when, listed())
		}
		w.says("a.wasm", tool.Ready, "serving the version before (sha256:"+old.Digest[:12]+"…): held: not decided")
		if got, err := w.text("one", `{}`); err != nil || got != "one{}" {
			t.Errorf("%s: %q, %v", when, got, err)
		}
		if _, err := w.text("other", `{}`); !errors.Is(err, tool.ErrNotFound) {
			t.Errorf("%s: the new tool: %v", when, err)
		}
	}
	waits("replaced")
	w.start()
	waits("after a restart")
	w.cache = t.TempDir()
	w.start()
	waits("after a restart that knows nothing")
	if d, err := w.Described(changed.Digest); err != nil || len(d.Tools) != 2 {
		t.Errorf("the version that waits: %+v, %v", d, err)
	}
	o.decide(w, "a.wasm", "", changed.Digest)
	w.lists("one", "other")
	w.says("a.wasm", tool.Ready, "")
}

// Without the bytes that were accepted nothing serves, and a file that is as it
// was accepted needs none.
func TestPinnedBytesThatAreGone(t *testing.T) {
	w, o := newOperated(t)
	o.accepted["a.wasm"] = strings.Repeat("1", 64)
	o.pinned["a.wasm"] = strings.Repeat("2", 64)
	w.apply(w.offers("a.wasm", "1", "one"))
	w.lists()
	w.says("a.wasm", tool.Held, "not decided")
	if _, err := w.Described(o.pinned["a.wasm"]); err == nil {
		t.Error("described from nothing")
	}
}

// A decision that names other bytes, which are kept, is followed without the
// folder changing.
func TestReconsiderFindsPinnedBytes(t *testing.T) {
	w, o := newOperated(t)
	old, now := w.offers("a.wasm", "1", "one"), w.offers("a.wasm", "2", "two")
	w.apply(old)
	hash := w.definitionsOf("a.wasm")
	w.start() // it has not seen old
	w.apply(now)
	w.lists()
	o.decide(w, "a.wasm", hash, old.Digest)
	w.lists("one")
}

// Workers of a module whose memory may be larger, or smaller, are started again.
func TestOtherMemoryNeedsAnotherWorker(t *testing.T) {
	w, o := newOperated(t)
	o.accepted["a.wasm"] = ""
	c := w.offers("a.wasm", "1", "one")
	w.apply(c)
	if len(w.workers.retired) != 0 {
		t.Errorf("retired %q", w.workers.retired)
	}
	for i, memory := range []int64{1 << 20, 1 << 20, 0} {
		o.limits.MemoryBytes = memory
		w.Reconsider(t.Context())
		if got, want := len(w.workers.retired), []int{1, 1, 2}[i]; got != want {
			t.Errorf("step %d: retired %d times, want %d", i, got, want)
		}
	}
}
