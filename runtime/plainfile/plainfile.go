// Package plainfile reads and replaces files in folders that something else may
// have put its hand in: it waits for no pipe, follows no symlink, and reads no
// more than it was told to.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrSymlink is the error for a symlink where a file should be.
var ErrSymlink = errors.New("is a symlink, not a regular file")

// ErrSwapped is the error for a file whose place others keep taking.
var ErrSwapped = errors.New("was replaced while it was opened")

// folder is what opening needs of a folder; *os.Root is one.
type folder interface {
	Lstat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
}

// anywhere takes names as paths of this process.
type anywhere struct{}

func (anywhere) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (anywhere) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag|noFollow, perm)
}

// Open opens a regular file for reading, at once, whatever lies at path. Folders
// on the way to it are followed, a symlink at its end is not.
func Open(path string) (*os.File, fs.FileInfo, error) { return open(anywhere{}, path) }

// OpenIn is [Open] for a path inside root, which nothing on the way can leave.
func OpenIn(root *os.Root, path string) (*os.File, fs.FileInfo, error) { return open(root, path) }

// tries is how often a file may be replaced under our hands before we give up.
const tries = 10

func open(in folder, path string) (f *os.File, fi fs.FileInfo, err error) {
	for range tries {
		if f, fi, err = openOnce(in, path); !errors.Is(err, ErrSwapped) {
			break
		}
	}
	return f, fi, err
}

func openOnce(in folder, path string) (*os.File, fs.FileInfo, error) {
	// Looking first keeps us from opening a device, which may have effects.
	seen, err := in.Lstat(path)
	if err == nil {
		err = Check(seen)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := in.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		err = Check(opened)
	}
	if err == nil && !os.SameFile(seen, opened) {
		err = ErrSwapped
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, opened, nil
}

// Check returns an error that names what it is unless fi is that of a regular
// file; for a symlink it is [ErrSymlink].
func Check(fi fs.FileInfo) error {
	kind := ""
	switch m := fi.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a directory"
	case m&fs.ModeSymlink != 0:
		return ErrSymlink
	case m&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	default:
		kind = "something else"
	}
	return fmt.Errorf("is %s, not a regular file", kind)
}

// Read returns what a regular file holds. More than limit bytes are an error,
// and so is anything that [Open] refuses.
func Read(path string, limit int64) (raw []byte, err error) {
	f, fi, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if fi.Size() > limit {
		return nil, tooLarge(limit)
	}
	raw = make([]byte, 0, fi.Size()+1) // one more shows the end without growing
	for {
		n, err := f.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case int64(len(raw)) > limit:
			return nil, tooLarge(limit)
		case errors.Is(err, io.EOF):
			return raw, nil
		case err != nil:
			return nil, err
		case len(raw) == cap(raw):
			raw = append(raw, 0)[:len(raw)]
		}
	}
}

func tooLarge(limit int64) error { return fmt.Errorf("more than %d bytes", limit) }

// Replace makes raw the content of path, readable by its owner alone: the old
// content or the new one is there at any moment, also after a power cut. It is
// written to a file beside it, whose name begins with temp and goes on in digits.
// What lies at path and is no regular file goes.
func Replace(path, temp string, raw []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), temp)
	if err != nil {
		return err
	}
	_, err = tmp.Write(raw)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = Move(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// Move gives a file, whole and durable already, the name path in the same folder,
// durably. A folder that lies there goes, with all that is in it.
func Move(file, path string) error {
	err := os.Rename(file, path)
	if err != nil && isFolder(path) {
		if err = removeFolder(path); err == nil {
			err = os.Rename(file, path)
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// Remove removes what lies at path, whatever it is. Nothing is an error that wraps
// [fs.ErrNotExist].
func Remove(path string) error {
	err := os.Remove(path)
	if err != nil && isFolder(path) {
		return removeFolder(path)
	}
	return err
}

func isFolder(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && fi.IsDir()
}

// removeFolder removes what lies at path without leaving the folder that it is
// in, whatever is put there meanwhile. It is moved aside first: something that is
// mounted there does not move, and is left alone.
func removeFolder(path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	name := filepath.Base(path)
	aside := "." + name + ".aside"
	err = root.RemoveAll(aside)
	if err == nil {
		err = root.Rename(name, aside)
	}
	if err == nil {
		err = root.RemoveAll(aside)
	}
	return errors.Join(err, root.Close())
}
