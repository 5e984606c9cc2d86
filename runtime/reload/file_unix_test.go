//go:build unix

package reload

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe without a writer would keep a plain open waiting for ever.
func TestSpecialFilesNeverBlock(t *testing.T) {
	onStage(t, func(dir string) {
		must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.wasm"), 0o600),
			os.Symlink("pipe.wasm", filepath.Join(dir, "to-pipe.wasm")),
			os.Symlink("/dev/zero", filepath.Join(dir, "zero.wasm")))
	}, func(s *stage) {
		s.holds("pipe.wasm!is a named pipe, not a regular file",
			"to-pipe.wasm!is a named pipe, not a regular file",
			"zero.wasm!symlink leaves the folder")
	})
}

// A pipe in a kept module's place neither blocks nor stays.
func TestKeptModuleReplacedByAPipe(t *testing.T) {
	dir, blobs := t.TempDir(), openBlobs(t)
	write(t, filepath.Join(dir, "x.wasm"), "module")
	w := New([]string{dir}, Options{Blobs: blobs, Stable: time.Nanosecond})
	digest := w.Scan(t.Context())[0].Digest
	for _, heal := range []func(){
		func() { w.Scan(t.Context()) },
		func() {
			if raw, err := blobs.Fetch(digest); err != nil || string(raw) != "module" {
				t.Errorf("Fetch = %q, %v", raw, err)
			}
		},
	} {
		must(t, os.Remove(blobs.path(digest)), syscall.Mkfifo(blobs.path(digest), 0o600))
		if heal(); !blobs.Hold(digest, 6) {
			t.Error("the pipe is still there")
		}
	}
}

// F17: whoever can write a module file decides what runs, like whoever can write
// its folder.
func TestF17_SharedFileIsWarnedOfOnce(t *testing.T) {
	onStage(t, func(dir string) {
		write(t, filepath.Join(dir, "x.wasm"), "X")
		must(t, os.Chmod(filepath.Join(dir, "x.wasm"), 0o666))
	}, func(s *stage) {
		s.pass(2 * time.Minute)
		s.holds("x.wasm=X")
		if n := strings.Count(s.log.String(), "anyone on this machine can write to it"); n != 1 {
			t.Errorf("warned %d times, want once: %s", n, &s.log)
		}
	})
}

// ownedBy is what a file's owner and mode would say, since only root can give a
// file away.
type ownedBy struct {
	fs.FileInfo
	mode fs.FileMode
	sys  any
}

func (o ownedBy) Mode() fs.FileMode { return o.mode }
func (o ownedBy) Sys() any          { return o.sys }

func TestF17_OwnerAndModeSayWhoElseCanWrite(t *testing.T) {
	const (
		anyone  = "anyone on this machine can write to it"
		another = "it belongs to another user"
	)
	owner := func(uid int) *syscall.Stat_t { return &syscall.Stat_t{Uid: uint32(uid)} }
	me := os.Geteuid()
	for name, c := range map[string]struct {
		mode fs.FileMode
		sys  any
		want string
	}{
		"mine":                           {0o644, owner(me), ""},
		"root's":                         {0o644, owner(0), ""},
		"another user's":                 {0o644, owner(me + 1), another},
		"another user's, read only":      {0o444, owner(me + 1), another},
		"another user's folder":          {fs.ModeDir | 0o700, owner(me + 1), another},
		"mine, and anyone may write":     {0o646, owner(me), anyone},
		"root's, and anyone may write":   {fs.ModeDir | 0o777, owner(0), anyone},
		"a folder for all, sticky":       {fs.ModeDir | fs.ModeSticky | 0o777, owner(0), anyone},
		"no owner is known":              {0o644, nil, ""},
		"no owner, and anyone may write": {0o602, nil, anyone},
	} {
		if got := exposure(ownedBy{mode: c.mode, sys: c.sys}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
