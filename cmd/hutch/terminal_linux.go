package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped discards what was typed at a terminal and not read yet.
func forgetTyped(tty *os.File) error {
	return unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH)
}
