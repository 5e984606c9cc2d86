//go:build unix

package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What was never finished, and lies where finished code should, is put away; the
// next start makes the code anew.
func TestCacheEntriesThatAreNone(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"file":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"symlink": func(path string) error { return os.Symlink("/etc", path) },
		"pipe in": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), syscall.Mkfifo(path+"/sums", 0o600))
		},
		"link in": func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Symlink("/etc/passwd", path+"/x"))
		},
		"too large": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), sparse(path+"/x", maxCacheBytes+1)) },
	} {
		c, log := newCacheFolder(t)
		if err := put(filepath.Join(c.dir, "aa")); err != nil {
			t.Fatal(err)
		}
		e := c.open("aa")
		if !e.fresh || !strings.Contains(log.String(), "made anew") {
			t.Errorf("%s: %+v, logged %q", name, e, log)
			continue
		}
		fill(t, e)
		e.finish(false)
		e.discard()
		if e = c.open("aa"); !e.finished() || names(t, c.dir) != "aa" || names(t, e.path) != "code" {
			t.Errorf("%s: then %+v, there is %q", name, e, names(t, c.dir))
		}
	}
}

func sparse(path string, size int64) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size))
}
