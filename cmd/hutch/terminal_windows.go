package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// forgetTyped discards what was typed at a console and not read yet.
func forgetTyped(tty *os.File) error {
	return windows.FlushConsoleInputBuffer(windows.Handle(tty.Fd()))
}
