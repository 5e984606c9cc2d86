//go:build !windows

package worker

import (
	"fmt"
	"os"
	"syscall"
)

// standardPipe returns standard input or output as a file that the scheduler
// waits for. A blocking read would keep its processor from the call it has just
// started until another thread has woken up, which doubles a round trip.
func standardPipe(f *os.File) (*os.File, error) {
	fd := f.Fd()
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return os.NewFile(fd, f.Name()), nil
}
