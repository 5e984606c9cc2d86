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

// Opening is safe by itself, should a pipe take the place of a file that was
// regular when we looked.
func TestOpenOfAPipeReturns(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "x.wasm"), 0o600))
	root, err := os.OpenRoot(dir)
	must(t, err)
	f, err := root.OpenFile("x.wasm", openFlags, 0)
	must(t, err)
	fi, err := f.Stat()
	must(t, err, f.Close(), root.Close())
	if regular(fi) == nil {
		t.Error("a pipe passed for a regular file")
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
