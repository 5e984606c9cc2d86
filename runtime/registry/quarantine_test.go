package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/worker"
)

// dies reports so many deaths of a module's workers.
func (w *world) dies(c tool.Candidate, times int, how string) {
	for range times {
		w.Died(worker.Module{Name: c.Name, Digest: c.Digest}, how)
	}
}

const took = "quarantined: took its worker down 3 times within 10m0s (1 by crash, 2 by timeout): replace the file, or hutch tools release a.wasm"

func TestModuleThatKeepsKillingWorkersIsQuarantined(t *testing.T) {
	w := newWorld(t)
	a, b := w.offers("a.wasm", "1", "a"), w.offers("b.wasm", "1", "b")
	w.apply(a, b)
	told := make(chan struct{}, 9)
	defer w.Subscribe(func() { told <- struct{}{} })()
	w.dies(a, 2, "timeout")
	w.lists("a", "b")
	w.dies(a, 1, "crash")
	<-told
	w.lists("b")
	w.says("a.wasm", tool.Held, took)
	if _, err := w.text("a", `{}`); !errors.Is(err, tool.ErrNotFound) {
		t.Errorf("called: %v, want as if it did not exist", err)
	}
	w.dies(a, 5, "crash") // what still ran
	w.says("a.wasm", tool.Held, took)
	if q := w.Quarantined(); len(q) != 1 || q[0].Module != "a.wasm" || q[0].Digest != a.Digest {
		t.Errorf("quarantined: %+v", q)
	}

	w.start() // a restart remembers, and does not even describe it
	w.apply(a, b)
	w.says("a.wasm", tool.Held, took)
	w.lists("b")
	if err := os.RemoveAll(w.cache); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.apply(a, b)
	w.says("a.wasm", tool.Held, took)
	if got := strings.Join(w.workers.described, " "); got != "b.wasm" {
		t.Errorf("described %s, want b.wasm alone", got)
	}

	w.apply(w.offers("a.wasm", "2", "a"), b) // a new digest is a new chance
	w.lists("a", "b")
	w.apply(a, b) // a quarantined version does not replace one that serves
	w.lists("a", "b")
	w.says("a.wasm", tool.Ready, "serving the version before")
}

// Another process releases it by removing the record.
func TestReleaseIsNoticed(t *testing.T) {
	for name, known := range map[string]bool{"of a module that served": true, "of one that was never described": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.offers("a.wasm", "1", "a")
			if known {
				w.apply(a)
			}
			w.dies(a, 3, "crash")
			w.apply(a)
			w.says("a.wasm", tool.Held, "3 by crash")
			<-w.Refresh(t.Context())
			w.lists()
			if released, err := Release(w.jail, "b.wasm"); err != nil || len(released) != 0 {
				t.Errorf("released %v, %v", released, err)
			}
			released, err := Release(w.jail, "a.wasm")
			if err != nil || len(released) != 1 || released[0].Digest != a.Digest {
				t.Fatalf("released %v, %v", released, err)
			}
			<-w.Refresh(t.Context())
			w.lists("a")
			w.dies(a, 2, "crash") // it starts from nothing
			w.lists("a")
			w.dies(a, 1, "crash")
			w.lists()
			if released, err := Release(w.jail, "sha256:"+a.Digest); err != nil || len(released) != 1 {
				t.Errorf("released %v, %v", released, err)
			}
		})
	}
}

// Two registries on one folder: what one quarantines, the other refuses too.
func TestQuarantineIsShared(t *testing.T) {
	w := newWorld(t)
	a := w.offers("a.wasm", "1", "a")
	w.apply(a)
	other := w.Registry
	w.start()
	w.apply(a)
	w.dies(a, 3, "memory")
	<-other.Refresh(t.Context())
	if n := len(other.List(tool.Caller{})); n != 0 {
		t.Errorf("the other still lists %d tools", n)
	}
}

// Deaths that lie far apart do not add up.
func TestDeathsAreForgotten(t *testing.T) {
	q, err := newQuarantine(Options{Deaths: 3, DeathWindow: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i, after := range []time.Duration{0, 30 * time.Second, 40 * time.Second, 50 * time.Second, 10 * time.Second} {
		now = now.Add(after)
		// Only the last is the third within a minute.
		if _, held := q.died("a.wasm", "a", "crash", now); held != (i == 4) {
			t.Errorf("death %d: held %t", i+1, held)
		}
	}
	q.died("c.wasm", "c", "crash", now)
	q.died("b.wasm", "b", "crash", now.Add(time.Hour))
	if len(q.deaths) != 1 {
		t.Errorf("deaths of %d modules kept, want the last one's", len(q.deaths))
	}
}

func TestDamagedQuarantineRecordsHold(t *testing.T) {
	w := newWorld(t)
	a := w.offers("a.wasm", "1", "a")
	if err := os.WriteFile(filepath.Join(w.jail, a.Digest+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.jail, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-w.Refresh(t.Context())
	w.apply(a)
	w.says("a.wasm", tool.Held, "hutch tools release sha256:"+a.Digest)
}

// A folder that cannot be written leaves this process at least.
func TestQuarantineThatCannotBeSaved(t *testing.T) {
	w := newWorld(t)
	a := w.offers("a.wasm", "1", "a")
	w.apply(a)
	if err := os.RemoveAll(w.jail); err != nil {
		t.Fatal(err)
	}
	w.dies(a, 3, "crash")
	<-w.Refresh(t.Context())
	w.lists()
	if !strings.Contains(w.log.String(), "the next start will not know") {
		t.Errorf("log: %s", w.log)
	}
}

func TestNamesInCommandsAreQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"text_2.wasm": "text_2.wasm", "a b.wasm": "'a b.wasm'", "it's.wasm": `'it'\''s.wasm'`, "-f.wasm": "'-f.wasm'", "$(x).wasm": "'$(x).wasm'",
	} {
		if got := shellWord(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Deaths, applies, releases and calls from everywhere at once.
func TestHammerQuarantine(t *testing.T) {
	w := newWorld(t)
	a, b := w.offers("a.wasm", "1", "a"), w.offers("b.wasm", "1", "b")
	w.apply(a, b)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 30 {
				switch i % 4 {
				case 0:
					w.dies(a, 1, "crash")
				case 1:
					if _, err := Release(w.jail, "a.wasm"); err != nil {
						t.Error(err)
					}
					<-w.Refresh(t.Context())
				case 2:
					w.Apply(t.Context(), []tool.Candidate{a, b})
				default:
					if _, err := w.text("b", `{}`); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if _, err := Release(w.jail, "a.wasm"); err != nil {
		t.Error(err)
	}
	<-w.Refresh(t.Context())
	w.lists("a", "b")
}
