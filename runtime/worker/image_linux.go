package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// programInMemory copies a program into a file that has no name, cannot be changed any
// more, and can be started as long as it is open.
func programInMemory(open func() (io.ReadCloser, error)) (_ *os.File, err error) {
	program, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	// A process forked meanwhile would hold the file open for writing for a moment,
	// and such a file cannot be started.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := memfd()
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "hutch-worker")
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, program); err != nil {
		return nil, fmt.Errorf("copy the worker: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("seal the worker: %w", err)
	}
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}

func memfd() (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("hutch-worker", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all of them could be started
		return unix.MemfdCreate("hutch-worker", flags)
	}
	return fd, err
}

// startOf returns the command that starts an open program.
func startOf(f *os.File) []string { return []string{fmt.Sprintf("/proc/self/fd/%d", f.Fd())} }
