package registry

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker"
)

// untouched fails if any module was read or described since the last start.
func (w *world) untouched() {
	w.Helper()
	if w.fetched != 0 || len(w.workers.described) != 0 {
		w.Errorf("%d modules read, %v described, want none", w.fetched, w.workers.described)
	}
}

func TestSecondStartNeitherReadsNorCompiles(t *testing.T) {
	w := newWorld(t)
	set := []tool.Candidate{
		w.offers("a.wasm", "1.2", "a", "b.c"),
		w.module("held.wasm", dialecttest.Module{Tools: specs("h"), Requests: tool.Requests{"http": json.RawMessage(`[]`)}}),
		w.file("broken.wasm", []byte("no module")),
	}
	w.apply(set...)
	first, err := rawjson.Marshal(w.Modules())
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	w.apply(set...)
	w.untouched()
	if second, err := rawjson.Marshal(w.Modules()); err != nil || string(second) != string(first) {
		t.Errorf("second start, %v:\n%s\nfirst:\n%s", err, second, first)
	}
	if got, err := w.text("a", `{}`); err != nil || got != "a{}" {
		t.Errorf("call = %q, %v", got, err)
	}
}

// What is asked about before the set is applied is not read a second time for it.
func TestARecordIsReadOnce(t *testing.T) {
	w := newWorld(t)
	c := w.offers("a.wasm", "1", "a")
	w.apply(c)
	w.start()
	if d, err := w.Described(c.Digest); err != nil || len(d.Tools) != 1 {
		t.Fatalf("described: %+v, %v", d, err)
	}
	if err := os.Remove(filepath.Join(w.cache, c.Digest+".json")); err != nil {
		t.Fatal(err)
	}
	w.apply(c)
	w.untouched()
}

// What lies in the cache is believed only if it is exactly what we wrote.
func TestDamagedRecordsAreWorkedOutAnew(t *testing.T) {
	damage := map[string]func(raw []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut off":   func(raw []byte) []byte { return raw[:len(raw)/2] },
		"one bit":   func(raw []byte) []byte { return flip(raw, "does x", "does y") },
		"garbage":   func([]byte) []byte { return []byte("\xff\xfe") },
		"appended":  func(raw []byte) []byte { return append(raw, raw...) },
		"too large": func(raw []byte) []byte { return append(raw, make([]byte, maxRecord)...) },
		"of another": func(raw []byte) []byte {
			return resum(t, raw, func(b *recordBody) { b.Digest = strings.Repeat("0", 64) })
		},
		"older format": func(raw []byte) []byte { return resum(t, raw, func(b *recordBody) { b.Format-- }) },
		"other build":  func(raw []byte) []byte { return resum(t, raw, func(b *recordBody) { b.Maker = "older" }) },
		"bad inside": func(raw []byte) []byte {
			return resum(t, raw, func(b *recordBody) { b.Description = []byte(`{"tools":[{}]}`) })
		},
		"no object":     func(raw []byte) []byte { return resum(t, raw, func(b *recordBody) { b.Description = []byte(`[]`) }) },
		"bad name":      func(raw []byte) []byte { return resum(t, raw, renamed) },
		"empty refusal": func(raw []byte) []byte { return flip(raw, `"confirmed":true`, `"refused":1234`) },
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.offers("x.wasm", "1", "x")
			w.apply(c)
			path := filepath.Join(w.cache, c.Digest+".json")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			w.start()
			w.apply(c)
			w.says("x.wasm", tool.Ready, "")
			w.lists("x")
			if len(w.workers.described) != 1 {
				t.Errorf("described %d times, want anew", len(w.workers.described))
			}
			w.start()
			w.apply(c)
			w.untouched()
		})
	}
}

func flip(raw []byte, from, to string) []byte {
	return []byte(strings.Replace(string(raw), from, to, 1))
}

func renamed(b *recordBody) {
	b.Description = []byte(strings.Replace(string(b.Description), `"x"`, `"x y/z!"`, 1))
}

// resum changes a record and makes its checksum right again.
func resum(t *testing.T, raw []byte, change func(*recordBody)) []byte {
	var rec record
	var body recordBody
	if err := errors.Join(json.Unmarshal(raw, &rec), json.Unmarshal(rec.Body, &body)); err != nil {
		t.Fatal(err)
	}
	change(&body)
	d := descriptions{dir: t.TempDir(), maker: body.Maker}
	format := body.Format
	if err := d.write(body); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(d.path(body.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if format != cacheFormat { // write always stamps its own
		return flip(out, `"format":3`, `"format":2`)
	}
	return out
}

func TestUpgradeWorksEverythingOutAnew(t *testing.T) {
	w := newWorld(t)
	c := w.offers("x.wasm", "1", "x")
	w.apply(c)
	w.build = "the next release"
	w.start()
	w.apply(c)
	if len(w.workers.described) != 1 {
		t.Errorf("described %d times, want once by the new build", len(w.workers.described))
	}
}

func TestWithoutACacheFolderNothingIsKept(t *testing.T) {
	w := newWorld(t)
	w.cache = ""
	c := w.offers("x.wasm", "1", "x")
	for range 2 {
		w.start()
		w.apply(c)
		w.lists("x")
		if len(w.workers.described) != 1 {
			t.Errorf("described %d times", len(w.workers.described))
		}
	}
}

// carrying returns a module whose manifest claims what claim says.
func carrying(claim dialecttest.Module) dialecttest.Module {
	return dialecttest.Module{Version: "1", Tools: specs("x"), Manifest: claim.Description()}
}

func TestManifestServesUntilTheFirstCall(t *testing.T) {
	w := newWorld(t)
	c := w.module("x.wasm", carrying(dialecttest.Module{Version: "1", Tools: specs("x")}))
	w.apply(c)
	w.lists("x")
	if len(w.workers.described) != 0 {
		t.Error("described though the manifest says it all")
	}
	for range 3 {
		if got, err := w.text("x", `{}`); err != nil || got != "x{}" {
			t.Fatalf("call = %q, %v", got, err)
		}
	}
	if len(w.workers.described) != 1 {
		t.Errorf("described %d times, want once, before the first call", len(w.workers.described))
	}
	w.start()
	w.apply(c)
	w.untouched()
	if _, err := w.text("x", `{}`); err != nil || len(w.workers.described) != 0 {
		t.Errorf("%v, described %v: it was compared before", err, w.workers.described)
	}
}

// Whitespace, order of keys and escapes are no difference; a word is.
func TestF06_ManifestThatLiesIsRejectedAtTheFirstCall(t *testing.T) {
	w := newWorld(t)
	claim := dialecttest.Module{Version: "1", Tools: []tool.Spec{{Name: "x", Description: "does something nicer", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	c := w.module("x.wasm", carrying(claim))
	w.apply(c)
	w.lists("x")
	changed := make(chan struct{}, 10)
	w.Subscribe(func() { changed <- struct{}{} })
	_, err := w.text("x", `{}`)
	if !errors.Is(err, tool.ErrRejected) || !strings.Contains(err.Error(), "hutch.manifest does not match what the module says") {
		t.Fatalf("call = %v", err)
	}
	<-changed
	w.lists()
	w.says("x.wasm", tool.Rejected, "hutch.manifest does not match")
	if _, err := w.text("x", `{}`); !errors.Is(err, tool.ErrNotFound) {
		t.Errorf("the next call = %v", err)
	}
	w.apply(c)
	w.says("x.wasm", tool.Rejected, "hutch.manifest does not match")
	w.start()
	w.apply(c)
	w.says("x.wasm", tool.Rejected, "hutch.manifest does not match")
	w.untouched()
}

// A version that replaces one is asked itself before it takes its place, whatever its
// manifest says: the old pair stays.
func TestF06_ManifestThatLiesReplacesNothing(t *testing.T) {
	old := ""
	w := newWorldWith(t, func(o *Options) { o.Pinned = func(tool.Candidate) string { return old } })
	good := w.offers("x.wasm", "1", "x")
	liar := w.module("x.wasm", dialecttest.Module{Version: "1", Tools: specs("y"), Manifest: dialecttest.Module{Version: "1", Tools: specs("x")}.Description()})
	stays := func(when string) {
		t.Helper()
		w.apply(liar)
		w.lists("x")
		w.says("x.wasm", tool.Ready, "serving the version before (sha256:"+good.Digest[:12]+"…): hutch.manifest does not match what the module says")
		if got, err := w.text("x", `{}`); err != nil || got != "x{}" {
			t.Errorf("%s: call = %q, %v", when, got, err)
		}
	}
	w.apply(good)
	w.Subscribe(func() { t.Error("told of a change") })
	stays("replaced")
	stays("again")
	old = good.Digest
	w.start()
	stays("after a restart")
	w.cache = t.TempDir()
	w.start()
	stays("after a restart that knows nothing")
}

// What was listed by its manifest alone, in another place, is asked once it replaces
// something; that it cannot be asked now costs nobody anything.
func TestF06_KnownManifestsAreComparedWhenTheyReplace(t *testing.T) {
	w := newWorld(t)
	next := carrying(dialecttest.Module{Version: "1", Tools: specs("x")})
	w.apply(w.module("x.wasm", next))
	if len(w.workers.described) != 0 {
		t.Error("described though the manifest says it all")
	}
	good, again := w.offers("x.wasm", "0", "x"), w.module("x.wasm", next)
	w.apply(good)
	w.workers.described, w.workers.fail[again.Digest] = nil, abi.Failf(abi.ClassBusy, "no room")
	w.apply(again)
	w.says("x.wasm", tool.Ready, "no room")
	w.lists("x")
	delete(w.workers.fail, again.Digest)
	w.workers.described = nil
	w.Retry(t.Context())
	w.says("x.wasm", tool.Ready, "")
	if m := w.Modules()[0]; m.Serving != again.Digest || m.Unconfirmed || len(w.workers.described) != 1 {
		t.Errorf("serving %.12s, unconfirmed %v, described %v", m.Serving, m.Unconfirmed, w.workers.described)
	}
}

// A manifest that says less than the module asks for does not get it past those who
// would have been asked.
func TestF06_ManifestThatAsksForLess(t *testing.T) {
	w := newWorld(t)
	m := carrying(dialecttest.Module{Version: "1", Tools: specs("x")})
	m.Requests = tool.Requests{"http": json.RawMessage(`[{"host":"example.org","reason":"none"}]`)}
	w.apply(w.module("x.wasm", m))
	w.lists("x")
	if _, err := w.text("x", `{}`); !errors.Is(err, tool.ErrRejected) || !strings.Contains(err.Error(), "tools or requests are not the same in describe") {
		t.Errorf("call = %v", err)
	}
	w.lists()
}

func TestF06_ManifestOfAnotherVersionIsRejected(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("x.wasm", carrying(dialecttest.Module{Version: "2", Tools: specs("x")})))
	if _, err := w.text("x", `{}`); !errors.Is(err, tool.ErrRejected) || !strings.Contains(err.Error(), `version "2", describe says "1"`) {
		t.Errorf("call = %v", err)
	}
}

func TestBusyWorkerDoesNotRefuteAManifest(t *testing.T) {
	w := newWorld(t)
	c := w.module("x.wasm", carrying(dialecttest.Module{Version: "1", Tools: specs("x")}))
	w.apply(c)
	w.workers.fail[c.Digest] = abi.Failf(abi.ClassTimeout, "too slow")
	if _, err := w.text("x", `{}`); !errors.Is(err, tool.ErrTimeout) {
		t.Errorf("call = %v", err)
	}
	w.lists("x")
	delete(w.workers.fail, c.Digest)
	if got, err := w.text("x", `{}`); err != nil || got != "x{}" {
		t.Errorf("call = %q, %v", got, err)
	}
}

func TestManifestThatIsNoneIsRejected(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("x.wasm", dialecttest.Module{Manifest: []byte(`{"tools":[],"tools":[]}`)}))
	w.says("x.wasm", tool.Rejected, "hutch.manifest: ")
}

// Many first calls at once ask the module once.
func TestFirstCallsCompareOnce(t *testing.T) {
	w := newWorld(t)
	w.apply(w.module("x.wasm", carrying(dialecttest.Module{Version: "1", Tools: specs("x")})))
	w.workers.call = func(context.Context, worker.Module, abi.Invocation) ([]byte, error) {
		return rawjson.Marshal(tool.Text("ok"))
	}
	done := make(chan error)
	for range 16 {
		go func() {
			_, err := w.text("x", `{}`)
			done <- err
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := len(w.workers.described); n != 1 {
		t.Errorf("described %d times", n)
	}
}
