//go:build unix

package sandbox

import (
	"math"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// reserve sets aside addresses for the largest size the memory may have. They
// count against no limit until they are made accessible. Mapped memory need not be
// zeroed, never moves when it grows, and goes back to the system when the instance
// is closed: a fresh Go guest starts in half the time as from Go's heap.
func reserve(most uint64) experimental.LinearMemory {
	if most == 0 {
		return &mapping{}
	}
	if most > math.MaxInt {
		panic(errNoRoom)
	}
	b, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(errNoRoom)
	}
	return &mapping{reserved: b}
}

// mapping is the memory of one instance.
type mapping struct {
	reserved []byte
	size     uint64 // accessible from the start
}

// Reallocate makes the memory size bytes long, or returns nil if the system has
// no more.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > uint64(len(m.reserved)) {
		return nil
	}
	if size > m.size {
		if err := syscall.Mprotect(m.reserved[m.size:size], syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
			return nil
		}
		m.size = size
	}
	return m.reserved[:size:size]
}

// Free unmaps the memory. Nothing may look at it afterwards: that would end the
// process.
func (m *mapping) Free() {
	if m.reserved != nil {
		// An error would mean that these bytes are no mapping of ours.
		_ = syscall.Munmap(m.reserved)
		m.reserved = nil
	}
}
