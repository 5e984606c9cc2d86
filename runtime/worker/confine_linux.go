package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// confine bounds the memory of this process. The limit is on data rather than address space, of which the Go runtime reserves
// far more than it uses. No core is written: it would hold callers' data.
func confine(head loadHead) error {
	tune(head)
	data := syscall.Rlimit{Cur: uint64(head.MemoryBytes), Max: uint64(head.MemoryBytes)}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &data); err != nil {
		return fmt.Errorf("limit data memory to %d bytes: %w", head.MemoryBytes, err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("switch core files off: %w", err)
	}
	return nil
}

// closeInherited closes what came along from the parent's own parents: Go opens
// everything close-on-exec, others do not. What is already there of the Go
// runtime (its poller) stays.
func closeInherited() error {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") {
			continue // the listing's own descriptor is gone; the runtime's stay
		}
		if err := syscall.Close(fd); err != nil {
			return fmt.Errorf("close descriptor %d: %w", fd, err)
		}
	}
	return nil
}
