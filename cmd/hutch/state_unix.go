//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// checkOwner wants a directory to belong to this user and to nobody else.
func checkOwner(dir string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("state %s: owner unknown", strconv.Quote(dir))
	}
	if uid := os.Geteuid(); int(stat.Uid) != uid {
		return hinted(fmt.Errorf("state %s: belongs to user %d, hutch runs as user %d", strconv.Quote(dir), stat.Uid, uid),
			"name a folder of your own with --state DIR")
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return hinted(fmt.Errorf("state %s: permissions are %04o, allowed are 0700: compiled code in it is run", strconv.Quote(dir), perm),
			"chmod 700 %s", shellWord(dir))
	}
	return nil
}

// exposed reports whether someone else may write into a folder.
func exposed(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }
