//go:build unix

package reload

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep an open from waiting for a writer of a FIFO, and from making
// a terminal the process's own.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// syncFolder makes the names in dir durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// exposure says who else can put a module into a folder, "" if nobody can.
func exposure(fi fs.FileInfo) string {
	if fi.Mode().Perm()&0o002 != 0 {
		return "anyone on this machine can write to it"
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return "it belongs to another user"
	}
	return ""
}
