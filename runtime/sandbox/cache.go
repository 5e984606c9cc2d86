package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hutch-run/hutch/runtime/plainfile"
)

// cacheFolder is the folder of one module within the cache, named by the
// SHA-256 of its bytes. The engine puts its entries there under names of its
// own. It checks only a part of what it reads back, and a damaged entry that
// passes ends the process, so the file sums has the digest of each.
type cacheFolder struct {
	path     string // empty without a cache
	hit      bool   // there is an entry
	readOnly bool
	stale    bool // there should have been an entry, but nothing may be changed
	logger   *slog.Logger
}

const (
	sumsFile = "sums"
	// maxSums bounds sumsFile: a line for each of the engine's few entries.
	maxSums = 64 << 10
)

// openCache creates the folder for wasm in dir and refuses what others could
// have written: entries are native code, and digests are no signatures.
func openCache(dir string, wasm []byte, o Options) (cacheFolder, error) {
	if dir == "" {
		return cacheFolder{}, nil
	}
	digest := sha256.Sum256(wasm)
	f := cacheFolder{path: filepath.Join(dir, hex.EncodeToString(digest[:])), readOnly: o.CacheReadOnly, logger: o.Logger}
	if !f.readOnly {
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			return f, err
		}
	}
	switch err := private(dir, true); {
	case f.readOnly && errors.Is(err, fs.ErrNotExist): // it was tidied away a moment ago
		f.giveUp()
		return f, nil
	case err != nil:
		return f, err
	}
	sums, err := f.readSums()
	if err != nil {
		return f, err
	}
	damaged := false
	for path, sum := range sums {
		if sum.wanted == sum.found {
			f.hit = true
			continue
		}
		damaged = true
		f.logger.Warn("damaged cache entry", "path", path)
		if f.readOnly {
			continue
		}
		if err := ignoreMissing(os.Remove(path)); err != nil {
			return f, err
		}
	}
	if f.readOnly && (damaged || !f.hit) {
		f.giveUp()
	}
	return f, nil
}

// giveUp goes on without the folder.
func (f *cacheFolder) giveUp() { f.path, f.hit, f.stale = "", false, true }

// entrySum is the digest of one entry as it was written down, and as it is.
type entrySum struct{ wanted, found string }

// readSums reads all entries and what was written down about them.
func (f cacheFolder) readSums() (map[string]entrySum, error) {
	known := map[string]string{}
	text, err := plainfile.Read(filepath.Join(f.path, sumsFile), maxSums)
	if ignoreMissing(err) != nil { // then nothing is known of any entry
		f.logger.Warn("digests of cache entries cannot be read", "error", err)
	}
	for line := range strings.Lines(string(text)) {
		if sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			known[filepath.Join(f.path, name)] = sum
		}
	}
	sums := map[string]entrySum{}
	err = filepath.WalkDir(f.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		if err := private(path, d.IsDir()); err != nil {
			return ignoreMissing(err)
		}
		if d.IsDir() || path == filepath.Join(f.path, sumsFile) || strings.HasSuffix(path, ".tmp") {
			return nil
		}
		found, err := fileSum(path)
		if err == nil {
			sums[path] = entrySum{known[path], found}
		}
		return ignoreMissing(err)
	})
	return sums, err
}

// seal writes down the digests of the entries as they are now. Without them
// they are compiled again, so an error is logged and no more.
func (f cacheFolder) seal() {
	if f.path == "" {
		return
	}
	sums, err := f.readSums()
	var text bytes.Buffer
	for path, sum := range sums {
		fmt.Fprintf(&text, "%s %s\n", sum.found, strings.TrimPrefix(path, f.path+string(filepath.Separator)))
	}
	if err == nil {
		err = replaceFile(filepath.Join(f.path, sumsFile), text.Bytes())
	}
	if err != nil {
		f.logger.Warn("cache entry is not used again", "error", err)
	}
}

// clear removes the module's entries, or goes on without them if it may not. What
// cannot be removed is logged: then compiling fails again, and says so.
func (f *cacheFolder) clear() {
	f.hit = false
	if f.readOnly {
		f.giveUp()
		return
	}
	entries, err := os.ReadDir(f.path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.path, e.Name())))
	}
	if err != nil {
		f.logger.Warn("cache entry not removed", "error", err)
	}
}

func fileSum(path string) (string, error) {
	file, _, err := plainfile.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// replaceFile writes a file that is whole whenever anyone sees it.
func replaceFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// private returns an error unless path is a folder, or else a plain file, that
// nobody else may write.
func private(path string, folder bool) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.IsDir() != folder || !folder && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is of type %q", errNotPrivate, path, info.Mode().Type())
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

// cacheError is an error of opening the cache.
type cacheError struct{ error }

// isFileError reports whether err came from the file system, not from wasm. The
// engine does not wrap what goes wrong while it reads an entry.
func isFileError(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	var cache *cacheError
	return errors.As(err, &path) || errors.As(err, &link) || errors.As(err, &cache) ||
		strings.HasPrefix(err.Error(), "compilationcache: ")
}
