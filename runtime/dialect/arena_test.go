package dialect

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"
)

func TestArena(t *testing.T) {
	a := arena{most: 1 << 20}
	if a.alloc(0) != 0 || a.length(0) != 0 || a.length(999) != 0 {
		t.Error("nothing has a length")
	}
	first, second := a.alloc(5), a.put([]byte("second"))
	if first != arenaStart || second != arenaStart+8 || a.length(first) != 5 || a.length(second) != 6 || a.length(second+1) != 0 {
		t.Errorf("blocks at %d and %d", first, second)
	}
	if !a.store(first, 8, 0x0807060504030201) || !a.store(first+1, 1, 0x1ff) {
		t.Error("store")
	}
	if v, ok := a.load(first, 8); !ok || v != 0x08070605_0403ff01 {
		t.Errorf("load %#x", v)
	}
	if v, ok := a.load(first+1, 1); !ok || v != 0xff {
		t.Errorf("load %#x", v)
	}
	copied := a.block(second)
	a.store(second, 1, 'S')
	if string(copied) != "second" || string(a.block(second)) != "Second" {
		t.Error("E12: a block that was read changed")
	}
	a.release(second)
	a.release(second)
	a.release(first + 1)
	if a.length(second) != 0 || a.length(first) != 5 {
		t.Error("release")
	}
}

func TestArenaBounds(t *testing.T) {
	a := arena{most: 1 << 20}
	end := a.alloc(16) + 16
	for _, tt := range []struct {
		at, n uint64
		ok    bool
	}{
		{arenaStart, 8, true}, {end - 8, 8, true}, {end - 1, 1, true}, {end, 0, true},
		{0, 1, false}, {arenaStart - 1, 1, false}, {end - 7, 8, false}, {end, 1, false}, {end + 1, 0, false},
		{math.MaxUint64, 8, false}, {math.MaxUint64 - 7, 8, false}, {arenaStart, math.MaxUint64, false}, {1 << 32, 1, false},
	} {
		if _, ok := a.view(tt.at, tt.n); ok != tt.ok {
			t.Errorf("%d bytes at %d: %v", tt.n, tt.at, ok)
		}
	}
	if a.store(end, 1, 1) || a.store(end-7, 8, 1) {
		t.Error("stored outside")
	}
}

func TestArenaLimits(t *testing.T) {
	a := arena{most: 1000}
	for _, n := range []uint64{1001, math.MaxUint64, math.MaxUint64 - 7, 1 << 32} {
		if at := a.alloc(n); at != 0 {
			t.Errorf("%d bytes at %d", n, at)
		}
	}
	if a.alloc(1000) == 0 || a.alloc(1) != 0 || len(a.bytes) > 1000 {
		t.Error("the limit is another one")
	}
	a = arena{most: 1 << 30}
	for range maxBlocks {
		if a.alloc(1) == 0 {
			t.Fatal("too few blocks")
		}
	}
	if a.alloc(1) != 0 {
		t.Error("too many blocks")
	}
}

func TestArenaGivesMemoryBack(t *testing.T) {
	a := arena{most: 2 << 20}
	for i := range 100 {
		in, out := a.alloc(700_000), a.alloc(700_000)
		if in == 0 || out == 0 {
			t.Fatalf("full after %d calls", i)
		}
		a.release(in)
		a.release(out)
	}
	// Neighbours are joined, in whatever order they are freed.
	var list []uint64
	for range 16 {
		list = append(list, a.alloc(100_000))
	}
	for _, i := range []int{1, 3, 2, 0, 15, 7, 5, 6, 4, 14, 12, 13, 8, 10, 9, 11} {
		a.release(list[i])
	}
	if at := a.alloc(2 << 20); at != arenaStart || len(a.free) != 0 {
		t.Errorf("all of it is at %d, %d spans are left", at, len(a.free))
	}
}

// FuzzArena runs a program of one operation for every three bytes and compares
// with a map of what each block should hold.
func FuzzArena(f *testing.F) {
	f.Add([]byte{0, 10, 0, 0, 20, 0, 1, 0, 0, 0, 5, 0, 2, 1, 1, 3, 0, 7})
	f.Add(bytes.Repeat([]byte{0, 255, 9, 1, 0, 0}, 40))
	f.Fuzz(func(t *testing.T, program []byte) {
		a := arena{most: 1 << 15}
		want := map[uint64][]byte{}
		program = program[:min(len(program), 1500)]
		for ; len(program) >= 3; program = program[3:] {
			arg := uint64(binary.LittleEndian.Uint16(program[1:]))
			switch program[0] % 6 {
			case 0:
				if at := a.alloc(arg); at != 0 {
					want[at] = slices.Clone(a.block(at))
				}
			case 1:
				at := nth(want, arg)
				a.release(at)
				delete(want, at)
			case 2:
				at := nth(want, arg)
				if n := uint64(len(want[at])); n > 0 {
					a.store(at+arg%n, 1, arg)
					want[at][arg%n] = byte(arg)
				}
			case 3:
				a.load(arg, 8)
				a.release(arg | 1) // never a block
			case 4:
				a.alloc(math.MaxUint64 - arg)
				a.view(math.MaxUint64-arg, arg)
			case 5:
				a.store(a.end()-min(arg, 7), 8, arg)
			}
			checkArena(t, &a, want)
		}
	})
}

// nth returns one of the blocks, 0 if there is none.
func nth(blocks map[uint64][]byte, n uint64) uint64 {
	if len(blocks) == 0 {
		return 0
	}
	return slices.Sorted(maps.Keys(blocks))[n%uint64(len(blocks))]
}

func checkArena(t *testing.T, a *arena, want map[uint64][]byte) {
	t.Helper()
	last := uint64(arenaStart)
	for _, at := range slices.Sorted(maps.Keys(want)) {
		if at < last || at%arenaAlign != 0 {
			t.Fatalf("block at %d overlaps one that ends at %d", at, last)
		}
		if got := a.block(at); !bytes.Equal(got, want[at]) {
			t.Fatalf("block at %d holds %x, want %x", at, got, want[at])
		}
		last = at + uint64(len(want[at]))
	}
	if len(a.blocks) != len(want) || last > a.end() || uint64(len(a.bytes)) > a.most {
		t.Fatalf("%d blocks up to %d of %d, want %d", len(a.blocks), last, a.end(), len(want))
	}
	for i, s := range a.free {
		if s.at >= s.end || s.end > a.end() || i > 0 && s.at <= a.free[i-1].end {
			t.Fatalf("free spans %v", a.free)
		}
	}
}

// An arena that moves keeps what it holds, and what is new in it is zero.
func TestArenaMoves(t *testing.T) {
	a := arena{most: 5 * piece}
	var want []byte
	for i, n := range []uint64{piece - 8, 16, piece, 2*piece + 8} {
		at := a.alloc(n)
		b, ok := a.view(at, n)
		if !ok || bytes.Count(b, []byte{0}) != len(b) {
			t.Fatalf("block %d of %d bytes is not empty", i, n)
		}
		for at := range b {
			b[at] = byte(i + 1 + at%200)
		}
		want = append(want, b...)
		if !bytes.Equal(a.bytes, want) {
			t.Errorf("after block %d of %d bytes the arena holds something else", i, n)
		}
	}
	if a.alloc(2*piece) != 0 || cap(a.bytes) > 5*piece {
		t.Errorf("%d bytes of %d", cap(a.bytes), a.most)
	}
}

// Looking for room among many freed spans costs what reading their list does, and so
// does keeping them in order.
func TestArenaSearchIsPaidFor(t *testing.T) {
	const holes = 1000
	a := arena{most: 1 << 20}
	var blocks []uint64
	for range 2 * holes {
		blocks = append(blocks, a.alloc(8))
	}
	for i := len(blocks) - 2; i >= 0; i -= 2 {
		a.moved = 0
		a.release(blocks[i])
		if want := len(a.free) - 1; a.moved != want*spanBytes {
			t.Fatalf("freeing before %d spans costs %d bytes", want, a.moved)
		}
	}
	a.moved = 0
	if at := a.alloc(16); at == 0 || a.moved != 16+holes*spanBytes {
		t.Errorf("%d bytes paid for, want %d", a.moved, 16+holes*spanBytes)
	}
}
