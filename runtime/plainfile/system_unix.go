//go:build unix

package plainfile

import (
	"errors"
	"os"
	"syscall"
)

// openFlags keep an open from waiting for a writer of a FIFO, and from making
// a terminal the process's own.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY

// noFollow is left to os.Root where one is used: it resolves step by step.
const noFollow = syscall.O_NOFOLLOW

// syncFolder makes the names in dir durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
