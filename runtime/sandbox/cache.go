package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// cacheFolder is the folder of one module within the cache, named by the
// SHA-256 of its bytes, so that a damaged entry can be removed without knowing
// how the engine names it. Empty without a cache.
type cacheFolder struct {
	path string
	hit  bool // there is an entry, of whatever quality
}

// openCache creates the folder for wasm in dir and refuses what others could
// have written: entries are native code behind a checksum that anyone can make.
func openCache(dir string, wasm []byte) (cacheFolder, error) {
	if dir == "" {
		return cacheFolder{}, nil
	}
	digest := sha256.Sum256(wasm)
	f := cacheFolder{path: filepath.Join(dir, hex.EncodeToString(digest[:]))}
	for _, folder := range []string{dir, f.path} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return cacheFolder{}, err
		}
	}
	if err := private(dir, fs.ModeDir); err != nil {
		return cacheFolder{}, err
	}
	err := filepath.WalkDir(f.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".tmp") { // being written, and renamed any moment
			return ignoreMissing(err)
		}
		if d.Type().IsRegular() {
			f.hit = true
		}
		return ignoreMissing(private(path, d.Type()))
	})
	return f, err
}

// private returns an error unless the file at path is a folder or a plain file
// that nobody else may write.
func private(path string, want fs.FileMode) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != want.Type() || !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is a %s", errNotPrivate, path, info.Mode().Type())
	}
	return checkOwner(path, info, os.Getuid())
}

// errNotPrivate is what a folder that could hold strangers' code comes to.
var errNotPrivate = errors.New("not a folder that only this user can write")

// cacheReason returns what of err may be shown to anyone.
func cacheReason(err error) string {
	if errors.Is(err, errNotPrivate) {
		return errNotPrivate.Error() + "; remove it or choose another one"
	}
	return "the folder cannot be used"
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) { // another process removed a damaged entry
		return nil
	}
	return err
}

// clear removes the module's entries. What cannot be removed is logged: then
// compiling fails again, and says so.
func (f cacheFolder) clear(logger *slog.Logger) {
	entries, err := os.ReadDir(f.path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.path, e.Name())))
	}
	if err != nil {
		logger.Warn("cache entry not removed", "error", err)
	}
}

// cacheError is an error of opening the cache.
type cacheError struct{ error }

// isFileError reports whether err came from the file system, not from wasm.
func isFileError(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var cache *cacheError
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &cache)
}
