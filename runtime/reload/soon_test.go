package reload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// moved puts content where it can be renamed from, as it was an hour ago.
func moved(t *testing.T, dir, content string) string {
	t.Helper()
	path := filepath.Join(dir, ".next-"+content)
	write(t, path, content)
	hour := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, hour, hour))
	return path
}

// The first change after a while is looked for at once, and bytes that were here
// before need no time to settle in a file that was renamed into place.
func TestKnownBytesRenamedIntoPlaceAreToldAtOnce(t *testing.T) {
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "old") }, func(s *stage) {
		_, _, err := s.blobs.Put(strings.NewReader("new"), 3)
		must(t, err)
		before := s.count()
		must(t, os.Rename(moved(s.T, s.dir, "new"), s.path("x.wasm")))
		s.touched("x.wasm")
		s.pass(time.Millisecond)
		s.holds("x.wasm=new")
		if n := s.count() - before; n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	})
}

// A name that appears before the rename, such as that of the file it is written to,
// does not use up the first look.
func TestALookThatTellsNothingDelaysNothing(t *testing.T) {
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "old") }, func(s *stage) {
		_, _, err := s.blobs.Put(strings.NewReader("new"), 3)
		must(t, err)
		next := moved(s.T, s.dir, "new")
		s.touched(filepath.Base(next))
		s.pass(time.Millisecond)
		must(t, os.Rename(next, s.path("x.wasm")))
		s.touched("x.wasm")
		s.pass(100 * time.Millisecond)
		s.holds("x.wasm=new")
	})
}

// Neither bytes that nobody has seen whole nor a file that is written in place are
// taken at once, whatever they hold: F01.
func TestF01_OnlyKnownBytesThatWereRenamedNeedNoTime(t *testing.T) {
	for name, replace := range map[string]func(s *stage){
		"unknown bytes, renamed": func(s *stage) {
			must(s.T, os.Rename(moved(s.T, s.dir, "new"), s.path("x.wasm")))
		},
		"known bytes, written in place": func(s *stage) {
			_, _, err := s.blobs.Put(strings.NewReader("new"), 3)
			must(s.T, err)
			write(s.T, s.path("x.wasm"), "new")
		},
		"no bytes yet, though they are known": func(s *stage) {
			_, _, err := s.blobs.Put(strings.NewReader(""), 3)
			must(s.T, err, os.Remove(s.path("x.wasm")))
			write(s.T, s.path("x.wasm"), "")
			hour := time.Now().Add(-time.Hour)
			must(s.T, os.Chtimes(s.path("x.wasm"), hour, hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "old") }, func(s *stage) {
				before := s.count()
				replace(s)
				s.touched("x.wasm")
				s.pass(150 * time.Millisecond)
				s.holds("x.wasm=old")
				s.pass(100 * time.Millisecond)
				if n := s.count() - before; n != 1 {
					t.Errorf("told %d times when it had settled, want once", n)
				}
			})
		})
	}
}

func TestArrived(t *testing.T) {
	dir := t.TempDir()
	stat := func(name, content string) os.FileInfo {
		write(t, filepath.Join(dir, name), content)
		fi, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		return fi
	}
	one, other, empty := stat("one", "1"), stat("other", "2"), stat("empty", "")
	moved, err := os.Stat(moved(t, dir, "moved"))
	must(t, err)
	for name, c := range map[string]struct {
		fi, before os.FileInfo
		want       bool
	}{
		"another file":              {other, one, true},
		"the same file":             {one, one, false},
		"a new name":                {one, nil, false},
		"another one without bytes": {empty, one, false},
		"a new name, renamed":       {moved, nil, changedAt(moved).After(moved.ModTime())},
	} {
		if got := arrived(c.fi, c.before); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// One slow scan must not hold up the next, and no number of them for long.
func TestRest(t *testing.T) {
	const ms, settle = time.Millisecond, 250 * time.Millisecond
	for _, c := range []struct{ took, before, want time.Duration }{
		{2 * ms, 2 * ms, 20 * ms},
		{1500 * ms, 2 * ms, 20 * ms},
		{2 * ms, 1500 * ms, 20 * ms},
		{50 * ms, 60 * ms, 500 * ms},
		{1500 * ms, 1700 * ms, 1000 * ms},
	} {
		if got := rest(c.took, c.before, settle); got != c.want {
			t.Errorf("after %v and %v: %v, want %v", c.before, c.took, got, c.want)
		}
	}
}

// What is taken away and written anew is never told as missing.
func TestAFileThatIsRewrittenIsNeverGone(t *testing.T) {
	for name, c := range map[string]struct {
		away func(s *stage) error
		back func(s *stage) error
	}{
		"the file":   {func(s *stage) error { return os.Remove(s.path("x.wasm")) }, func(s *stage) error { return nil }},
		"the folder": {func(s *stage) error { return os.RemoveAll(s.dir) }, func(s *stage) error { return os.Mkdir(s.dir, 0o700) }},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "old") }, func(s *stage) {
				before := s.count()
				must(t, c.away(s))
				s.touched("x.wasm")
				s.events <- fsnotify.Event{Name: s.dir, Op: fsnotify.Remove}
				s.pass(100 * time.Millisecond)
				s.holds("x.wasm=old")
				must(t, c.back(s))
				write(t, s.path("x.wasm"), "new")
				s.touched("x.wasm")
				s.pass(time.Second)
				s.holds("x.wasm=new")
				if n := s.count() - before; n != 1 {
					t.Errorf("told %d times, want once", n)
				}
				must(t, c.away(s))
				s.touched("x.wasm")
				s.events <- fsnotify.Event{Name: s.dir, Op: fsnotify.Remove}
				s.pass(time.Second)
				s.holds()
			})
		})
	}
}

// A file that is renamed within its folder is told under one name at a time.
func TestARenamedFileHasOneName(t *testing.T) {
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "a.wasm"), "A") }, func(s *stage) {
		must(t, os.Rename(s.path("a.wasm"), s.path("b.wasm")))
		s.touched("b.wasm")
		s.pass(time.Second)
		s.holds("b.wasm=A")
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, set := range s.emitted {
			if len(set) > 1 {
				t.Errorf("told %v", set)
			}
		}
	})
}

// However many changes there are, they are told four times a second.
func TestF14_AStormIsToldFourTimesASecond(t *testing.T) {
	const seconds = 5
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "0.wasm"), "X") }, func(s *stage) {
		before := s.count()
		for i := range seconds * 200 {
			must(t, os.Rename(s.path(fmt.Sprint(i, ".wasm")), s.path(fmt.Sprint(i+1, ".wasm"))))
			s.touched("x.wasm")
			s.pass(5 * time.Millisecond)
		}
		s.pass(time.Second)
		if n := s.count() - before; n > 4*seconds+1 || n < 3*seconds {
			t.Errorf("told %d times in %d seconds", n, seconds)
		}
	})
}
