package wasmbin

import "encoding/binary"

// rewriter sees a module while it is walked, and keeps what becomes of it.
type rewriter struct {
	raw     []byte
	module  *Module // what is being rewritten
	imports uint32
	out     Rewritten

	// edits are to be made in the section, or in the body, that is being walked.
	edits []edit
	body  metered
	// bodies are all bodies so far, with their sizes.
	bodies []byte
	// scratch is one body.
	scratch []byte

	// sections are those that are done, entries only; added stands behind them,
	// more is how many entries that is.
	sections [sectionIDs][]byte
	added    [sectionIDs][]byte
	more     [sectionIDs]int
	types    map[string]int // that were added, by what they are

	data         []segment
	segmentCount int
	dataCount    bool // there was such a section
	usesData     bool // code names data segments
}

// edit replaces what is at a span, which is empty where something is inserted.
// Edits are kept in the order of the file.
type edit struct {
	at   span
	with []byte
}

func (r *rewriter) edit(at span, with []byte) { r.edits = append(r.edits, edit{at, with}) }

// insert keeps a place for what becomes known later, and returns its number.
func (r *rewriter) insert(at int) int {
	r.edit(span{at, at}, nil)
	return len(r.edits) - 1
}

// apply appends what is at s to b, with all edits made.
func (r *rewriter) apply(b []byte, s span) []byte {
	at := s.start
	for _, e := range r.edits {
		b = append(b, r.raw[at:e.at.start]...)
		b = append(b, e.with...)
		at = e.at.end
	}
	r.edits = r.edits[:0]
	return append(b, r.raw[at:s.end]...)
}

// function numbers one anew that stands behind the added import.
func (r *rewriter) function(at span, index uint32) {
	if index >= r.imports {
		r.edit(at, appendUint(nil, int(index)+1))
	}
}

// table gives a table a maximum, since the engine has none of its own.
func (r *rewriter) table(at span, l Limits, most int) {
	limit := uint64(most)
	if l.HasMax {
		limit = min(limit, uint64(l.Max))
	}
	b := binary.AppendUvarint([]byte{1}, uint64(l.Min))
	r.edit(at, binary.AppendUvarint(b, max(limit, uint64(l.Min))))
}

func (r *rewriter) mutable(index int, t ValueType) {
	r.out.Mutable = append(r.out.Mutable, MutableGlobal{index, t})
}

func (r *rewriter) changeTable(*walker, span, uint32) { r.out.ChangesTables = true }

func (r *rewriter) fillMemory(_ *walker, at span, _ uint32) { r.bulk(at, fillMemory) }

func (r *rewriter) copyMemory(_ *walker, at span, _ uint32) { r.bulk(at, copyMemory) }

func (r *rewriter) initMemory(_ *walker, at span, _ uint32) {
	r.usesData = true
	r.bulk(at, initMemory)
}

func (r *rewriter) dropData(*walker, span, uint32) { r.out.DropsData, r.usesData = true, true }

// segment is a data segment.
type segment struct {
	offset uint32
	active bool // at an offset that is known
	bytes  []byte
}

func (r *rewriter) segment(s segment) { r.data = append(r.data, s) }

// segments returns the entries of the data section, those at s, merged if that
// changes nothing: they are in order, within the memory, and no code names one. They
// stay as they are if mostly zeros would be written.
func (r *rewriter) segments(s span) []byte {
	r.segmentCount = len(r.data)
	if !r.mergeable() || mergedBytes(r.data) > mostMerged*uint64(s.end-s.start) {
		return r.apply(nil, s)
	}
	r.edits = r.edits[:0]
	out := make([]byte, 0, s.end-s.start)
	r.segmentCount = 0
	for rest := r.data; len(rest) > 0; {
		n, end := run(rest)
		out = appendRun(out, rest[:n], end)
		rest = rest[n:]
		r.segmentCount++
	}
	return out
}

func (r *rewriter) mergeable() bool {
	if r.usesData || r.module.Memory == nil {
		return false
	}
	end := uint64(0)
	for _, s := range r.data {
		if !s.active || uint64(s.offset) < end {
			return false
		}
		end = uint64(s.offset) + uint64(len(s.bytes))
	}
	return end <= uint64(r.module.Memory.Min)*pageBytes
}

// mostGap is how many zeros are written to save a segment.
const mostGap = 256

// mostMerged is how many times as large segments may become by being merged. Those of
// Go grow by an eighth; bytes that each stand alone would grow 30 times.
const mostMerged = 2

// mergedBytes is how many bytes merged segments hold.
func mergedBytes(all []segment) (total uint64) {
	for len(all) > 0 {
		n, end := run(all)
		total += end - uint64(all[0].offset)
		all = all[n:]
	}
	return total
}

// run returns how many segments make one, and where that ends.
func run(all []segment) (n int, end uint64) {
	for n = 1; ; n++ {
		end = uint64(all[n-1].offset) + uint64(len(all[n-1].bytes))
		if n == len(all) || uint64(all[n].offset)-end >= mostGap {
			return n, end
		}
	}
}

func appendRun(b []byte, all []segment, end uint64) []byte {
	start := all[0].offset
	b = append(b, 0, opI32Const)
	b = append(appendInt(b, int64(int32(start))), opEnd)
	b = appendUint(b, int(end-uint64(start)))
	at := uint64(start)
	for _, s := range all {
		b = append(b, make([]byte, uint64(s.offset)-at)...)
		b = append(b, s.bytes...)
		at = uint64(s.offset) + uint64(len(s.bytes))
	}
	return b
}
