package plainfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, tt := range []struct {
		content string
		limit   int64
		want    string
	}{
		{"", 0, ""},
		{"12345", 5, ""},
		{"123456", 5, "more than 5 bytes"},
		{strings.Repeat("x", 100_000), 100_000, ""},
	} {
		write(t, path, tt.content)
		raw, err := Read(path, tt.limit)
		if tt.want == "" && (err != nil || string(raw) != tt.content) || tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("%d bytes, at most %d: %d bytes, %v", len(tt.content), tt.limit, len(raw), err)
		}
	}
	if _, err := Read(path+"2", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestReadTakesPlainFilesOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "plain")
	must(t, os.Symlink("f", filepath.Join(dir, "link")))
	if _, err := Read(filepath.Join(dir, "link"), 100); !errors.Is(err, ErrSymlink) {
		t.Errorf("a symlink: %v", err)
	}
	if _, err := Read(dir, 100); err == nil || err.Error() != "is a directory, not a regular file" {
		t.Errorf("a directory: %v", err)
	}
}

// swapped is a folder in which another file is opened than was seen, some times.
type swapped struct {
	anywhere
	left *int
}

func (s swapped) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	if *s.left--; *s.left >= 0 {
		name += "2"
	}
	return os.OpenFile(name, flag, perm)
}

func TestOpenNoticesASwap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "seen")
	write(t, path+"2", "opened, not seen")
	left := tries - 1
	f, fi, err := open(swapped{left: &left}, path)
	if err != nil || fi.Size() != 4 {
		t.Fatalf("swapped a few times: %v, %v", fi, err)
	}
	must(t, f.Close())
	left = tries
	if _, _, err := open(swapped{left: &left}, path); !errors.Is(err, ErrSwapped) {
		t.Errorf("swapped again and again: %v", err)
	}
}

func TestReplaceTakesThePlaceOfAnything(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"nothing":  func(string) error { return nil },
		"file":     func(path string) error { return os.WriteFile(path, []byte("old"), 0o400) },
		"folder":   func(path string) error { return os.MkdirAll(filepath.Join(path, "with", "content"), 0o700) },
		"symlink":  func(path string) error { return os.Symlink("../outside", path) },
		"dangling": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Mkdir(filepath.Join(dir, "in"), 0o700))
			write(t, filepath.Join(dir, "outside"), "untouched")
			path := filepath.Join(dir, "in", "f")
			must(t, put(path), Replace(path, "temp-", []byte("new")))
			raw, err := Read(path, 100)
			if err != nil || string(raw) != "new" {
				t.Errorf("read %q, %v", raw, err)
			}
			outside, err := os.ReadFile(filepath.Join(dir, "outside"))
			if err != nil || string(outside) != "untouched" {
				t.Errorf("outside: %q, %v", outside, err)
			}
			entries, err := os.ReadDir(filepath.Join(dir, "in"))
			if err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "f", "with", "content"), 0o700), Remove(filepath.Join(dir, "f")))
	write(t, filepath.Join(dir, "f"), "")
	must(t, Remove(filepath.Join(dir, "f")))
	if err := Remove(filepath.Join(dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A folder whose content leads out of it is removed without following that.
func TestReplacedFolderIsNotLeft(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "outside", "kept"), 0o700), os.MkdirAll(filepath.Join(dir, "in", "f"), 0o700),
		os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "in", "f", "link")),
		Replace(filepath.Join(dir, "in", "f"), "temp-", nil))
	entries, err := os.ReadDir(filepath.Join(dir, "outside"))
	if err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

func TestReplaceLeavesNothingOfAFailure(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "f"), "")
	if err := Replace(filepath.Join(dir, "f", "g"), "temp-", nil); err == nil {
		t.Error("wrote into a file as if it were a folder")
	}
	if err := Replace(dir+"/f\x00", "temp-", nil); err == nil {
		t.Error("wrote to a name that cannot be")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || !slices.EqualFunc(entries, []string{"f"}, func(e fs.DirEntry, name string) bool { return e.Name() == name }) {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
