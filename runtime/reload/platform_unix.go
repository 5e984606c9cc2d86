//go:build unix

package reload

import (
	"io/fs"
	"os"
	"syscall"
)

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
