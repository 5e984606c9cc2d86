//go:build unix

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe among the entries is refused at once; a plain open of it would
// wait for a writer.
func TestCacheWithAPipe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	entry := entries(t, dir)[0]
	for _, path := range []string{filepath.Join(filepath.Dir(filepath.Dir(entry)), sumsFile), entry} {
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, readOnly := range []bool{false, true} {
			o, _ := logged(dir)
			o.CacheReadOnly = readOnly
			if _, err := Compile(t.Context(), checked(t, counter), o); err == nil {
				t.Errorf("%s: a pipe was read", filepath.Base(path))
			}
		}
	}
	if _, err := fileSum(entry); err == nil {
		t.Error("the digest of a pipe was made")
	}
}

func TestDigestsWithoutEndAreNotRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	cached(t, dir)
	sums := filepath.Join(filepath.Dir(filepath.Dir(entries(t, dir)[0])), sumsFile)
	if err := os.Truncate(sums, maxSums+1); err != nil {
		t.Fatal(err)
	}
	o, _ := logged(dir)
	o.CacheReadOnly = true
	if m := compiled(t, counter, o); !m.CacheStale() {
		t.Error("entries were used whose digests nobody could read")
	}
}
