//go:build unix

package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep an open from following a link, from waiting for a writer of a
// FIFO, and from making a terminal the process's own.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// checkPrivate returns an error unless a file belongs to uid, and to it alone.
func checkPrivate(info fs.FileInfo, uid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != uid {
		return fmt.Errorf("it belongs to another user, hutch runs as user %d", uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("it has mode %#o, allowed is 0600: others may have read it; replace what is in it, then chmod 600", mode)
	}
	return nil
}

// fileID tells a file from another that takes its name.
type fileID struct{ dev, ino int64 }

func idOf(info fs.FileInfo) fileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{dev: int64(stat.Dev), ino: int64(stat.Ino)}
}

func tryLock(dir *os.File) (bool, error) {
	err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return withoutPath(err)
	}
	return withoutPath(errors.Join(f.Sync(), f.Close()))
}
