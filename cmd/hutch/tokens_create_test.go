package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A token that goes into a file which hutch would not take it from is told so at once.
func TestTokensInFilesOfOthers(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: true, 0o604: true} {
		f, err := os.Create(filepath.Join(t.TempDir(), "token"))
		must(t, err)
		must(t, f.Chmod(mode))
		if got := othersRead(f); got != (want && runtime.GOOS != "windows") {
			t.Errorf("%04o: %t", mode, got)
		}
		must(t, f.Close())
	}
	r, w, err := os.Pipe()
	must(t, err)
	for _, to := range []io.Writer{w, &strings.Builder{}} {
		if othersRead(to) {
			t.Errorf("a %T is read by others", to)
		}
	}
	must(t, w.Close())
	must(t, r.Close())
}
