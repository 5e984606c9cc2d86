package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/hutch-run/hutch/protocol/abi"
)

// memory is what one instance has of it. The engine asks it each time that a
// guest wants more, so this is where the limit is kept, and where it is known that
// it was reached.
type memory struct {
	experimental.LinearMemory
	most  uint64
	given bool // a first size
	// refused is the size that was asked for last and not given, 0 if there was
	// none since the last call began.
	refused uint64
	// entries is room for what the system says about the pages.
	entries []byte
}

// withMemory has the instance's memory come from us. The instance keeps it too:
// the engine (v1.12.0) frees none whose start fails.
func (in *Instance) withMemory(ctx context.Context) context.Context {
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		in.memory = &memory{most: in.owner.most, LinearMemory: reserve(min(most, in.owner.most))}
		return in.memory
	}))
}

// Reallocate makes the memory size bytes long, or returns nil, which makes
// memory.grow -1, if it may not have them or the system has no more.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.most {
		m.refused = size
		if !m.given { // at the start there is no -1 to return
			panic(errTooLarge(size, m.most))
		}
		return nil
	}
	b := m.LinearMemory.Reallocate(size)
	if b == nil && size > 0 {
		m.refused = size
		if !m.given {
			panic(errNoRoom)
		}
	}
	m.given = true
	return b
}

// overMemory returns the failure of a guest that was refused memory and then did
// what it is about, nil if it was not refused any.
func (in *Instance) overMemory(did string) *abi.Failure {
	switch m := in.memory; {
	case m == nil || m.refused == 0:
		return nil
	case m.refused > m.most:
		return abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "memory of %d bytes was asked for, at most %d; then the tool %s", m.refused, m.most, did)
	default:
		return abi.Exceeded(abi.ClassLimit, abi.LimitMemory, "memory of %d bytes was asked for, which the tool's process has not left; then the tool %s", m.refused, did)
	}
}

// errNoRoom unwinds an instantiation for which the system has no memory.
var errNoRoom = errors.New("no memory for another instance")

// sizeError is about a module that needs more memory to start than it may have.
type sizeError struct{ starts, most uint64 }

func errTooLarge(starts, most uint64) error { return &sizeError{starts, most} }

func (e *sizeError) Error() string {
	return fmt.Sprintf("memory of min %d pages, at most %d", e.starts/abi.PageBytes, e.most/abi.PageBytes)
}

// asError returns a panic's value as an error.
func asError(v any) error {
	if err, ok := v.(error); ok {
		return err
	}
	return enginePanic(v)
}
