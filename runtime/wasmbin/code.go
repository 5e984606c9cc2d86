package wasmbin

// The opcodes of constant expressions (core specification, section 3.3.10.2).
const (
	opEnd       = 0x0b
	opGlobalGet = 0x23
	opI32Const  = 0x41
	opI64Const  = 0x42
	opF32Const  = 0x43
	opF64Const  = 0x44
	opRefNull   = 0xd0
	opRefFunc   = 0xd2
	opVector    = 0xfd
	opV128Const = 0x0c // after opVector
)

// constant reads a constant expression: one of the few instructions that may
// stand there, and the end. It may name the first globals globals.
func (w *walker) constant(globals int) {
	switch op := w.byte(); op {
	case opI32Const:
		w.skipSigned(32)
	case opI64Const:
		w.skipSigned(64)
	case opF32Const:
		w.bytes(4)
	case opF64Const:
		w.bytes(8)
	case opGlobalGet:
		w.below(w.u32(), globals, "global")
	case opRefNull:
		w.referenceType()
	case opRefFunc:
		w.below(w.u32(), w.functions(), "function")
	case opVector:
		w.vectorConstant()
	default:
		w.fail("opcode %#02x cannot stand in a constant expression", op)
	}
	if w.byte() != opEnd {
		w.fail("a constant expression of more than one instruction")
	}
}

func (w *walker) vectorConstant() {
	if op := w.u32(); op != opV128Const {
		w.fail("opcode %#02x %d cannot stand in a constant expression", opVector, op)
	}
	w.bytes(16)
}

// codeSection: vec(size:u32 vec(local) expr), section 5.5.13.
func (w *walker) codeSection() {
	w.bodies = w.vectorOf("bodies", w.budget.Functions)
	w.sameBodies()
	for i := 0; i < w.bodies && w.enter("function", len(w.Imports)+i); i++ {
		w.body(len(w.types[w.funcs[i]].Params))
	}
}

// body reads one function's locals and code, which use up its bytes exactly.
func (w *walker) body(params int) {
	size := w.u32()
	start := w.pos
	w.bytes(size)
	if w.atMost(uint64(size), w.budget.BodyBytes, "bytes of code"); w.err != nil {
		return
	}
	section := w.b
	w.b, w.pos = section[:w.pos], start
	w.declarations(params)
	w.instructions()
	w.b = section
}

// declarations: vec(n:u32 valtype), each declares n locals. Few bytes can
// declare 2^32 of them, so it is the sum that counts.
func (w *walker) declarations(params int) {
	start := w.pos
	total := uint64(params)
	for n := w.vector("declarations of locals"); n > 0 && w.err == nil; n-- {
		total += uint64(w.u32())
		w.valueType()
	}
	w.last = start
	w.atMost(total, w.budget.Locals, "locals")
	w.locals += total
	w.atMost(w.locals, w.budget.ModuleLocals, "locals in the module")
}

// instructions passes over a body's code, which must be there and end as every
// expression does.
func (w *walker) instructions() {
	if w.left() == 0 {
		w.last = w.pos
		w.fail("ends before its code")
	}
	w.last = len(w.b) - 1
	if w.b[w.last] != opEnd {
		w.fail("does not end with the opcode end")
	}
	w.pos = len(w.b)
}
