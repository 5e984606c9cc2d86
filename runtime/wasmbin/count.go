package wasmbin

// Fuel is counted in one global. A function with a loop counts in a local of its own
// instead, which an engine keeps in a register, where a global is written to memory and
// read back for each region. It takes the local from the global when it is entered and
// after each call, and puts it back before each call and at its end; what a trap leaves
// behind is what was there at the last of these.

// inGlobal stands for the index of a local where there is none.
const inGlobal = -1

// count puts the counting into the body that was walked.
func (r *rewriter) count(t *FuncType, locals int) {
	b := &r.body
	local := inGlobal
	var entry []byte
	if len(b.loops) > 0 {
		local = locals
		r.declare(b.declared)
		entry = append(entry, 1, byte(I64)) // the last declaration
	}
	r.edits[b.regions[0].edit].with = r.entry(entry, local, locals)
	for _, g := range b.regions {
		if g.plain && g.cost > 0 {
			r.edits[g.edit].with = r.set(r.less(nil, g.cost, local), local)
		}
	}
	if local != inGlobal || b.calls {
		r.wrap(t, local, locals)
	} else {
		for _, i := range b.returns {
			r.edits[i].with = []byte{opReturn}
		}
	}
	for _, i := range b.loops {
		g := b.regions[i]
		r.edits[g.edit].with = r.below(r.tee(r.less(nil, g.cost, local), local), local)
	}
	for _, l := range b.lengths {
		code := appendUint(append(r.give(nil, local), opCall), r.helper(l.helper))
		r.edits[l.edit].with = r.take(code, local)
	}
	for i := 0; i < len(b.around); i += 2 {
		r.edits[b.around[i]].with = r.give(nil, local)
		r.edits[b.around[i+1]].with = r.take(nil, local)
	}
}

// declare makes room for one more declaration of locals.
func (r *rewriter) declare(i int) {
	n := reader{b: r.edits[i].with}
	r.edits[i].with = appendUint(nil, int(n.u32())+1)
}

// entry charges what stands in no loop, takes from the stack if there are calls, and
// asks the host if there is too little of either.
func (r *rewriter) entry(code []byte, local, locals int) []byte {
	b := &r.body
	code = r.tee(subtracted(code, r.fuel(), int64(b.regions[0].cost)), local)
	if b.calls {
		code = setGlobal(subtracted(code, r.stack(), frameUnits(locals)), r.stack())
		code = append(getGlobal(code, r.stack()), opI64Or)
	}
	return r.below(code, local)
}

func frameUnits(locals int) int64 { return int64(locals) + FrameUnits }

// wrap puts the body into a block, behind which the stack is given back and the
// fuel in the local.
func (r *rewriter) wrap(t *FuncType, local, locals int) {
	b := &r.body
	entry := &r.edits[b.regions[0].edit]
	entry.with = append(append(entry.with, opBlock), r.blockType(t.Results)...)
	exit := r.give([]byte{opEnd}, local)
	if b.calls {
		exit = setGlobal(subtracted(exit, r.stack(), -frameUnits(locals)), r.stack())
	}
	r.edits[b.exit].with = exit
}

// blockType is the type of a block with these results.
func (r *rewriter) blockType(results []ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{emptyBlock}
	case 1:
		return []byte{byte(results[0])}
	}
	return appendInt(nil, int64(r.addType(nil, results)))
}

// less leaves the fuel less some units.
func (r *rewriter) less(code []byte, units uint64, local int) []byte {
	if local == inGlobal {
		return subtracted(code, r.fuel(), int64(units))
	}
	code = appendUint(append(code, opLocalGet), local)
	return append(appendInt(append(code, opI64Const), int64(units)), opI64Sub)
}

// set makes what lies on top of the operands the fuel, tee leaves it there as well.
func (r *rewriter) set(code []byte, local int) []byte {
	if local == inGlobal {
		return setGlobal(code, r.fuel())
	}
	return appendUint(append(code, opLocalSet), local)
}

func (r *rewriter) tee(code []byte, local int) []byte {
	if local == inGlobal {
		return getGlobal(setGlobal(code, r.fuel()), r.fuel())
	}
	return appendUint(append(code, opLocalTee), local)
}

// below asks the host if what lies on top of the operands is below zero, and takes
// it away. The usual way stands first: where ways meet, the engine (v1.12.0) keeps in
// registers what the first has there, and behind a call that is nothing.
func (r *rewriter) below(code []byte, local int) []byte {
	code = append(code, opI64Const, 0, opI64GeS, opIf, emptyBlock, opElse)
	if local == inGlobal {
		code = appendUint(append(code, opCall), r.helper(refuel))
		return append(code, opEnd)
	}
	code = appendUint(append(code, opLocalGet), local)
	code = appendUint(append(code, opCall), r.helper(refill))
	return append(appendUint(append(code, opLocalSet), local), opEnd)
}

// give puts the fuel of the local into the global, take fetches it back.
func (r *rewriter) give(code []byte, local int) []byte {
	if local == inGlobal {
		return code
	}
	return setGlobal(appendUint(append(code, opLocalGet), local), r.fuel())
}

func (r *rewriter) take(code []byte, local int) []byte {
	if local == inGlobal {
		return code
	}
	return appendUint(append(getGlobal(code, r.fuel()), opLocalSet), local)
}

// subtracted leaves what a global has, less some units.
func subtracted(code []byte, global int, units int64) []byte {
	code = appendInt(append(getGlobal(code, global), opI64Const), units)
	return append(code, opI64Sub)
}

func getGlobal(code []byte, global int) []byte { return appendUint(append(code, opGlobalGet), global) }

func setGlobal(code []byte, global int) []byte { return appendUint(append(code, opGlobalSet), global) }
