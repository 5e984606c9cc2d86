//go:build unix

package sandbox

import (
	"errors"
	"testing"
)

func TestMapping(t *testing.T) {
	const page = 64 << 10
	m := reserve(4 * page)
	b := m.Reallocate(page)
	b[0], b[page-1] = 1, 2
	grown := m.Reallocate(4 * page)
	if &grown[0] != &b[0] || len(grown) != 4*page || cap(grown) != 4*page || grown[page-1] != 2 || grown[4*page-1] != 0 {
		t.Error("growing moved or changed the memory")
	}
	if m.Reallocate(4*page+1) != nil {
		t.Error("grew beyond what was reserved")
	}
	m.Free()
	m.Free()
	if none := reserve(0); len(none.Reallocate(0)) != 0 {
		t.Error("empty memory has bytes")
	}
}

func TestReservingTooMuch(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errNoRoom) {
			t.Errorf("recovered %v", err)
		}
	}()
	reserve(1 << 62)
}
