package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeAtomic puts body at path so that whoever looks, a watched folder for
// one, sees the old file or the new one and nothing in between. Missing folders
// on the way are made.
func writeAtomic(path string, body []byte) error { return writeAtomicMode(path, body, 0o644) }

// writeAtomicMode is writeAtomic for a file that not everybody may read.
func writeAtomicMode(path string, body []byte, mode fs.FileMode) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", quoted(path), err)
	}
	// The name ends unlike a module's, so that no watcher takes it for one.
	tmp, err := os.CreateTemp(dir, ".hutch-*.tmp")
	if err != nil {
		return fmt.Errorf("write %s: %w", quoted(path), err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // err says what went wrong
			err = fmt.Errorf("write %s: %w", quoted(path), err)
		}
	}()
	_, err = tmp.Write(body)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
