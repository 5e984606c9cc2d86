//go:build unix

package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep an open from following a link, from waiting for a writer of a pipe,
// and from making a terminal the process's own.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY

// byOthers are the permissions of everybody but the owner to write.
const byOthers = 0o022

var errNoOwner = errors.New("it cannot be told whom it belongs to")

// checkFile wants a file that nobody but uid and the administrator can write.
func checkFile(info fs.FileInfo, path string, needs Needs, uid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errNoOwner
	}
	own := fmt.Sprintf("chown %d", uid)
	switch mode := info.Mode().Perm(); {
	case needs.Private && int(stat.Uid) != uid:
		return &Refusal{fmt.Sprintf("it belongs to another user, hutch runs as user %d", uid), own, path}
	case !trusted(stat.Uid, uid):
		return &Refusal{fmt.Sprintf("it belongs to user %d, who can write to it; allowed are %s", stat.Uid, allowed(uid)), own, path}
	case needs.Private && mode&0o077 != 0:
		return &Refusal{fmt.Sprintf("it has mode %#o, allowed is 0600: others may have read it; replace what is in it, then chmod 600", mode), "chmod 600", path}
	case mode&byOthers != 0:
		return &Refusal{"others can write to it", "chmod go-w", path}
	case needs.OneName && stat.Nlink > 1:
		return &Refusal{fmt.Sprintf("%d other names (hard links) lead to it, allowed is none: copy it, and put the copy in its place", stat.Nlink-1), "", ""}
	}
	return nil
}

// checkFolder wants a folder in which nobody but uid and the administrator can put
// another file in the place of a safe one. In a sticky one, only its owner can.
func checkFolder(info fs.FileInfo, dir string, uid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errNoOwner
	case !trusted(stat.Uid, uid):
		return &Refusal{fmt.Sprintf("its folder belongs to user %d, who can put another file in its place; allowed are %s", stat.Uid, allowed(uid)), fmt.Sprintf("chown %d", uid), dir}
	case info.Mode().Perm()&byOthers != 0 && info.Mode()&fs.ModeSticky == 0:
		return &Refusal{"others can write to the folder it is in, and so put another file in its place", "chmod go-w", dir}
	}
	return nil
}

func trusted(owner uint32, uid int) bool { return owner == 0 || int(owner) == uid }

func allowed(uid int) string {
	if uid == 0 {
		return "root alone"
	}
	return fmt.Sprintf("user %d and root", uid)
}
