package worker

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

func newCacheFolder(t *testing.T) (*cacheFolder, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	return &cacheFolder{dir: t.TempDir(), log: slog.New(slog.NewTextHandler(log, nil))}, log
}

// fill does what a worker does with an entry.
func fill(t *testing.T, e cacheEntry) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.path, "code"), []byte("code"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// names returns what lies in a folder.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

func TestCacheEntries(t *testing.T) {
	c, log := newCacheFolder(t)
	first, second := c.open("aa"), c.open("aa")
	if !first.fresh || !second.fresh || first.path == second.path {
		t.Fatalf("entries %+v and %+v, want two folders to be filled", first, second)
	}
	fill(t, first)
	fill(t, second)
	first.finish(false)
	first.discard()
	second.finish(false) // the first was faster
	second.discard()
	if got := names(t, c.dir); got != "aa" {
		t.Errorf("there is %q", got)
	}
	hit := c.open("aa")
	if hit.fresh || hit.path != filepath.Join(c.dir, "aa") {
		t.Errorf("a hit is %+v", hit)
	}
	hit.finish(false)
	hit.discard()
	if got := names(t, c.dir); got != "aa" {
		t.Errorf("after a hit there is %q", got)
	}
	hit.finish(true)
	hit.discard()
	hit.finish(true) // another process was faster
	if got := names(t, c.dir); got != "" {
		t.Errorf("after a stale hit there is %q", got)
	}
	lost := c.open("bb")
	fill(t, lost)
	lost.discard() // the load failed
	if got := names(t, c.dir); got != "" {
		t.Errorf("after a failed load there is %q", got)
	}
	if log.String() != "" {
		t.Errorf("logged %s", log)
	}
}

// What a worker left is looked at before another one is given it.
func TestCacheEntriesAreChecked(t *testing.T) {
	for name, leave := range map[string]func(dir string) error{
		"a file of type": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) },
		"17 files": func(dir string) error {
			var err error
			for i := range maxCacheFiles + 1 {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, strings.Repeat("x", i+1)), nil, 0o600))
			}
			return err
		},
		"bytes, at most": func(dir string) error {
			large := filepath.Join(dir, "large")
			return errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, maxCacheBytes+1))
		},
	} {
		c, log := newCacheFolder(t)
		e := c.open("aa")
		if err := leave(e.path); err != nil {
			t.Fatal(err)
		}
		e.finish(false)
		e.discard()
		if got := names(t, c.dir); got != "" || !strings.Contains(log.String(), name) {
			t.Errorf("%s: there is %q, logged %q", name, got, log)
		}
	}
}

func TestCacheSweep(t *testing.T) {
	c, log := newCacheFolder(t)
	old := time.Now().Add(-2 * abandonedAfter)
	for _, name := range []string{unfinished + "old", unfinished + "young", "finished"} {
		if err := os.MkdirAll(filepath.Join(c.dir, name, "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == unfinished+"young" {
			continue
		}
		if err := os.Chtimes(filepath.Join(c.dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	newReal(t, Options{CacheDir: c.dir})
	if got := names(t, c.dir); got != unfinished+"young finished" {
		t.Errorf("there is %q, logged %s", got, log)
	}
}

func TestCacheThatCannotBeFilled(t *testing.T) {
	c, log := newCacheFolder(t)
	c.dir = filepath.Join(c.dir, "missing")
	e := c.open("aa")
	e.finish(false)
	e.discard()
	if e.path != "" || !strings.Contains(log.String(), "not kept") {
		t.Errorf("%+v, logged %q", e, log)
	}
}

// Real workers: the first fills a folder, later ones leave it as it is, and one
// that finds it damaged has it replaced.
func TestE25_WorkersOnlyReadFinishedEntries(t *testing.T) {
	dir := t.TempDir()
	log := &logBuffer{}
	p := newReal(t, Options{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(log, nil))})
	m := doing(dialecttest.Text("hello"))
	describe := func() map[string]fs.FileInfo {
		t.Helper()
		if _, err := p.Describe(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		p.Retire(m.Digest)
		if got := names(t, dir); got != m.Digest && got != "" {
			t.Errorf("in the cache is %q", got)
		}
		return filesIn(t, dir)
	}
	first, second := describe(), describe()
	if len(first) != 2 {
		t.Fatalf("files %v, want code and digests", first)
	}
	for path, info := range first {
		if later := second[path]; later == nil || !os.SameFile(info, later) || !info.ModTime().Equal(later.ModTime()) {
			t.Errorf("%s was changed", path)
		}
	}
	for path := range first {
		if err := os.Truncate(path, 3); err != nil {
			t.Fatal(err)
		}
	}
	if after := describe(); len(after) > 0 {
		t.Errorf("a stale entry stays: %v", after)
	}
	if after := describe(); len(after) != 2 {
		t.Errorf("files %v, want them anew", after)
	}
	if strings.Contains(log.String(), "not kept") {
		t.Errorf("logged %s", log)
	}
}

// A module that does not load leaves nothing behind.
func TestFailedLoadsLeaveNoFolder(t *testing.T) {
	dir := t.TempDir()
	p := newReal(t, Options{CacheDir: dir})
	if _, err := p.Describe(t.Context(), asModule("broken.wasm", []byte("nonsense"))); err == nil {
		t.Error("no error")
	}
	if got := names(t, dir); got != "" {
		t.Errorf("in the cache is %q", got)
	}
}

func filesIn(t *testing.T, dir string) map[string]fs.FileInfo {
	t.Helper()
	found := map[string]fs.FileInfo{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found[path], err = d.Info()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
