//go:build unix

package secrets_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/host/secrets"
)

// Secrets that somebody else could read or write are refused, at the start and
// later.
func TestFilesOfOthersAreRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o777} {
		path := put(t, "token=hunter2hunter2\n")
		v := open(t, secrets.Options{File: path})
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := secrets.Open(secrets.Options{File: path})
		if err == nil || !strings.Contains(err.Error(), "allowed is 0600") {
			t.Errorf("mode %#o: %v", mode, err)
		}
		wantValue(t, v, "token", "")
		if err := v.Set("token", "hunter3hunter3"); err == nil || !strings.Contains(err.Error(), "allowed is 0600") {
			t.Errorf("mode %#o: Set: %v", mode, err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		wantValue(t, v, "token", "hunter2hunter2")
	}
}

func TestOwnerIsChecked(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := put(t, "token=hunter2hunter2\n")
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Open(secrets.Options{File: path}); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("file of another: %v", err)
	}
}

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.Symlink(put(t, "token=hunter2hunter2\n"), link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir} {
		v, err := secrets.Open(secrets.Options{File: path})
		if err == nil {
			t.Errorf("%s: %v", filepath.Base(path), v.Names())
		}
	}
}

// Another process that does not let go of the folder keeps writers waiting, and
// nobody else.
func TestReadingGoesOnWhileAWriterWaits(t *testing.T) {
	path := put(t, "token=hunter2hunter2\n")
	v := open(t, secrets.Options{File: path})
	locked, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		if err := secrets.Locked(path, func() error { close(locked); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-locked
	group.Go(func() { set(t, v, "token", "hunter3hunter3") })
	for range 100 {
		if value, _ := v.Get("token"); value.Reveal() != "hunter2hunter2" {
			t.Errorf("Get = %q: written while locked", value.Reveal())
		}
	}
	close(release)
	group.Wait()
	wantValue(t, v, "token", "hunter3hunter3")
}

// And not for ever.
func TestWritersGiveUp(t *testing.T) {
	path := put(t, "")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := secrets.Locked(path, func() error {
			return secrets.Locked(path, func() error { return errors.New("locked twice") })
		})
		if err == nil || !strings.Contains(err.Error(), "another process is writing secrets") || time.Since(began) > time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
