package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// forgetTyped discards what was typed at a terminal and not read yet.
func forgetTyped(tty *os.File) error {
	const read = 1 // FREAD: what was typed, and not what is being shown
	return unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, read)
}
