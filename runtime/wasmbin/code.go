package wasmbin

// constant reads a constant expression (core specification, section 3.3.10):
// one of the few instructions that may stand there, and the end. It may name
// the first globals globals. It returns the number, if it is an i32.const.
func (w *walker) constant(globals int) (value uint32, known bool) {
	w.globals = globals
	in := w.opcode()
	if !in.constant {
		w.fail("cannot stand in a constant expression")
	}
	value = w.immediates(in)
	w.inside = ""
	if w.byte() != opEnd {
		w.fail("a constant expression of more than one instruction: %s not allowed", extendedConstants)
	}
	return value, in == &opcodes[opI32Const]
}

// codeSection: vec(size:u32 vec(local) expr), section 5.5.13.
func (w *walker) codeSection() {
	w.bodies = w.vectorOf("bodies", w.budget.Functions)
	w.sameBodies()
	w.globals = w.Globals
	for i := 0; i < w.bodies && w.enter("function", len(w.Imports)+i); i++ {
		w.body(&w.types[w.funcs[i]])
	}
}

// body reads the locals and the code of one function, which use up its bytes
// exactly.
func (w *walker) body(t *FuncType) {
	size := w.u32()
	start := w.pos
	w.bytes(size)
	if w.atMost(uint64(size), w.budget.BodyBytes, "bytes of code"); w.err != nil {
		return
	}
	section := w.b
	w.b, w.pos = section[:w.pos], start
	locals := w.declarations(len(t.Params))
	w.function = function{locals: locals, open: append(w.function.open[:0], block{plainBlock, len(t.Results)})}
	if w.rewriting != nil && w.err == nil {
		w.rewriting.enter(start, w.pos)
	}
	w.instructions()
	if w.rewriting != nil && w.err == nil {
		w.rewriting.leave(w, t, locals, span{start, w.pos})
	}
	w.b = section
}

// declarations: vec(n:u32 valtype), each declares n locals. Few bytes can
// declare 2^32 of them, so it is the sum that counts, parameters included.
func (w *walker) declarations(params int) (locals int) {
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
	return int(total)
}

// instructions reads a body's code up to the end that belongs to the body, and
// nothing may follow that.
func (w *walker) instructions() {
	for len(w.function.open) > 0 && w.err == nil {
		w.instruction()
	}
	w.inside = ""
	w.last = w.pos
	if w.left() > 0 {
		w.fail("%d bytes behind its end", w.left())
	}
}
