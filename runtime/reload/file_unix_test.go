//go:build unix

package reload

import (
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
