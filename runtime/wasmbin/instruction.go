package wasmbin

// instruction is a row of the opcode tables: what is known of an opcode
// wherever it stands.
type instruction struct {
	name string // empty: there is no such opcode
	// first and second say what follows the opcode, in that order.
	first, second immediate
	// width is the number of bytes it accesses in memory, or those of a lane,
	// as a power of two.
	width uint8
	// constant says that it may stand in a constant expression.
	constant bool
	// proposal is what the opcode belongs to, if that is not allowed.
	proposal proposal
	// effect is what it does to the body it stands in, given its first
	// immediate; nil is nothing.
	effect func(*walker, uint32)
	// free says that it costs no fuel, since it only says where something begins or
	// ends.
	free bool
	// meter is what it needs besides its share of fuel when a module is
	// rewritten; nil is nothing.
	meter func(*rewriter, *walker, span, uint32)
}

// Opcodes that need more than a row.
const (
	opEnd      = 0x0b
	opI32Const = 0x41
	opMisc     = 0xfc // prefix of those in miscOpcodes
	opVector   = 0xfd // prefix of those in vectorOpcodes
)

// instruction reads one instruction of a body and does what it does. It is the
// only place where opcode, offset and immediates of all instructions pass.
func (w *walker) instruction() {
	start := w.pos
	in := w.opcode()
	index := w.immediates(in)
	if w.rewriting != nil && w.err == nil {
		w.rewriting.instruction(w, in, span{start, w.pos}, index)
	}
	if in.effect != nil && w.err == nil {
		w.last = start
		in.effect(w, index)
	}
}

// opcode reads an opcode and refuses what is not of WebAssembly 2.0. Failures
// name the instruction from here on.
func (w *walker) opcode() *instruction {
	w.inside = ""
	start := w.pos
	code := w.byte()
	in := &opcodes[code]
	if in.name == "" {
		in = w.prefixed(code)
	}
	w.inside = in.name
	if in.proposal != inStandard {
		w.last = start
		w.fail("%s not allowed", in.proposal)
	}
	return in
}

// prefixed reads the rest of an opcode that has a table of its own.
func (w *walker) prefixed(prefix byte) *instruction {
	var table []instruction
	switch prefix {
	case opMisc:
		table = miscOpcodes[:]
	case opVector:
		table = vectorOpcodes[:]
	default:
		w.fail("unknown opcode %#02x", prefix)
		return &instruction{}
	}
	start := w.last
	code := w.u32()
	size := w.pos - start - 1
	w.last = start
	if uint64(code) >= uint64(len(table)) || table[code].name == "" {
		w.fail("unknown opcode %#02x %d", prefix, code)
		return &instruction{}
	}
	if prefix == opVector && size != vectorOpcodeSize(code) {
		w.fail("opcode %#02x %d in %d bytes, where the engine reads %d", prefix, code, size, vectorOpcodeSize(code))
	}
	return &table[code]
}

// vectorOpcodeSize returns how many bytes the number of a vector opcode has.
// The specification allows more, as for any number; but the engine takes the
// first byte for the opcode, and what follows for instructions that nobody has
// looked at.
func vectorOpcodeSize(code uint32) int {
	if code < 0x80 {
		return 1
	}
	return 2
}

// immediates reads what follows an opcode. It returns the first of them, if
// that is an index or a number of 32 bits.
func (w *walker) immediates(in *instruction) (index uint32) {
	if in.first != nothing {
		index = immediates[in.first](w, in)
	}
	if in.second != nothing {
		immediates[in.second](w, in)
	}
	return index
}
