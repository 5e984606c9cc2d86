//go:build unix

package ownfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// place is a file in a folder of its own, both safe.
func place(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in", "f")
	must(t, os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("text"), 0o600))
	return path
}

var private = Needs{Private: true, OneName: true, NoLink: true}

func TestReadWantsWhatNobodyElseCanWrite(t *testing.T) {
	const other = 12345
	for _, tt := range []struct {
		name    string
		needs   Needs
		alter   func(path string) error
		want    string // "" is read
		do      string // with FILE and DIR
		asAdmin bool
	}{
		{"as it is", private, func(string) error { return nil }, "", "", false},
		{"others read", Needs{OneName: true}, func(p string) error { return os.Chmod(p, 0o644) }, "", "", false},
		{"group reads what is private", private, func(p string) error { return os.Chmod(p, 0o640) }, "it has mode 0640, allowed is 0600", "chmod 600 FILE", false},
		{"group writes", Needs{}, func(p string) error { return os.Chmod(p, 0o620) }, "others can write to it", "chmod go-w FILE", false},
		{"others write", Needs{}, func(p string) error { return os.Chmod(p, 0o602) }, "others can write to it", "chmod go-w FILE", false},
		{"folder of all", Needs{}, func(p string) error { return os.Chmod(filepath.Dir(p), 0o777) }, "others can write to the folder it is in", "chmod go-w DIR", false},
		{"private in a folder of the group", private, func(p string) error { return os.Chmod(filepath.Dir(p), 0o770) }, "others can write to the folder it is in", "chmod go-w DIR", false},
		{"sticky folder", Needs{}, func(p string) error { return os.Chmod(filepath.Dir(p), 0o777|os.ModeSticky) }, "", "", false},
		{"second name", Needs{OneName: true}, func(p string) error { return os.Link(p, p+"2") }, "1 other names (hard links) lead to it", "", false},
		{"second name that may be", Needs{}, func(p string) error { return os.Link(p, p+"2") }, "", "", false},
		{"file of another", Needs{}, func(p string) error { return errors.Join(os.Chmod(p, 0o644), os.Chown(p, other, other)) }, "it belongs to user 12345", "chown 0 FILE", true},
		{"private file of another", private, func(p string) error { return os.Chown(p, other, other) }, "it belongs to another user", "chown 0 FILE", true},
		{"folder of another", Needs{}, func(p string) error { return os.Chown(filepath.Dir(p), other, other) }, "its folder belongs to user 12345", "chown 0 DIR", true},
		{"file of another, sticky folder", Needs{}, func(p string) error {
			return errors.Join(os.Chown(p, other, other), os.Chmod(filepath.Dir(p), 0o777|os.ModeSticky))
		}, "it belongs to user 12345", "chown 0 FILE", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.asAdmin && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			path := place(t)
			must(t, tt.alter(path))
			raw, err := Read(path, 4, tt.needs)
			if tt.want == "" {
				if err != nil || string(raw) != "text" {
					t.Errorf("read %q, %v", raw, err)
				}
				return
			}
			unsafe := (*Refusal)(nil)
			if !errors.As(err, &unsafe) || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), path) {
				t.Fatalf("got %q, %v, want %q", raw, err, tt.want)
			}
			do := strings.NewReplacer("FILE", path, "DIR", filepath.Dir(path)).Replace(tt.do)
			if got := strings.TrimSpace(unsafe.Do + " " + unsafe.At); got != do {
				t.Errorf("told to do %q, want %q", got, do)
			}
		})
	}
}

// A user who is not root trusts root, and nobody else.
func TestRootIsTrusted(t *testing.T) {
	for _, tt := range []struct {
		owner uint32
		uid   int
		want  bool
	}{{0, 0, true}, {0, 1000, true}, {1000, 1000, true}, {1000, 0, false}, {1001, 1000, false}} {
		if got := trusted(tt.owner, tt.uid); got != tt.want {
			t.Errorf("of user %d for %d: %v", tt.owner, tt.uid, got)
		}
	}
}

// Behind a link, it is the file and its own folder that count.
func TestReadThroughALink(t *testing.T) {
	path := place(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(path, link))
	if raw, err := Read(link, 4, Needs{}); err != nil || string(raw) != "text" {
		t.Errorf("read %q, %v", raw, err)
	}
	if _, err := Read(link, 4, private); err == nil || err.Error() != "it is a symlink, not a regular file" {
		t.Errorf("a link that may not be: %v", err)
	}
	must(t, os.Chmod(filepath.Dir(path), 0o777))
	if _, err := Read(link, 4, Needs{}); err == nil {
		t.Error("a file in a folder of all was read through a link")
	}
}

// A pipe that nobody writes to would keep a plain open waiting for ever.
func TestReadTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		pipe: "it is a named pipe, not a regular file", dir: "it is a directory, not a regular file",
		os.DevNull: "it is a device, not a regular file",
	} {
		if _, err := Read(path, 4, Needs{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	f, err := os.OpenFile(pipe, openFlags, 0) // should it take a file's place once we have looked
	must(t, err)
	if err := check(f, pipe, Needs{}); err == nil {
		t.Error("a pipe passed for a regular file")
	}
	must(t, f.Close())
}

func TestReadIsBounded(t *testing.T) {
	path := place(t)
	if _, err := Read(path, 3, Needs{}); err == nil || err.Error() != "it has more than 3 bytes" {
		t.Errorf("got %v", err)
	}
	if _, err := Read(path+"2", 3, Needs{}); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), path) {
		t.Errorf("a missing file: %v", err)
	}
}
