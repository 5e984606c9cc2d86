//go:build !unix

package sandbox

import "github.com/tetratelabs/wazero/experimental"

// reserve leaves the memory to Go's heap, from which it is taken as it grows.
func reserve(uint64) experimental.LinearMemory { return &heap{} }

// heap is the memory of one instance.
type heap struct{ b []byte }

func (h *heap) Reallocate(size uint64) []byte {
	if n := uint64(len(h.b)); size > n {
		h.b = append(h.b, make([]byte, size-n)...)
	}
	return h.b[:size:size]
}

// Free leaves it to the collector.
func (h *heap) Free() { h.b = nil }
