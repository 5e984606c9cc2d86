package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hutch-run/hutch/host/ownfile"
)

// readPrivate returns a file that belongs to this process's user, and that nobody
// else can read, write or replace. Errors do not say where it is.
func readPrivate(path string, most int64) ([]byte, error) {
	return ownfile.Read(path, most, ownfile.Needs{Private: true, OneName: true, NoLink: true})
}

// withoutPath returns what went wrong without where: this is told to guests'
// callers too.
func withoutPath(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}

// writePrivate makes raw the content of path: the old one or the new one is there
// at any moment, also after a power cut. Nobody else can read it, at any moment.
func writePrivate(path string, raw []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".secrets-*.tmp") // mode 0600
	if err != nil {
		return withoutPath(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(withoutPath(err), withoutPath(os.Remove(tmp.Name())))
		}
	}()
	_, err = tmp.Write(raw)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		if at := (*os.LinkError)(nil); errors.As(err, &at) {
			err = at.Err
		}
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// removePrivate removes a file for good; that there is none is no error.
func removePrivate(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return withoutPath(err)
	}
	return syncFolder(filepath.Dir(path))
}

// How long a writer waits for another process to finish writing.
const (
	lockPatience = 10 * time.Second
	lockPause    = 20 * time.Millisecond
)

// locked runs f while no other process that uses locked on a file of the same
// folder does.
func locked(path string, f func() error) (err error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return withoutPath(err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }() // which unlocks
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		ok, err := tryLock(dir)
		if err != nil {
			return fmt.Errorf("lock the folder: %w", err)
		}
		if ok {
			return f()
		}
		if time.Now().After(deadline) {
			return errors.New("another process is writing secrets and does not finish: try again")
		}
	}
}
