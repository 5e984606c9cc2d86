package dialect

import (
	"encoding/binary"
	"slices"
	"sort"
)

// arena is the memory that Extism's functions work on: blocks at 64-bit
// offsets, which a guest fills and reads a few bytes at a time. Who has which
// block is kept here and not in the bytes, which the guest can write.
//
// Freed space is given out again, first fit, neighbours joined. Loads and
// stores are checked against what was ever given out, not against one block: a
// guest can only spoil bytes of its own call.
type arena struct {
	most   uint64 // bytes that may be given out
	bytes  []byte // bytes[0] has offset arenaStart
	blocks map[uint64]uint64
	free   []span // sorted by offset, not adjacent
	// moved is how many bytes the host filled, copied or went through that nobody paid
	// for yet. The list of freed spans is among them, which a guest can make long.
	moved int
}

// span is the bytes from offset at up to offset end.
type span struct{ at, end uint64 }

const (
	// arenaStart is the lowest offset; 0 is null for guests.
	arenaStart = 16
	// arenaAlign is what offsets are multiples of.
	arenaAlign = 8
	// spanBytes is what an entry of the list of freed spans takes.
	spanBytes = 16
	// maxBlocks bounds the bookkeeping, which is not the guest's memory.
	maxBlocks = 1 << 16
)

// alloc returns the offset of n new bytes, or 0 if n is 0 or they do not fit.
func (a *arena) alloc(n uint64) uint64 {
	if n == 0 || n > a.most || len(a.blocks) >= maxBlocks {
		return 0
	}
	size := (n + arenaAlign - 1) / arenaAlign * arenaAlign
	at, ok := a.reuse(size)
	if !ok {
		at, ok = a.extend(size)
	}
	if !ok {
		return 0
	}
	if a.blocks == nil {
		a.blocks = map[uint64]uint64{}
	}
	a.blocks[at] = n
	a.moved += int(n)
	return at
}

// reuse takes size bytes out of the first freed span that has them.
func (a *arena) reuse(size uint64) (uint64, bool) {
	for i, s := range a.free {
		if s.end-s.at < size {
			a.moved += spanBytes
			continue
		}
		if a.free[i].at += size; a.free[i].at == s.end {
			a.free = slices.Delete(a.free, i, i+1)
		}
		return s.at, true
	}
	return 0, false
}

// extend takes size bytes at the end, starting in a freed span that lies there.
func (a *arena) extend(size uint64) (uint64, bool) {
	at := a.end()
	last := len(a.free) - 1
	if last >= 0 && a.free[last].end == at {
		at = a.free[last].at
	} else {
		last = -1
	}
	if at-arenaStart+size > a.most {
		return 0, false
	}
	if last >= 0 {
		a.free = a.free[:last]
	}
	a.extendTo(at + size - arenaStart)
	return at, true
}

// piece is how many bytes are copied at a time when the arena moves: nothing interrupts
// that, so a collection would wait for all of them.
const piece = 256 << 10

// extendTo makes the arena so many bytes long, with zeros behind what it has. What lies
// behind its end was never written to.
func (a *arena) extendTo(size uint64) {
	if size > uint64(cap(a.bytes)) {
		larger := make([]byte, len(a.bytes), max(size, min(2*uint64(len(a.bytes)), a.most)))
		for at := 0; at < len(a.bytes); at += piece {
			copy(larger[at:], a.bytes[at:min(at+piece, len(a.bytes))])
		}
		a.bytes = larger
	}
	a.bytes = a.bytes[:size]
}

// end returns the offset behind the last byte.
func (a *arena) end() uint64 { return arenaStart + uint64(len(a.bytes)) }

// release frees the block at offset at; anything else is left alone, so that
// freeing twice does no harm.
func (a *arena) release(at uint64) {
	n, ok := a.blocks[at]
	if !ok {
		return
	}
	delete(a.blocks, at)
	s := span{at, at + (n+arenaAlign-1)/arenaAlign*arenaAlign}
	i := sort.Search(len(a.free), func(i int) bool { return a.free[i].at > at })
	a.moved += (len(a.free) - i) * spanBytes
	a.free = slices.Insert(a.free, i, s)
	if i+1 < len(a.free) && a.free[i+1].at == s.end {
		a.free[i].end = a.free[i+1].end
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].end == a.free[i].at {
		a.free[i-1].end = a.free[i].end
		a.free = slices.Delete(a.free, i, i+1)
	}
}

// length returns the size of the block at that very offset, else 0.
func (a *arena) length(at uint64) uint64 { return a.blocks[at] }

// view returns n bytes from offset at, if all of them were given out once. The
// slice is valid until the next alloc.
func (a *arena) view(at, n uint64) ([]byte, bool) {
	if at < arenaStart || at > a.end() || n > a.end()-at {
		return nil, false
	}
	return a.bytes[at-arenaStart : at-arenaStart+n], true
}

// block returns a copy of the block at that very offset; nil if there is none.
func (a *arena) block(at uint64) []byte {
	b, _ := a.view(at, a.blocks[at])
	a.moved += len(b)
	return slices.Clone(b)
}

// put allocates a block with these bytes; 0 if b is empty or does not fit.
func (a *arena) put(b []byte) uint64 {
	at := a.alloc(uint64(len(b)))
	if at != 0 {
		copy(a.bytes[at-arenaStart:], b)
	}
	return at
}

// load returns the n bytes (1 or 8) at offset at as a little-endian number.
func (a *arena) load(at, n uint64) (uint64, bool) {
	b, ok := a.view(at, n)
	switch {
	case !ok:
		return 0, false
	case n == 1:
		return uint64(b[0]), true
	}
	return binary.LittleEndian.Uint64(b), true
}

// store writes the lowest n bytes (1 or 8) of v at offset at.
func (a *arena) store(at, n, v uint64) bool {
	b, ok := a.view(at, n)
	switch {
	case !ok:
		return false
	case n == 1:
		b[0] = byte(v)
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
	return true
}
