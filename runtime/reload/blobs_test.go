package reload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func openBlobs(t testing.TB) *Blobs {
	t.Helper()
	b, err := OpenBlobs(filepath.Join(t.TempDir(), "modules"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

func TestBlobsKeepWhatTheyHashed(t *testing.T) {
	b := openBlobs(t)
	digest, size, err := b.Put(strings.NewReader("module"), 6)
	if err != nil || digest != sum("module") || size != 6 {
		t.Fatalf("Put = %s, %d, %v", digest, size, err)
	}
	raw, err := b.Fetch(digest)
	if err != nil || string(raw) != "module" {
		t.Fatalf("Fetch = %q, %v", raw, err)
	}
	if !b.Hold(digest, 6) || b.Hold(digest, 5) || b.Hold(sum("other"), 5) || b.Hold("../escape", 6) {
		t.Error("Hold does not tell what is there")
	}
}

func TestBlobsRefuseMoreThanTheLimit(t *testing.T) {
	b := openBlobs(t)
	if _, _, err := b.Put(strings.NewReader("module"), 5); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Put of 6 bytes under a limit of 5: %v", err)
	}
	if left := names(t, b.dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBlobsLeaveNothingOfAFailedRead(t *testing.T) {
	b := openBlobs(t)
	broken := io.MultiReader(strings.NewReader("half"), errReader{})
	if _, _, err := b.Put(broken, 100); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Put = %v, want the reader's error", err)
	}
	if left := names(t, b.dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBlobsThrowDamagedBytesAway(t *testing.T) {
	b := openBlobs(t)
	digest, _, err := b.Put(strings.NewReader("module"), 100)
	if err != nil {
		t.Fatal(err)
	}
	write(t, b.path(digest), "modulf")
	if _, err := b.Fetch(digest); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("Fetch of flipped bytes = %v", err)
	}
	if _, err := b.Fetch(digest); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("Fetch after that = %v", err)
	}
	if _, err := b.Fetch("../../etc/passwd"); err == nil || !strings.Contains(err.Error(), "no SHA-256") {
		t.Errorf("Fetch of a path = %v", err)
	}
}

func TestPruneRemovesWhatNobodyHeldForADay(t *testing.T) {
	b := openBlobs(t)
	old := time.Now().Add(-BlobTTL - time.Minute)
	put := func(content string, mtime time.Time) string {
		digest, _, err := b.Put(strings.NewReader(content), 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(b.path(digest), mtime, mtime); err != nil {
			t.Fatal(err)
		}
		return digest
	}
	used, fresh, stale := put("used", old), put("fresh", time.Now()), put("stale", old)
	write(t, filepath.Join(b.dir, tempPrefix+"1"), "interrupted")
	write(t, filepath.Join(b.dir, "README"), "somebody else's")
	for _, name := range []string{tempPrefix + "1", "README"} {
		if err := os.Chtimes(filepath.Join(b.dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.Prune(map[string]bool{used: true}); n != 2 || err != nil {
		t.Errorf("Prune = %d, %v, want 2 removed", n, err)
	}
	if !b.Hold(used, 4) || !b.Hold(fresh, 5) || b.Hold(stale, 5) {
		t.Error("Prune removed the wrong ones")
	}
	if left := names(t, b.dir); len(left) != 3 {
		t.Errorf("left: %v", left)
	}
	if n, err := b.Prune(nil); n != 0 || err != nil {
		t.Errorf("second Prune = %d, %v: what was used a moment ago stays for a day", n, err)
	}
}

// damages are the ways in which a kept module can be spoilt.
var damages = map[string]func(t *testing.T, path string){
	"gone":        func(t *testing.T, path string) { must(t, os.Remove(path)) },
	"truncated":   func(t *testing.T, path string) { must(t, os.Truncate(path, 2)) },
	"overwritten": func(t *testing.T, path string) { write(t, path, strings.Repeat("\x00", 6)) },
	"directory": func(t *testing.T, path string) {
		must(t, os.Remove(path), os.MkdirAll(filepath.Join(path, "with", "content"), 0o700))
	},
	"symlink": func(t *testing.T, path string) {
		must(t, os.Rename(path, path+".moved"), os.Symlink(path+".moved", path))
	},
	"dangling": func(t *testing.T, path string) { must(t, os.Remove(path), os.Symlink("nowhere", path)) },
}

// Whatever became of the kept bytes, they come from the file in the folder, at
// once, and lie in their place again afterwards.
func TestDamagedBytesComeFromTheirFile(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir, blobs := t.TempDir(), openBlobs(t)
			write(t, filepath.Join(dir, "x.wasm"), "module")
			found := New([]string{dir}, Options{Blobs: blobs, Stable: time.Nanosecond}).Scan(t.Context())
			if len(found) != 1 || found[0].Err != nil {
				t.Fatalf("found %+v", found)
			}
			path := blobs.path(found[0].Digest)
			damage(t, path)
			if raw, err := blobs.Fetch(found[0].Digest); err != nil || string(raw) != "module" {
				t.Errorf("Fetch = %q, %v", raw, err)
			}
			if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() || !blobs.Hold(found[0].Digest, 6) {
				t.Errorf("not healed: %v, %v", fi, err)
			}
			write(t, filepath.Join(dir, "x.wasm"), "other!")
			damage(t, path)
			if raw, err := blobs.Fetch(found[0].Digest); err == nil {
				t.Errorf("Fetch = %q, though the file has other bytes now", raw)
			}
		})
	}
}

// A look at the folder heals what it can see without reading everything.
func TestDamagedBytesAreStoredAgain(t *testing.T) {
	for name, damage := range damages {
		if name == "overwritten" { // with as many bytes, which only reading them tells
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir, blobs := t.TempDir(), openBlobs(t)
			write(t, filepath.Join(dir, "x.wasm"), "module")
			w := New([]string{dir}, Options{Blobs: blobs, Stable: time.Nanosecond})
			digest := w.Scan(t.Context())[0].Digest
			damage(t, blobs.path(digest))
			w.Scan(t.Context())
			if raw, err := os.ReadFile(blobs.path(digest)); err != nil || string(raw) != "module" || !blobs.Hold(digest, 6) {
				t.Errorf("after the next look: %q, %v", raw, err)
			}
		})
	}
}

// Of several files with the same bytes, one is enough.
func TestAnyWholeFileWillDo(t *testing.T) {
	dir, blobs := t.TempDir(), openBlobs(t)
	write(t, filepath.Join(dir, "x.wasm"), "module")
	write(t, filepath.Join(dir, "y.wasm"), "module")
	found := New([]string{dir}, Options{Blobs: blobs, Stable: time.Nanosecond}).Scan(t.Context())
	must(t, os.Remove(filepath.Join(dir, "x.wasm")), os.RemoveAll(blobs.dir))
	if raw, err := blobs.Fetch(found[0].Digest); err != nil || string(raw) != "module" {
		t.Errorf("Fetch = %q, %v, without a folder to keep it in", raw, err)
	}
}

func TestFetchIsBounded(t *testing.T) {
	b := openBlobs(t)
	path := b.path(sum("module"))
	write(t, path, "")
	must(t, os.Truncate(path, maxBlob+1)) // sparse
	if _, err := b.Fetch(sum("module")); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("Fetch = %v", err)
	}
}

// The digest that is handed on is that of the bytes kept, even while somebody
// rewrites the file between our steps (F05).
func TestF05_StoredBytesAreTheHashedBytes(t *testing.T) {
	b := openBlobs(t)
	w := New(nil, Options{Blobs: b, MaxBytes: 1 << 20})
	path := filepath.Join(t.TempDir(), "x.wasm")
	versions := [2][]byte{bytes.Repeat([]byte("a"), 300<<10), bytes.Repeat([]byte("b"), 300<<10)}
	write(t, path, string(versions[0]))
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				if err := os.WriteFile(path, versions[i%2], 0o600); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for range 50 {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		fi, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if digest, err := w.store(f, fi); err == nil {
			if _, err := b.Fetch(digest); err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, errMoving) {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	<-stopped
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
