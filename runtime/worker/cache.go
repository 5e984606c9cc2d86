package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// cacheFolder holds compiled code: a folder for each digest, finished and never
// changed, and folders on their way there. A worker sees only the one it was
// given, and which it may write to only before it is finished.
type cacheFolder struct {
	dir string // empty: nothing is kept
	log *slog.Logger
	// opening keeps code that is just being taken for a worker from being tidied.
	opening sync.Mutex
}

// cacheEntry is a module's folder, as a worker is given it.
type cacheEntry struct {
	cache *cacheFolder
	final string
	path  string // empty: there is no cache
	fresh bool   // path is empty yet, and not final
}

const (
	unfinished = ".new-"
	// abandonedAfter is when nobody can be filling a folder any more.
	abandonedAfter = time.Hour
	// A finished folder has a file of code and one of digests, in two folders.
	maxCacheFiles = 16
	maxCacheBytes = 1 << 30
)

// open returns the module's folder, or an empty one to be filled. Without either
// the module is compiled and not kept, which the log explains.
func (c *cacheFolder) open(digest string) cacheEntry {
	e := cacheEntry{cache: c}
	if c.dir == "" {
		return e
	}
	e.final = filepath.Join(c.dir, digest)
	if c.take(e) {
		e.path = e.final
		return e
	}
	path, err := os.MkdirTemp(c.dir, unfinished)
	if err != nil {
		c.log.Warn("compiled code is not kept", "err", err)
		return e
	}
	e.path, e.fresh = path, true
	return e
}

// take reports whether there is finished code, and notes that it was used now.
func (c *cacheFolder) take(e cacheEntry) bool {
	c.opening.Lock()
	defer c.opening.Unlock()
	if !e.usable() {
		return false
	}
	now := time.Now()
	if err := os.Chtimes(e.final, now, now); err != nil {
		c.log.Warn("compiled code may be tidied too early", "err", err)
	}
	return true
}

// usable reports whether there is a finished folder. What lies in its place and
// is none that was ever finished goes: no worker can use it, nor take its place.
func (e cacheEntry) usable() bool {
	err := checkCompiled(e.final)
	if err == nil {
		return true
	}
	if !errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, e.remove())
		e.cache.log.Warn("compiled code is made anew", "err", err)
	}
	return false
}

// finished reports whether the code is there already, as far as can be told
// before it is read.
func (e cacheEntry) finished() bool { return e.path != "" && !e.fresh }

// finish is told that the worker has loaded its module and reads and writes the
// folder no more. A new one is looked at and moved to where the next worker finds
// it; one that was stale goes, so that the next worker makes a new one.
func (e cacheEntry) finish(stale bool) {
	var err error
	switch {
	case e.path == "":
		return
	case !e.fresh && stale:
		err = e.remove()
	case e.fresh && !stale:
		err = e.publish()
	}
	if err != nil {
		e.cache.log.Warn("compiled code is not kept", "err", err)
	}
}

func (e cacheEntry) publish() error {
	if err := checkCompiled(e.path); err != nil {
		return err
	}
	err := os.Rename(e.path, e.final)
	if errors.Is(err, fs.ErrExist) { // another hutch on this folder was faster
		return nil
	}
	return err
}

// remove takes a finished folder away at once, whoever looks.
func (e cacheEntry) remove() error {
	away, err := os.MkdirTemp(e.cache.dir, unfinished)
	if err != nil {
		return err
	}
	err = os.Rename(e.final, filepath.Join(away, filepath.Base(e.final)))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(away))
}

// discard removes what was not finished.
func (e cacheEntry) discard() {
	if !e.fresh {
		return
	}
	if err := os.RemoveAll(e.path); err != nil {
		e.cache.log.Warn("unfinished cache folder not removed", "err", err)
	}
}

// checkCompiled looks at what a worker left before another one is given it:
// nothing but plain files, and not too much.
func checkCompiled(dir string) error {
	_, err := compiledSize(dir)
	return err
}

// compiledSize returns how many bytes of files a finished folder has, or what is
// wrong with it.
func compiledSize(dir string) (size int64, err error) {
	files := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == dir && !d.IsDir() {
			return fmt.Errorf("no folder, but of type %q", d.Type())
		}
		if d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("holds a file of type %q", info.Mode().Type())
		}
		files, size = files+1, size+info.Size()
		if files > maxCacheFiles || size > maxCacheBytes {
			return fmt.Errorf("holds %d files and %d bytes, at most %d and %d", files, size, maxCacheFiles, maxCacheBytes)
		}
		return nil
	})
	return size, err
}

// sweep removes what a crash left unfinished. Other processes may be filling
// theirs.
func (c *cacheFolder) sweep() {
	entries, err := os.ReadDir(c.dir)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		info, failed := entry.Info()
		if failed == nil && time.Since(info.ModTime()) > abandonedAfter {
			failed = os.RemoveAll(filepath.Join(c.dir, entry.Name()))
		}
		if !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	if err != nil {
		c.log.Warn("unfinished cache folders not removed", "err", err)
	}
}
