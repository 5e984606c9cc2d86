//go:build unix

package plainfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe without a writer would keep a plain open waiting for ever.
func TestPipesAndDevicesNeverBlock(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	root, err := os.OpenRoot(dir)
	must(t, err)
	if _, _, err := OpenIn(root, "pipe"); err == nil || err.Error() != "is a named pipe, not a regular file" {
		t.Errorf("a pipe in a root: %v", err)
	}
	must(t, root.Close())
	for path, want := range map[string]string{
		pipe:        "is a named pipe, not a regular file",
		"/dev/zero": "is a device, not a regular file",
	} {
		if _, err := Read(path, 100); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// Opening is safe by itself, should a pipe or a symlink take the place of a file
// that was regular when we looked.
func TestOpenFlags(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink("pipe", filepath.Join(dir, "link")))
	f, err := anywhere{}.OpenFile(filepath.Join(dir, "pipe"), openFlags, 0)
	must(t, err)
	fi, err := f.Stat()
	must(t, err, f.Close())
	if Check(fi) == nil {
		t.Error("a pipe passed for a regular file")
	}
	if f, err := (anywhere{}).OpenFile(filepath.Join(dir, "link"), openFlags, 0); err == nil {
		t.Error("a symlink was followed", f.Close())
	}
}

func TestReplaceTakesThePlaceOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must(t, syscall.Mkfifo(path, 0o600), Replace(path, "temp-", []byte("new")))
	if raw, err := Read(path, 100); err != nil || string(raw) != "new" {
		t.Errorf("read %q, %v", raw, err)
	}
}
