package wasmbin

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// span is a range of offsets in the module.
type span struct{ start, end int }

// reader reads a module, or a part of one. Its first failure stays in err, and
// from then on it reads zeros at the end of its bytes: loops look at err, the
// rest of a walker need not.
type reader struct {
	b   []byte // the module, up to where this reader may read
	pos int    // offset of the next byte
	// last is where the value read last begins. Failures name it.
	last int
	// section, item and index say where the reader is, as "code section:
	// function 3"; item is empty outside of entries.
	section string
	item    string
	index   int
	// inside is the name of the instruction that is being read; empty outside.
	inside string
	// entries is where those of the section's vector begin.
	entries int
	err     error
}

func (r *reader) left() int { return len(r.b) - r.pos }

// more says whether there is anything left to read, and reason to.
func (r *reader) more() bool { return r.err == nil && r.left() > 0 }

func (r *reader) fail(format string, args ...any) {
	if r.err != nil {
		return
	}
	where := r.section
	if r.item != "" {
		where = fmt.Sprintf("%s: %s %d", r.section, r.item, r.index)
	}
	if r.inside != "" {
		where += ": " + r.inside
	}
	r.err = fmt.Errorf("%s: %s (at offset %#x)", where, fmt.Sprintf(format, args...), r.last)
	r.pos = len(r.b)
}

// atMost fails if there is more of something than the budget has.
func (r *reader) atMost(found uint64, limit int, unit string) {
	if limit < 0 || found > uint64(limit) {
		r.fail("%d %s, at most %d", found, unit, limit)
	}
}

// below fails if index names nothing: there are only count things of its kind.
func (r *reader) below(index uint32, count int, kind string) {
	if uint64(index) >= uint64(count) {
		r.fail("%s index %d, but there are only %d", kind, index, count)
	}
}

// peek returns the next byte, or 0 at the end, and stays before it.
func (r *reader) peek() byte {
	r.last = r.pos
	if r.left() == 0 {
		return 0
	}
	return r.b[r.pos]
}

func (r *reader) byte() byte {
	r.last = r.pos
	return r.next()
}

func (r *reader) next() byte {
	if r.left() == 0 {
		r.fail("ends too early")
		return 0
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// u32 reads an unsigned number of 32 bits (section 5.2.2): at most five bytes,
// and nothing in the last one's unused bits.
func (r *reader) u32() uint32 {
	r.last = r.pos
	var v uint32
	for shift := 0; shift < 28; shift += 7 {
		c := r.next()
		v |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	c := r.next()
	if c > 0x0f {
		r.fail("a number does not fit 32 bits")
	}
	return v | uint32(c)<<28
}

// signed reads a signed number of up to 64 bits, as strict as u32: unused bits
// of the last byte repeat the sign.
func (r *reader) signed(bits int) int64 {
	r.last = r.pos
	var v int64
	shift := 0
	for ; bits-shift > 7; shift += 7 {
		c := r.next()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			return v << (57 - shift) >> (57 - shift)
		}
	}
	c := r.next()
	unused := int8(c<<1) >> (bits - shift) // sign-extended: the sign bit and those above it
	if c >= 0x80 || unused != 0 && unused != -1 {
		r.fail("a number does not fit %d bits", bits)
	}
	return v | int64(int8(c<<1)>>1)<<shift
}

// bytes reads n bytes, without copying them.
func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail("%d bytes, but %d bytes left", n, r.left())
		return nil
	}
	r.pos += int(n)
	return r.b[r.pos-int(n) : r.pos]
}

// name reads a name (section 5.2.4), without copying it.
func (r *reader) name() []byte {
	start := r.pos
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.last = start
		r.fail("name %.64q is not UTF-8", b)
	}
	return b
}

// vector reads the length of a vector. Each entry takes at least a byte, so a
// count over what is left is a lie and nothing may be made by it.
func (r *reader) vector(unit string) int {
	n := r.u32()
	if r.item == "" {
		r.entries = r.pos
	}
	if uint64(n) <= uint64(r.left()) {
		return int(n)
	}
	if r.item == "" {
		r.fail("count %d, but %d bytes left", n, r.left())
	} else {
		r.fail("%d %s, but %d bytes left", n, unit, r.left())
	}
	return 0
}

// vectorOf reads the length of a vector that has a budget.
func (r *reader) vectorOf(unit string, limit int) int {
	n := r.vector(unit)
	if r.atMost(uint64(n), limit, unit); r.err != nil {
		return 0
	}
	return n
}

// enter begins entry i of a vector, so that failures name it.
func (r *reader) enter(item string, i int) bool {
	r.item, r.index, r.inside = item, i, ""
	return r.err == nil
}

func (r *reader) valueType() ValueType {
	t := ValueType(r.byte())
	if !t.known() {
		r.unknownType("value type", byte(t))
	}
	return t
}

func (r *reader) referenceType() ValueType {
	t := ValueType(r.byte())
	if !t.reference() {
		r.unknownType("reference type", byte(t))
	}
	return t
}

// header reads magic and version (section 5.5.16).
func (r *reader) header() {
	const magic, version = "\x00asm", "\x01\x00\x00\x00"
	const componentLayer = "\x01\x00" // in the place of the version's upper half
	r.section = "header"
	if len(r.b) == 0 {
		r.fail("the file is empty")
		return
	}
	if head := r.b[:min(len(magic), len(r.b))]; string(head) != magic {
		r.fail("not a WebAssembly module: it starts with %q", head)
		return
	}
	r.pos = len(magic)
	r.last = r.pos
	v := r.bytes(4)
	switch {
	case r.err != nil || string(v) == version:
	case string(v[2:]) == componentLayer:
		r.fail("a component, not a core module: build for wasm32-wasip1 and leave out the step that makes a component")
	default:
		r.fail("version %d, only 1 is known", binary.LittleEndian.Uint32(v))
	}
}

// frame is a section with its header.
type frame struct {
	id    byte
	start int // of the header
	body  span
}

// frame reads a section's header and checks that the body is there. The reader
// stands at the body then.
func (r *reader) frame() frame {
	f := frame{start: r.pos}
	f.id = r.byte()
	r.section, r.item = sectionName(f.id), ""
	size := r.u32()
	f.body.start = r.pos
	r.bytes(size)
	f.body.end = r.pos
	if r.err == nil {
		r.pos = f.body.start
	}
	return f
}
