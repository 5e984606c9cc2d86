package reload

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage runs a watcher on one folder in a bubble of fake time. Files are real;
// notifications come from the test, so they can be lost.
type stage struct {
	*testing.T
	dir     string
	blobs   *Blobs
	events  chan fsnotify.Event
	errs    chan error
	watched map[string]int
	log     bytes.Buffer

	mu      sync.Mutex
	emitted [][]tool.Candidate
}

func (s *stage) Add(path string) error { s.watched[path]++; return nil }
func (s *stage) Remove(string) error   { return fsnotify.ErrNonExistentWatch }
func (s *stage) Close() error          { return nil }
func (s *stage) Notices() (<-chan fsnotify.Event, <-chan error) {
	return s.events, s.errs
}

// onStage prepares a folder, starts the watcher and plays the scene.
func onStage(t *testing.T, prepare func(dir string), scene func(s *stage)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tools")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	blobs := openBlobs(t)
	if prepare != nil {
		prepare(dir)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, dir: dir, blobs: blobs, watched: map[string]int{},
			events: make(chan fsnotify.Event, 100), errs: make(chan error, 1)}
		o := Options{Blobs: blobs, Logger: slog.New(slog.NewTextHandler(&s.log, nil))}
		o.notify = func() (notifier, error) { return s, nil }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			New([]string{dir}, o).Run(ctx, s.take)
		}()
		s.pass(time.Second)
		scene(s)
		cancel()
		<-done
	})
}

func (s *stage) take(c []tool.Candidate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitted = append(s.emitted, c)
}

func (s *stage) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// touched sends the notification for a name.
func (s *stage) touched(name string) {
	select {
	case s.events <- fsnotify.Event{Name: s.path(name), Op: fsnotify.Create}:
	default: // a full queue loses events, as the kernel's does
	}
}

// count returns how often the set was told.
func (s *stage) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.emitted)
}

// holds fails unless the set told last is this: "name=content" or "name!error".
func (s *stage) holds(want ...string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, c := range s.emitted[len(s.emitted)-1] {
		if c.Err != nil {
			got = append(got, c.Name+"!"+c.Err.Error())
			continue
		}
		raw, err := s.blobs.Fetch(c.Digest)
		if err != nil || int64(len(raw)) != c.Size {
			s.Errorf("%s: %d bytes in the blobs, candidate says %d, %v", c.Name, len(raw), c.Size, err)
		}
		got = append(got, c.Name+"="+string(raw))
	}
	if !slices.Equal(got, want) {
		s.Errorf("holds %q, want %q", got, want)
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRunTellsTheWholeSetOnceForEachChange(t *testing.T) {
	onStage(t, func(dir string) {
		write(t, filepath.Join(dir, "b.wasm"), "B")
		write(t, filepath.Join(dir, "a.wasm"), "A")
		for _, ignored := range []string{".c.wasm", "c.wasm~", "c.wasm.tmp", "c.txt", ".c.wasm.swp", "4913"} {
			write(t, filepath.Join(dir, ignored), "no module")
		}
	}, func(s *stage) {
		s.holds("a.wasm=A", "b.wasm=B")
		before := s.count()
		s.touched("a.wasm")
		s.pass(time.Minute)
		if s.count() != before {
			t.Errorf("told %d times though nothing changed", s.count()-before)
		}
		must(t, os.Remove(s.path("a.wasm")))
		s.touched("a.wasm")
		s.pass(time.Second)
		s.holds("b.wasm=B")
	})
}

// The file is served as it was until the new one is whole, and told once (F01).
func TestF01_SlowWriterIsNeverSeenHalfway(t *testing.T) {
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "old") }, func(s *stage) {
		before := s.count()
		f, err := os.Create(s.path("x.wasm"))
		must(t, err)
		for range 100 {
			_, err := f.WriteString(strings.Repeat("n", 64))
			must(t, err)
			s.touched("x.wasm")
			s.pass(10 * time.Millisecond)
		}
		if s.count() != before {
			t.Error("told while the file was being written")
		}
		s.holds("x.wasm=old")
		must(t, f.Close())
		s.pass(time.Second)
		s.holds("x.wasm=" + strings.Repeat("n", 6400))
		if n := s.count() - before; n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	})
}

// writers are the ways in which programs replace a file (F02).
func writers(t *testing.T) map[string]func(dir, content string) {
	replace := func(temp string) func(dir, content string) {
		return func(dir, content string) {
			write(t, filepath.Join(dir, temp), content)
			must(t, os.Rename(filepath.Join(dir, temp), filepath.Join(dir, "x.wasm")))
		}
	}
	return map[string]func(dir, content string){
		"cp":    func(dir, content string) { write(t, filepath.Join(dir, "x.wasm"), content) },
		"mv":    replace("x.wasm.tmp"),
		"rsync": replace(".x.wasm.Xa81Qz"),
		"vim": func(dir, content string) {
			file := filepath.Join(dir, "x.wasm")
			write(t, filepath.Join(dir, ".x.wasm.swp"), "swap")
			must(t, os.Rename(file, file+"~"))
			write(t, file, content)
			must(t, os.Remove(file+"~"), os.Remove(filepath.Join(dir, ".x.wasm.swp")))
		},
		"k8s": func(dir, content string) {
			version := "..v_" + content
			must(t, os.Mkdir(filepath.Join(dir, version), 0o700))
			write(t, filepath.Join(dir, version, "x.wasm"), content)
			must(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")),
				os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
			if fi, err := os.Lstat(filepath.Join(dir, "x.wasm")); err == nil && fi.Mode().IsRegular() {
				must(t, os.Remove(filepath.Join(dir, "x.wasm")))
			}
			if _, err := os.Lstat(filepath.Join(dir, "x.wasm")); err != nil {
				must(t, os.Symlink("..data/x.wasm", filepath.Join(dir, "x.wasm")))
			}
		},
	}
}

func TestF02_EachWriterGivesOneNewVersion(t *testing.T) {
	for name, replace := range writers(t) {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "one") }, func(s *stage) {
				for i, content := range []string{"two", "three"} {
					before := s.count()
					replace(s.dir, content)
					s.touched("x.wasm")
					s.pass(2 * time.Second)
					s.holds("x.wasm=" + content)
					if n := s.count() - before; n != 1 {
						t.Errorf("replacement %d told %d times, want once", i+1, n)
					}
				}
			})
		})
	}
}

// The same with the kernel's own notifications: nothing but whole versions.
func TestF02_WritersWithRealNotifications(t *testing.T) {
	for name, replace := range writers(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "x.wasm"), "one")
			told := make(chan []tool.Candidate, 100)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				New([]string{dir}, Options{Blobs: openBlobs(t), Rescan: time.Hour}).
					Run(ctx, func(c []tool.Candidate) { told <- c })
			}()
			awaitDigest(t, told, sum("one"), nil)
			replace(dir, "two")
			awaitDigest(t, told, sum("two"), []string{sum("one")})
			replace(dir, "three")
			awaitDigest(t, told, sum("three"), []string{sum("two")})
			cancel()
			<-done
		})
	}
}

func awaitDigest(t *testing.T, told <-chan []tool.Candidate, want string, before []string) {
	t.Helper()
	for {
		select {
		case set := <-told:
			for _, c := range set {
				if c.Digest == want {
					return
				}
				if !slices.Contains(before, c.Digest) {
					t.Fatalf("%s: digest %.12s is no version that was written, %v", c.Name, c.Digest, c.Err)
				}
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the new version was never told")
		}
	}
}

func TestF03_LostEventsAreFoundByTheRescan(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		write(t, s.path("new.wasm"), "N")
		s.pass(10 * time.Second)
		s.holds()
		s.pass(25 * time.Second)
		s.holds("new.wasm=N")
	})
}

func TestF03_OverflowLooksAtOnceAndWatchesAnew(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		watches := s.watched[s.dir]
		write(t, s.path("new.wasm"), "N")
		s.errs <- fsnotify.ErrEventOverflow
		s.pass(time.Second)
		s.holds("new.wasm=N")
		if s.watched[s.dir] != watches+1 {
			t.Errorf("the folder was watched %d times anew, want once", s.watched[s.dir]-watches)
		}
	})
}

func TestWithoutNotificationsTheRescanDoesTheWork(t *testing.T) {
	dir, blobs := t.TempDir(), openBlobs(t)
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, dir: dir, blobs: blobs}
		o := Options{Blobs: blobs, Logger: slog.New(slog.NewTextHandler(&s.log, nil))}
		o.notify = func() (notifier, error) { return nil, fmt.Errorf("too many open files") }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); New([]string{dir}, o).Run(ctx, s.take) }()
		s.pass(time.Second)
		write(t, s.path("new.wasm"), "N")
		s.pass(31 * time.Second)
		s.holds("new.wasm=N")
		cancel()
		<-done
		if !strings.Contains(s.log.String(), "too many open files") {
			t.Errorf("log says nothing: %s", &s.log)
		}
	})
}

func TestFolderAppearsVanishesAndIsReplaced(t *testing.T) {
	onStage(t, func(dir string) { must(t, os.Remove(dir)) }, func(s *stage) {
		s.holds()
		parent := filepath.Dir(s.dir)
		if s.watched[parent] == 0 {
			t.Error("the parent of the missing folder is not watched")
		}
		must(t, os.Mkdir(s.dir, 0o700))
		write(t, s.path("x.wasm"), "1")
		s.events <- fsnotify.Event{Name: s.dir, Op: fsnotify.Create}
		s.pass(time.Second)
		s.holds("x.wasm=1")
		must(t, os.RemoveAll(s.dir))
		s.events <- fsnotify.Event{Name: s.dir, Op: fsnotify.Remove}
		s.pass(time.Second)
		s.holds()
		must(t, os.Mkdir(s.dir, 0o700))
		write(t, s.path("x.wasm"), "2")
		s.events <- fsnotify.Event{Name: s.dir, Op: fsnotify.Create}
		s.pass(time.Second)
		s.holds("x.wasm=2")
		if s.watched[s.dir] != 2 {
			t.Errorf("the folder was watched %d times, want anew after it was replaced", s.watched[s.dir])
		}
	})
}

// A thousand renames in a second are told at most five times, and the last
// telling is the truth (F14).
func TestF14_ChurnIsToldAFewTimes(t *testing.T) {
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "0.wasm"), "X") }, func(s *stage) {
		before := s.count()
		for i := range 1000 {
			must(t, os.Rename(s.path(fmt.Sprint(i, ".wasm")), s.path(fmt.Sprint(i+1, ".wasm"))))
			s.touched("x.wasm")
			s.pass(time.Millisecond)
		}
		s.pass(2 * time.Second)
		if n := s.count() - before; n > 5 {
			t.Errorf("told %d times, at most 5", n)
		}
		s.holds("1000.wasm=X")
	})
}

// A module that could not be kept is looked at again, though nobody touched it.
func TestStateFolderThatFails(t *testing.T) {
	dir, blobs := t.TempDir(), openBlobs(t)
	write(t, filepath.Join(dir, "x.wasm"), "X")
	w := New([]string{dir}, Options{Blobs: blobs, Stable: time.Nanosecond})
	must(t, os.RemoveAll(blobs.dir))
	write(t, blobs.dir, "in the way") // as bad as a full disk, and easier to have
	set := w.Scan(t.Context())
	if len(set) != 1 || set[0].Err == nil || !strings.HasPrefix(set[0].Err.Error(), "cannot be kept in the state folder: ") {
		t.Fatalf("Scan = %v, want an error about the state folder", set)
	}
	if strings.Contains(set[0].Err.Error(), blobs.dir) {
		t.Errorf("the error names a path: %v", set[0].Err)
	}
	must(t, os.Remove(blobs.dir)) // and is made again
	if set = w.Scan(t.Context()); len(set) != 1 || set[0].Err != nil || set[0].Digest == "" {
		t.Errorf("Scan = %v, want the module", set)
	}
}

func TestF14_ManyFilesAreCapped(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		write(t, filepath.Join(dir, fmt.Sprintf("%02d.wasm", i)), "X")
	}
	var log bytes.Buffer
	w := New([]string{dir}, Options{Blobs: openBlobs(t), MaxFiles: 5, Stable: time.Nanosecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	set := w.Scan(t.Context())
	if len(set) != 5 || set[4].Name != "04.wasm" {
		t.Errorf("Scan = %v, want the first 5", set)
	}
	if !strings.Contains(log.String(), "20 modules, at most 5") {
		t.Errorf("log: %s", &log)
	}
	want := dir + " holds 20 modules, at most 5: those after the first 5 by name are ignored"
	if crowded := w.Crowded(); len(crowded) != 1 || crowded[0].String() != want {
		t.Errorf("crowded: %v", crowded)
	}
	must(t, os.Remove(filepath.Join(dir, "01.wasm")))
	if set = w.Scan(t.Context()); len(set) != 5 || set[4].Name != "05.wasm" {
		t.Errorf("Scan = %v, want the next one to move up", set)
	}
	for i := range 20 {
		must(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("%02d.wasm", i+3))))
	}
	if w.Scan(t.Context()); w.Crowded() != nil {
		t.Errorf("crowded: %v", w.Crowded())
	}
}

func TestBadFilesAreToldWithTheirReason(t *testing.T) {
	onStage(t, func(dir string) {
		outside := filepath.Join(filepath.Dir(dir), "outside.wasm")
		write(t, outside, "secret")
		must(t, os.Mkdir(filepath.Join(dir, "dir.wasm"), 0o700),
			os.Mkdir(filepath.Join(dir, "sub"), 0o700),
			os.Symlink("../outside.wasm", filepath.Join(dir, "leave.wasm")),
			os.Symlink(outside, filepath.Join(dir, "leave2.wasm")),
			os.Symlink("nowhere.wasm", filepath.Join(dir, "dangle.wasm")),
			os.Symlink("loop.wasm", filepath.Join(dir, "loop.wasm")),
			os.Symlink("sub/in.wasm", filepath.Join(dir, "in.wasm")),
			os.Symlink(filepath.Join(dir, "sub", "in.wasm"), filepath.Join(dir, "in2.wasm")))
		write(t, filepath.Join(dir, "sub", "in.wasm"), "I")
		write(t, filepath.Join(dir, "big.wasm"), "")
		must(t, os.Truncate(filepath.Join(dir, "big.wasm"), 17<<20))
		write(t, filepath.Join(dir, "new\nline.wasm"), "N")
		write(t, filepath.Join(dir, "ok.wasm"), "O")
	}, func(s *stage) {
		s.holds("big.wasm!17825792 bytes, at most 16777216",
			"dangle.wasm!symlink points nowhere",
			"dir.wasm!is a directory, not a regular file",
			"in.wasm=I", "in2.wasm=I",
			"leave.wasm!symlink leaves the folder", "leave2.wasm!symlink leaves the folder",
			"loop.wasm!symlink cannot be followed",
			`new\nline.wasm!file name has characters that cannot be shown as they are, rename it`,
			"ok.wasm=O")
		if kept := names(t, s.blobs.dir); len(kept) != 2 {
			t.Errorf("blobs hold %d files, want the two good ones: nothing else is read", len(kept))
		}
	})
}

func TestF17_SharedFolderIsWarnedOfOnce(t *testing.T) {
	onStage(t, func(dir string) { must(t, os.Chmod(dir, 0o777)) }, func(s *stage) {
		s.pass(2 * time.Minute)
		if n := strings.Count(s.log.String(), "anyone on this machine can write to it"); n != 1 {
			t.Errorf("warned %d times, want once: %s", n, &s.log)
		}
	})
}

func TestFoldersKeepTheirOrder(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	write(t, filepath.Join(second, "a.wasm"), "2a")
	write(t, filepath.Join(second, "x.wasm"), "2x")
	write(t, filepath.Join(first, "x.wasm"), "1x")
	w := New([]string{first, second, first + "/"}, Options{Blobs: openBlobs(t), Stable: time.Nanosecond})
	var got []string
	for _, c := range w.Scan(t.Context()) {
		got = append(got, filepath.Join(c.Source, c.Name))
	}
	want := []string{filepath.Join(first, "x.wasm"), filepath.Join(second, "a.wasm"), filepath.Join(second, "x.wasm")}
	if !slices.Equal(got, want) {
		t.Errorf("Scan = %v, want %v", got, want)
	}
}

func TestAReplacedBlobFolderIsFilledAgain(t *testing.T) {
	onStage(t, func(dir string) { write(t, filepath.Join(dir, "x.wasm"), "X") }, func(s *stage) {
		must(t, os.Remove(s.blobs.path(sum("X"))))
		s.pass(31 * time.Second)
		s.holds("x.wasm=X")
	})
}
