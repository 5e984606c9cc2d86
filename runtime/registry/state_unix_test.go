//go:build unix

package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// spoils put something into a record's place that must be neither waited for nor
// followed.
var spoils = map[string]func(path string) error{
	"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "with", "content"), 0o700) },
	"symlink":   func(path string) error { return os.Symlink("/dev/zero", path) },
}

func spoil(t *testing.T, path string, how func(string) error) {
	t.Helper()
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, how(path)); err != nil {
		t.Fatal(err)
	}
}

func TestDescriptionsThatAreNoFiles(t *testing.T) {
	for name, how := range spoils {
		w := newWorld(t)
		c := w.offers("x.wasm", "1", "x")
		w.apply(c)
		spoil(t, filepath.Join(w.cache, c.Digest+".json"), how)
		w.start()
		w.apply(c)
		w.lists("x")
		if len(w.workers.described) != 1 {
			t.Errorf("%s: described %d times, want anew", name, len(w.workers.described))
		}
		w.start()
		w.apply(c)
		w.untouched() // the record is in its place again
	}
}

func TestQuarantineRecordsThatAreNoFiles(t *testing.T) {
	for name, how := range spoils {
		w := newWorld(t)
		a := w.offers("a.wasm", "1", "a")
		spoil(t, filepath.Join(w.jail, a.Digest+".json"), how)
		<-w.Refresh(t.Context())
		w.apply(a)
		w.says("a.wasm", tool.Held, "hutch tools release sha256:"+a.Digest)
		if released, err := Release(w.jail, "sha256:"+a.Digest); err != nil || len(released) != 1 {
			t.Errorf("%s: released %v, %v", name, released, err)
		}
		<-w.Refresh(t.Context())
		w.says("a.wasm", tool.Ready, "")
	}
}
