package wasmbin

// elementSection: vec(elem), section 5.5.12.
func (w *walker) elementSection() {
	w.ElementSegments = w.vectorOf("segments", w.budget.Segments)
	for i := 0; i < w.ElementSegments && w.enter("segment", i); i++ {
		w.element()
	}
}

// element reads a segment in one of eight forms, which three bits span: 1 is
// passive or declarative, 2 has a table index (declarative, if with 1), 4 has
// expressions in place of function indices.
func (w *walker) element() {
	form := w.u32()
	if form > 7 {
		w.fail("unknown form %d", form)
	}
	if form&1 == 0 {
		var table uint32
		if form&2 != 0 {
			table = w.u32()
		}
		w.below(table, w.Tables, "table")
		w.constant(w.Globals)
	}
	expressions := form&4 != 0
	if form&3 != 0 {
		w.elementKind(expressions)
	}
	for n := w.vector("entries"); n > 0 && w.err == nil; n-- {
		if expressions {
			w.constant(w.Globals)
		} else {
			w.functionIndex()
		}
	}
}

func (w *walker) elementKind(expressions bool) {
	if expressions {
		w.referenceType()
	} else if kind := w.byte(); kind != 0 {
		w.fail("unknown element kind %#02x", kind)
	}
}

// dataCountSection: u32, section 5.5.16. It counts what comes in a later
// section, so it is held against the rest of the file.
func (w *walker) dataCountSection() {
	n := w.u32()
	if rest := len(w.raw) - len(w.b); uint64(n) > uint64(rest) {
		w.fail("count %d, but %d bytes left in the file", n, rest)
	}
	w.segments(int64(n))
	w.dataCount = int(n)
}

// dataSection: vec(data), section 5.5.14.
func (w *walker) dataSection() {
	w.DataSegments = w.vector("segments")
	w.segments(int64(w.DataSegments))
	w.sameSegments()
	for i := 0; i < w.DataSegments && w.enter("segment", i); i++ {
		w.data()
	}
}

// segments holds n data segments, and the element segments, against the budget.
func (w *walker) segments(n int64) {
	w.atMost(uint64(n)+uint64(w.ElementSegments), w.budget.Segments, "segments")
}

// data reads a segment: 0 is active in memory 0, 1 passive, 2 active with the
// memory's index.
func (w *walker) data() {
	form := w.u32()
	if form > 2 {
		w.fail("unknown form %d", form)
	}
	var offset uint32
	var known bool
	if form != 1 {
		var memory uint32
		if form == 2 {
			memory = w.u32()
		}
		w.below(memory, w.memories(), "memory")
		offset, known = w.constant(w.Globals)
	}
	content := w.bytes(w.u32())
	if w.rewriting != nil && w.err == nil {
		w.rewriting.segment(segment{offset, known, content})
	}
}
