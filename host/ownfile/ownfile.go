// Package ownfile reads files that decide something, such as what is granted: only
// while nobody but this process's user and the system's administrator can change
// them, or put others in their place.
//
// What is looked at is the file that is open, so that nothing can be put in its place
// between looking and reading. On a system without owners and mode bits, access is in
// lists that a file has from its folder, and only what it is and how large is looked at.
package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Needs says what a file has to be besides regular and safe from others. The zero
// value needs nothing more, and follows a link to the file.
type Needs struct {
	// Private: it belongs to this user, and nobody else may read it.
	Private bool
	// OneName: no other name leads to it, such as one in a folder of somebody else.
	OneName bool
	// NoLink: the path is no symlink.
	NoLink bool
}

// A Refusal is the error for a file that others could have written, or read.
type Refusal struct {
	// Found says what is wrong without saying where.
	Found string
	// Do begins a command that mends it for the path At. Both are empty if there
	// is no such command.
	Do, At string
}

func (r *Refusal) Error() string { return r.Found }

// Read returns what the file at path holds. More than most bytes are an error, what
// is not safe is a [*Refusal]. It waits for no pipe, and errors do not say where the
// file is.
func Read(path string, most int64, needs Needs) (raw []byte, err error) {
	if !needs.NoLink {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, withoutPath(err)
		}
	}
	// Looking first keeps us from opening a device, which may have effects.
	seen, err := os.Lstat(path)
	if err == nil {
		err = checkKind(seen.Mode())
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { err = errors.Join(err, withoutPath(f.Close())) }()
	if err := check(f, path, needs); err != nil {
		return nil, withoutPath(err)
	}
	raw, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return raw, withoutPath(err)
}

// check looks at the open file, and at the folder that has it.
func check(f *os.File, path string, needs Needs) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkKind(info.Mode()); err != nil {
		return err
	}
	if err := checkFile(info, path, needs, os.Geteuid()); err != nil {
		return err
	}
	dir := filepath.Dir(path)
	folder, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return checkFolder(folder, dir, os.Geteuid())
}

func checkKind(m fs.FileMode) error {
	kind := "something else"
	switch {
	case m.IsRegular():
		return nil
	case m.IsDir():
		kind = "a directory"
	case m&fs.ModeSymlink != 0:
		kind = "a symlink"
	case m&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case m&fs.ModeSocket != 0:
		kind = "a socket"
	case m&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("it is %s, not a regular file", kind)
}

func withoutPath(err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		return at.Err
	}
	return err
}
