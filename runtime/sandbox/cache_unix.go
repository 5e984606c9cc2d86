//go:build unix

package sandbox

import (
	"fmt"
	"io/fs"
	"syscall"
)

// checkOwner returns an error unless the file belongs to uid and to nobody
// else's pen.
func checkOwner(path string, info fs.FileInfo, uid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != uid {
		return fmt.Errorf("%w: %s belongs to another user", errNotPrivate, path)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%w: %s has mode %#o", errNotPrivate, path, mode)
	}
	return nil
}
