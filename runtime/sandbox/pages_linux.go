package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pages asks the system which pages of memory a call changed. An image lies in a
// file that has no name; memories are private mappings of it, and a page that was
// written to is no longer the file's. It serves one module.
type Pages struct {
	file, pagemap int
	page          int    // bytes
	kept          []byte // the image, mapped to be read
}

// OpenPages opens what is needed for an image of at most that many bytes. It opens
// files, so it comes before whatever forbids that; afterwards [Pages.Descriptor] is
// read at an offset and memory is mapped.
func OpenPages(most int64) (*Pages, error) {
	file, err := unix.MemfdCreate("hutch-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("file for an image: %w", err)
	}
	p := &Pages{file: file, pagemap: -1, page: os.Getpagesize()}
	// It takes room where it is written. A file that got shorter would end the process.
	err = unix.Ftruncate(file, most)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	}
	if err == nil {
		p.pagemap, err = unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("file for an image: %w", err), p.Close())
	}
	return p, nil
}

// Descriptor is what is read at an offset.
func (p *Pages) Descriptor() int { return p.pagemap }

// Close gives everything back. No memory may be mapped any more that is brought back.
func (p *Pages) Close() error {
	err := unix.Close(p.file)
	if p.pagemap >= 0 {
		err = errors.Join(err, unix.Close(p.pagemap))
	}
	if p.kept != nil {
		err = errors.Join(err, unix.Munmap(p.kept))
	}
	return err
}

// keep copies a memory into the file and returns it as it lies there.
func (p *Pages) keep(memory []byte) ([]byte, error) {
	kept, err := unix.Mmap(p.file, 0, len(memory), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map an image: %w", err)
	}
	p.kept = kept
	restoreChanged(kept, memory) // zeros take no room
	if err := unix.Mprotect(kept, unix.PROT_READ); err != nil {
		return nil, fmt.Errorf("protect an image: %w", err)
	}
	return kept, nil
}

// cover maps the file in the place of a memory.
func (p *Pages) cover(memory []byte) error {
	_, err := unix.MmapPtr(p.file, 0, unsafe.Pointer(unsafe.SliceData(memory)), uintptr(len(memory)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("map an image: %w", err)
	}
	return nil
}

// Bits of an entry of the pagemap (Linux, Documentation/admin-guide/mm/pagemap.rst).
const (
	pageOfFile  = 1 << 61
	pageSwapped = 1 << 62
	pagePresent = 1 << 63

	entryBytes = 8
)

// mostCopied is how many pages are copied at most. Copied pages stay the memory's own
// and need no fault when they are written again; more of them are given back, so that
// a call that wrote much costs the next ones nothing.
const mostCopied = 256

// restore copies the pages back that are the memory's own.
func (p *Pages) restore(memory, image []byte, scratch *[]byte) error {
	n := len(memory) / p.page * entryBytes
	if cap(*scratch) < n {
		*scratch = make([]byte, n)
	}
	entries := (*scratch)[:n]
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) / uintptr(p.page)
	switch got, err := unix.Pread(p.pagemap, entries, int64(first)*entryBytes); {
	case err != nil:
		return fmt.Errorf("read the pagemap: %w", err)
	case got != n:
		return fmt.Errorf("read the pagemap: %d bytes of %d", got, n)
	}
	copied := 0
	for at := 0; at < n; at += entryBytes {
		e := binary.LittleEndian.Uint64(entries[at:])
		if e&(pagePresent|pageSwapped) == 0 || e&pageOfFile != 0 {
			continue
		}
		if copied++; copied > mostCopied {
			return p.drop(memory)
		}
		start := at / entryBytes * p.page
		copy(memory[start:start+p.page], image[start:])
	}
	return nil
}

// drop gives all pages back that are the memory's own.
func (p *Pages) drop(memory []byte) error {
	if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("give pages back: %w", err)
	}
	return nil
}
