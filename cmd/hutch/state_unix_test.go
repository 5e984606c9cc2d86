//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// owned is a directory that belongs to somebody.
type owned struct {
	fs.FileInfo
	uid  int
	mode fs.FileMode
}

func (o owned) Sys() any          { return &syscall.Stat_t{Uid: uint32(o.uid)} }
func (o owned) Mode() fs.FileMode { return fs.ModeDir | o.mode }

func TestCheckOwner(t *testing.T) {
	me := os.Geteuid()
	for _, c := range []struct {
		uid  int
		mode fs.FileMode
		want string
	}{
		{me, 0o700, ""},
		{me, 0o500, ""},
		{me, 0o701, `state "/s": permissions are 0701, allowed are 0700: compiled code in it is run`},
		{me, 0o770, `state "/s": permissions are 0770, allowed are 0700: compiled code in it is run`},
		{me + 1, 0o700, fmt.Sprintf(`state "/s": belongs to user %d, hutch runs as user %d`, me+1, me)},
	} {
		err := checkOwner("/s", owned{uid: c.uid, mode: c.mode})
		if errText(err) != c.want || (hintOf(err) == "") != (err == nil) {
			t.Errorf("%d %04o: %v, want %s", c.uid, c.mode, err, c.want)
		}
	}
}
