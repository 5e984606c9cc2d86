package sandbox

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

var counter = mod{Do: steps(dialecttest.Count())}.Bytes()

const counted = `{"content":[],"structuredContent":{"n":1}}`

// entries returns the files of the cache but for the sums.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != sumsFile {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// logged returns options that log into the buffer.
func logged(dir string) (Options, *bytes.Buffer) {
	var log bytes.Buffer
	return Options{CacheDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

// cached compiles the counter with a cache, sees that it works, and returns
// what was logged.
func cached(t *testing.T, dir string) string {
	t.Helper()
	o, log := logged(dir)
	if out, _, err := run(t, compiled(t, counter, o)); err != nil || out != counted {
		t.Errorf("%q, %v", out, err)
	}
	return log.String()
}

func TestCacheIsUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	list := entries(t, dir)
	if len(list) != 1 {
		t.Fatalf("entries: %q", list)
	}
	before, err := os.Stat(list[0])
	if err != nil {
		t.Fatal(err)
	}
	if log := cached(t, dir); log != "" {
		t.Errorf("logged %s", log)
	}
	after, err := os.Stat(list[0])
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the entry was written again: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
}

func TestE25_DamagedEntriesAreCompiledAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	entry := entries(t, dir)[0]
	good, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	damage := map[string]func([]byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"truncated": func(b []byte) []byte { return b[:len(b)/2] },
		"longer":    func(b []byte) []byte { return append(b, 0) },
		"garbage":   func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) },
	}
	for i := range 40 { // function offsets, which the engine does not check, included
		damage["flipped"+strings.Repeat("'", i)] = func(b []byte) []byte {
			b[i*len(b)/40] ^= 0x40
			return b
		}
	}
	for name, f := range damage {
		if err := os.WriteFile(entry, f(bytes.Clone(good)), 0o600); err != nil {
			t.Fatal(err)
		}
		if log := cached(t, dir); !strings.Contains(log, "damaged cache entry") {
			t.Errorf("%s: logged %q", name, log)
		}
		if log := cached(t, dir); log != "" {
			t.Errorf("%s: not healed: %s", name, log)
		}
	}
}

func TestEntryOfAnotherEngine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	entry := entries(t, dir)[0]
	if err := os.WriteFile(entry, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := logged(dir)
	folder, err := openCacheUnchecked(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	folder.seal()
	if log := cached(t, dir); !strings.Contains(log, "the engine refuses") {
		t.Errorf("logged %q", log)
	}
	if log := cached(t, dir); log != "" {
		t.Errorf("not healed: %s", log)
	}
}

// openCacheUnchecked returns the counter's folder as it is.
func openCacheUnchecked(dir string, o Options) (cacheFolder, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return cacheFolder{}, err
	}
	return cacheFolder{path: filepath.Join(dir, list[0].Name()), logger: o.Logger}, nil
}

func TestE25_CacheFoldersOfOthersAreRefused(t *testing.T) {
	const want = "internal: compilation cache: not a folder that only this user can write; remove it or choose another one"
	refused := func(name, dir string) {
		t.Helper()
		o, _ := logged(dir)
		if m, err := Compile(t.Context(), checked(t, counter), o); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	chmod := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	entry := entries(t, dir)[0]
	for _, path := range []string{dir, filepath.Dir(entry), entry} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, bits := range []fs.FileMode{0o020, 0o002} {
			chmod(path, info.Mode().Perm()|bits)
			refused(path, dir)
		}
		chmod(path, info.Mode().Perm())
	}
	cached(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	refused("link", link)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkOwner(dir, info, os.Getuid()+1); err == nil {
		t.Error("a folder of another user is accepted")
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := logged(filepath.Join(file, "cache"))
	_, err := Compile(t.Context(), checked(t, counter), o)
	if got := errorText(err); got != "internal: compilation cache: the folder cannot be used" {
		t.Error(got)
	}
	// Where an entry can be neither read nor written, a module runs all the same.
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	entry := entries(t, dir)[0]
	if err := os.Remove(entry); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(entry, 0o700); err != nil {
		t.Fatal(err)
	}
	if log := cached(t, dir); !strings.Contains(log, "compiling without a cache") {
		t.Errorf("logged %q", log)
	}
}

func TestE23_E24_ManyModulesOverOneFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	for range 5 {
		runAtOnce(t, dir, 32)
	}
}

// runAtOnce compiles, runs and closes as many modules over one folder.
func runAtOnce(t *testing.T, dir string, modules int) {
	t.Helper()
	var wg sync.WaitGroup
	for range modules {
		wg.Go(func() {
			m, err := Compile(context.Background(), checked(t, counter), Options{CacheDir: dir, Hosts: []HostModule{hutchHost()}})
			if err != nil {
				t.Error(err)
				return
			}
			if out, _, err := run(t, m); err != nil || out != counted {
				t.Errorf("%q, %v", out, err)
			}
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// Two files with the same code compile into one folder, at once if they can.
func TestE24_FirstUseOfAColdFolder(t *testing.T) {
	for range 10 {
		dir := filepath.Join(t.TempDir(), "cache")
		runAtOnce(t, dir, 16)
		if log := cached(t, dir); log != "" {
			t.Errorf("the folder is not whole afterwards: %s", log)
		}
	}
}

func TestE24_FirstUseFromAWarmFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	for range 50 {
		o, _ := logged(dir)
		m := compiled(t, counter, o)
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				if out, _, err := run(t, m); err != nil || out != counted {
					t.Errorf("%q, %v", out, err)
				}
			})
		}
		wg.Wait()
	}
}

func TestE22_SameBytesTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	o, _ := logged(dir)
	first, second := compiled(t, counter, o), compiled(t, counter, o)
	for range 2 {
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if out, _, err := run(t, second); err != nil || out != counted {
		t.Errorf("%q, %v", out, err)
	}
}

// A cache that may only be read is used or left alone, and never changed.
func TestReadOnlyCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	entry := entries(t, dir)[0]
	for _, test := range []struct {
		name   string
		damage func() error
		stale  bool
		log    string
	}{
		{"whole", func() error { return nil }, false, ""},
		{"damaged", func() error { return os.WriteFile(entry, []byte("x"), 0o600) }, true, "damaged cache entry"},
		{"of another engine", func() error {
			o, _ := logged(dir)
			folder, err := openCacheUnchecked(dir, o)
			folder.seal()
			return err
		}, true, "the engine refuses"},
		{"empty", func() error { return os.Remove(entry) }, true, ""},
	} {
		if err := test.damage(); err != nil {
			t.Fatal(err)
		}
		before := strings.Join(entries(t, dir), " ")
		o, log := logged(dir)
		o.CacheReadOnly = true
		m := compiled(t, counter, o)
		if out, _, err := run(t, m); err != nil || out != counted {
			t.Errorf("%s: %q, %v", test.name, out, err)
		}
		if m.CacheStale() != test.stale || !strings.Contains(log.String(), test.log) {
			t.Errorf("%s: stale %v, logged %q", test.name, m.CacheStale(), log)
		}
		if after := strings.Join(entries(t, dir), " "); after != before {
			t.Errorf("%s: %q became %q", test.name, before, after)
		}
	}
}

// A folder that was tidied away before it was read is one that holds nothing.
func TestReadOnlyCacheThatIsGone(t *testing.T) {
	o, _ := logged(filepath.Join(t.TempDir(), "gone"))
	o.CacheReadOnly = true
	m := compiled(t, counter, o)
	if out, _, err := run(t, m); err != nil || out != counted || !m.CacheStale() {
		t.Errorf("%q, %v, stale %v", out, err, m.CacheStale())
	}
}
