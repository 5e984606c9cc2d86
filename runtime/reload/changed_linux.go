package reload

import (
	"io/fs"
	"syscall"
	"time"
)

// changedAt is when a file's bytes or name last changed. Unlike the
// modification time, nobody can set it back.
func changedAt(fi fs.FileInfo) time.Time {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fi.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}
