package worker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// code returns a name for compiled code.
func code(n int) string { return fmt.Sprintf("%064x", n) }

// keepCode puts finished code of 100 bytes into the folder, last used so long ago.
func keepCode(t *testing.T, dir string, n int, ago time.Duration) {
	t.Helper()
	path, at := filepath.Join(dir, code(n)), time.Now().Add(-ago)
	err := errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "code"), make([]byte, 100), 0o600), os.Chtimes(path, at, at))
	if err != nil {
		t.Fatal(err)
	}
}

func TestTidyRemovesTheLeastRecentlyUsed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		budget int64
		inUse  []int
		left   []int
	}{
		{"all fit", 400, nil, []int{1, 2, 3, 4}},
		{"one too many", 399, nil, []int{1, 2, 4}},
		{"two too many", 200, nil, []int{2, 4}},
		{"the oldest is in use", 200, []int{3}, []int{3, 4}},
		{"all are in use", 100, []int{1, 2, 3, 4}, []int{1, 2, 3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, log := newCacheFolder(t)
			for n, ago := range []time.Duration{0, 3 * time.Hour, 2 * time.Hour, 4 * time.Hour, time.Hour} {
				if n > 0 {
					keepCode(t, c.dir, n, ago)
				}
			}
			if err := os.WriteFile(filepath.Join(c.dir, "notes"), make([]byte, 1000), 0o600); err != nil {
				t.Fatal(err)
			}
			c.tidy(tt.budget, func(name string) bool {
				for _, n := range tt.inUse {
					if name == code(n) {
						return true
					}
				}
				return false
			})
			var want []string
			for _, n := range tt.left {
				want = append(want, code(n))
			}
			if got := names(t, c.dir); got != strings.Join(append(want, "notes"), " ") {
				t.Errorf("left: %s", got)
			}
			if over := len(tt.left) == 4 && tt.budget < 400; strings.Contains(log.String(), "more room than it should") != over {
				t.Errorf("logged %q", log)
			}
		})
	}
}

// A hit counts as use, and code that was taken since it was listed stays.
func TestTidyLeavesWhatWasJustTaken(t *testing.T) {
	c, _ := newCacheFolder(t)
	keepCode(t, c.dir, 1, 3*time.Hour)
	keepCode(t, c.dir, 2, 2*time.Hour)
	if !c.open(code(1)).finished() {
		t.Fatal("the code was not found")
	}
	c.tidy(100, func(string) bool { return false })
	if got := names(t, c.dir); got != code(1) {
		t.Errorf("left: %s, want what was taken last", got)
	}
	listed, err := c.list()
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(c.dir, code(1)), later, later); err != nil {
		t.Fatal(err)
	}
	if gone, err := c.removeUnused(listed[0], func(string) bool { return false }); gone || err != nil {
		t.Errorf("removed what was taken meanwhile: %v, %v", gone, err)
	}
}

// Real workers: the code of one that lives, or that the caller names, stays; what
// was removed is made again, and no call notices.
func TestTidyDisturbsNoCall(t *testing.T) {
	dir := t.TempDir()
	p := newReal(t, Options{CacheDir: dir, CacheBytes: 1})
	live, gone := doing(dialecttest.Text("live")), doing(dialecttest.Text("gone"))
	ask := func(m Module) {
		t.Helper()
		if _, err := p.Describe(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	ask(live)
	ask(gone)
	p.Retire(gone.Digest)
	p.Tidy(map[string]bool{gone.Digest: true})
	if n := len(strings.Fields(names(t, dir))); n != 2 {
		t.Errorf("left: %d, want both", n)
	}
	for len(p.processes()) > 1 { // the retired one is on its way out
		runtime.Gosched()
	}
	p.Tidy(nil)
	if got := names(t, dir); got != live.Digest {
		t.Errorf("left: %q, want that of the worker alive", got)
	}
	ask(gone)
	if n := len(strings.Fields(names(t, dir))); n != 2 {
		t.Errorf("left: %d, want the code made again", n)
	}
}

func TestTidyWithoutACache(t *testing.T) {
	newReal(t, Options{}).Tidy(nil) // has nothing to do, and nowhere to look
}
