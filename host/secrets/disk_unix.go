//go:build unix

package secrets

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

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
