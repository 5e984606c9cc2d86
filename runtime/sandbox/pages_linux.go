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
//
// The file can be written through one mapping only, which is there before the file is
// sealed and is gone once it holds the image. So nobody changes an image that was made.
type Pages struct {
	file, pagemap int
	page          int    // bytes
	filled        []byte // the file, mapped to be written; nil once it holds the image
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
		p.filled, err = unix.Mmap(file, 0, int(most), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err == nil {
		err = seal(file)
	}
	if err == nil {
		p.pagemap, err = unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("file for an image: %w", err), p.Close())
	}
	return p, nil
}

// seal lets a file have no other size, and be written through no other mapping than it
// has, nor in any other way. Systems before Linux 5.1 know but the former.
func seal(file int) error {
	const size = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	_, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, size|unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL)
	if errors.Is(err, unix.EINVAL) {
		_, err = unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, size|unix.F_SEAL_SEAL)
	}
	return err
}

// Descriptor is what is read at an offset.
func (p *Pages) Descriptor() int { return p.pagemap }

// Close gives everything back. No memory may be mapped any more that is brought back.
func (p *Pages) Close() error {
	err := unix.Close(p.file)
	if p.pagemap >= 0 {
		err = errors.Join(err, unix.Close(p.pagemap))
	}
	return errors.Join(err, unmap(p.filled), unmap(p.kept))
}

func unmap(b []byte) error {
	if b == nil {
		return nil
	}
	return unix.Munmap(b)
}

// keep copies a memory into the file, once, and returns it as it lies there.
func (p *Pages) keep(memory []byte) ([]byte, error) {
	if len(memory) > len(p.filled) {
		return nil, fmt.Errorf("keep an image: %d bytes, at most %d", len(memory), len(p.filled))
	}
	restoreChanged(p.filled[:len(memory)], memory) // zeros take no room
	filled := p.filled
	p.filled = nil
	if err := unix.Munmap(filled); err != nil {
		return nil, fmt.Errorf("close an image: %w", err)
	}
	var err error
	if p.kept, err = unix.Mmap(p.file, 0, len(memory), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map an image: %w", err)
	}
	return p.kept, nil
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
