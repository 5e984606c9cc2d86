package reload

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/hutch-run/hutch/runtime/plainfile"
)

// What a file can turn out to be instead of a module. The texts are shown.
var (
	errLeaves   = errors.New("symlink leaves the folder")
	errDangling = errors.New("symlink points nowhere")
	errTangled  = errors.New("symlink cannot be followed")
	errBadName  = errors.New("file name has characters that cannot be shown as they are, rename it")
	errBadUTF8  = errors.New("file name is not valid UTF-8, rename it")
	// errMoving is never shown: the file is still being written.
	errMoving = errors.New("changed while it was read")
	// errUnknown is never shown: the file may still be written, and was not read
	// before as it is.
	errUnknown = errors.New("not known yet")
)

// isModule reports whether a file of this name is meant to be loaded. Editors
// and copying tools work on names that start with a dot, or end in ~ or .tmp.
func isModule(name string) bool {
	return strings.HasSuffix(name, blobSuffix) && !strings.HasPrefix(name, ".")
}

// maxName bounds a module's file name, in bytes. It stands in every list.
const maxName = 200

// named returns name as it may stand in a message, and what is wrong with it, if
// anything is. Two names are never shown alike: what cannot be shown is escaped
// as in Go, and so is the backslash that escapes begin with.
func named(name string) (shown string, err error) {
	var b strings.Builder
	for rest := name; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
			err = errBadUTF8
		case r == '\\' || !unicode.IsPrint(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
			err = cmp.Or(err, errBadName)
		default:
			b.WriteRune(r)
		}
		rest = rest[size:]
	}
	if n := len(name); err == nil && n > maxName {
		err = fmt.Errorf("file name of %d bytes, at most %d", n, maxName)
	}
	return b.String(), err
}

// folded maps names to one that a file system may take for the same file: those
// of macOS and Windows ignore case, and some how a letter's accents are encoded.
func folded(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(name))))
}

// resolve follows name inside root. Only symlinks cost the walk; the target is
// opened through root again, so one that changes meanwhile still cannot leave.
func resolve(root *os.Root, folder, name string) (string, error) {
	fi, err := root.Lstat(name)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return name, err
	}
	base, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(base, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errDangling
	}
	if err != nil {
		return "", errTangled
	}
	rel, err := filepath.Rel(base, target)
	if err != nil || !filepath.IsLocal(rel) {
		return "", errLeaves
	}
	return rel, nil
}

// open opens a module file for reading without ever waiting for it.
func open(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	f, fi, err := plainfile.OpenIn(root, rel)
	if errors.Is(err, plainfile.ErrSymlink) || errors.Is(err, plainfile.ErrSwapped) {
		err = errMoving // it was resolved a moment ago
	}
	return f, fi, err
}

// settled reports whether a file was left alone long enough to be read whole.
// before is what an earlier look, at seen, found of it.
func settled(fi, before fs.FileInfo, seen, now time.Time, stable time.Duration) bool {
	if quiet := now.Sub(latest(fi.ModTime(), changedAt(fi))); quiet >= stable {
		return true
	}
	// The file's clock may not be ours: what we saw ourselves counts as well.
	return before != nil && same(fi, before) && now.Sub(seen) >= stable
}

// arrived reports whether a file is another one than that of before, if there was
// any, or had nothing written to it since it was renamed or given its times. Such a
// file is whole if its bytes are those of a whole one.
func arrived(fi, before fs.FileInfo) bool {
	another := before != nil && !os.SameFile(fi, before)
	return fi.Size() > 0 && (another || changedAt(fi).After(fi.ModTime()))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// same reports whether two looks found the same bytes, as far as a look tells.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) &&
		changedAt(a).Equal(changedAt(b))
}

// store puts an open file's bytes into the blobs. Bytes that are there already are
// only hashed; new ones are hashed as they are copied, so that the digest is
// that of the bytes kept.
func (w *Watcher) store(f *os.File, fi fs.FileInfo) (string, error) {
	if fi.Size() > w.o.MaxBytes {
		return "", fmt.Errorf("%d bytes, at most %d", fi.Size(), w.o.MaxBytes)
	}
	digest, size, err := hashTo(io.Discard, f, w.o.MaxBytes)
	if err == nil && !w.o.Blobs.Hold(digest, size) {
		if _, err = f.Seek(0, io.SeekStart); err == nil {
			if digest, size, err = w.o.Blobs.Put(f, w.o.MaxBytes); err != nil && !errors.Is(err, ErrTooLarge) {
				err = &keepError{err}
			}
		}
	}
	if err != nil && !errors.Is(err, ErrTooLarge) {
		return "", err
	}
	after, serr := f.Stat()
	if serr != nil {
		return "", serr
	}
	if err != nil || size != fi.Size() || !same(fi, after) {
		return "", errMoving
	}
	return digest, nil
}

// recall returns the digest of an open file's bytes if the blobs have them, else
// errUnknown, whatever the reason.
func (w *Watcher) recall(f *os.File, fi fs.FileInfo) (string, error) {
	digest, size, err := hashTo(io.Discard, f, min(fi.Size(), w.o.MaxBytes))
	if err != nil || size != fi.Size() || !w.o.Blobs.Hold(digest, size) {
		return "", errUnknown
	}
	if after, err := f.Stat(); err != nil || !same(fi, after) {
		return "", errUnknown
	}
	return digest, nil
}
