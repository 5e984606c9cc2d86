package reload

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/hutch-run/hutch/protocol/tool"
)

// What a tool folder's path means can change above the folder itself. With the
// kernel's own notifications and no rescan, each such change is told.
func TestChangesOnTheWayToAFolderAreNoticed(t *testing.T) {
	put := func(dir, content string) error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "x.wasm"), []byte(content), 0o600)
	}
	// swap points a symlink elsewhere in one step, like a deployment does.
	swap := func(target, link string) error {
		if err := os.Symlink(target, link+".new"); err != nil {
			return err
		}
		return os.Rename(link+".new", link)
	}
	for name, tt := range map[string]struct {
		folder  string // watched
		prepare func(in string) error
		change  func(in string) error
	}{
		"symlink swapped": {"current",
			func(in string) error {
				must(t, put(in+"/v1", "one"), put(in+"/v2", "two"))
				return swap("v1", in+"/current")
			},
			func(in string) error { return swap("v2", in+"/current") }},
		"symlink above swapped": {"current/a/tools",
			func(in string) error {
				must(t, put(in+"/releases/v1/a/tools", "one"), put(in+"/releases/v2/a/tools", "two"), os.MkdirAll(in+"/live", 0o700),
					os.Symlink("live/now", in+"/current"))
				return swap("../releases/v1", in+"/live/now")
			},
			func(in string) error { return swap("../releases/./v2", in+"/live/now") }},
		"removed and made again": {"tools",
			func(in string) error { return put(in+"/tools", "one") },
			func(in string) error { must(t, os.RemoveAll(in+"/tools")); return put(in+"/tools", "two") }},
		"parent renamed": {"app/tools",
			func(in string) error { must(t, put(in+"/next/tools", "two")); return put(in+"/app/tools", "one") },
			func(in string) error {
				must(t, os.Rename(in+"/app", in+"/before"))
				return os.Rename(in+"/next", in+"/app")
			}},
		"appears": {"tools",
			func(string) error { return nil },
			func(in string) error { return put(in+"/tools", "two") }},
		"appears with all above it": {"not/yet/there/tools",
			func(string) error { return nil },
			func(in string) error { return put(in+"/not/yet/there/tools", "two") }},
		"target of a symlink appears": {"current",
			func(in string) error { return os.Symlink("deep/v1", in+"/current") },
			func(in string) error { return put(in+"/deep/v1", "two") }},
	} {
		t.Run(name, func(t *testing.T) {
			in, blobs := t.TempDir(), openBlobs(t)
			must(t, tt.prepare(in))
			told := make(chan []tool.Candidate, 100)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				New([]string{filepath.Join(in, tt.folder)}, Options{Blobs: blobs, Rescan: time.Hour}).
					Run(ctx, func(c []tool.Candidate) { told <- c })
			}()
			first := <-told
			if len(first) > 0 || name != "appears" && name != "appears with all above it" && name != "target of a symlink appears" {
				for len(first) == 0 {
					first = <-told // it had not settled
				}
			}
			must(t, tt.change(in))
			awaitDigest(t, told, sum("two"), []string{sum("one")})
			cancel()
			<-done
		})
	}
}

// Of a folder on the way only the names that lead on count: there may be much
// else going on in it.
func TestNoiseBesideAFolderIsIgnored(t *testing.T) {
	onStage(t, nil, func(s *stage) {
		beside := filepath.Join(filepath.Dir(s.dir), "noise.wasm")
		write(t, s.path("x.wasm"), "X")
		s.events <- fsnotify.Event{Name: beside, Op: fsnotify.Create}
		s.events <- fsnotify.Event{Name: beside, Op: fsnotify.Write}
		s.pass(5 * time.Second)
		s.holds()
		s.touched("x.wasm")
		s.pass(time.Second)
		s.holds("x.wasm=X")
	})
}

func TestWalk(t *testing.T) {
	in, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(in, "real", "tools"), 0o700), os.Symlink("real", filepath.Join(in, "link")),
		os.Symlink("loop", filepath.Join(in, "loop")), os.WriteFile(filepath.Join(in, "file"), nil, 0o600))
	for path, want := range map[string][]string{
		"real/tools":      {"real/tools", "real:tools"},
		"link/tools":      {"real/tools", ":link", "real:tools"},
		"real/no/such":    {"", "real:no"},
		"link/../missing": {"", ":missing"}, // cleaned before, like every folder's path
		"file":            {"", ":file"},
		"file/x":          {"", "file:x"},
	} {
		var got []string
		real, whole := walk(filepath.Join(in, path), func(dir, name string) {
			rel, err := filepath.Rel(in, dir)
			if must(t, err); rel == "." {
				rel = ""
			}
			got = append(got, rel+":"+name)
		})
		if whole {
			rel, err := filepath.Rel(in, real)
			must(t, err)
			got = append([]string{rel}, got...)
		} else {
			got = append([]string{""}, got...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	n := 0
	if _, whole := walk(filepath.Join(in, "loop"), func(string, string) { n++ }); whole || n != maxLinks+1 {
		t.Errorf("a symlink to itself was followed %d times: %v", n, whole)
	}
}
