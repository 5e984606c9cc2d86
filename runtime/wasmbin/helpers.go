package wasmbin

// The globals that are added.

func (r *rewriter) fuel() int  { return r.module.Globals }
func (r *rewriter) stack() int { return r.module.Globals + 1 }

// prepare adds what does not depend on what the module does: the globals and the
// import. There is no fuel at first, so the host is asked before anything runs.
func (r *rewriter) prepare(stackUnits int64) {
	for _, value := range []int64{0, stackUnits} {
		r.add(globalID, []byte{byte(I64), 1, opI64Const}, appendInt(nil, value), []byte{opEnd})
	}
	meter := MeterType()
	r.add(importID, nameBytes(MeterModule), nameBytes(MeterFunction), []byte{byte(Function)}, appendUint(nil, r.addType(meter.Params, meter.Results)))
}

// helper is a function that is added, behind all others.
type helper int

const (
	refuel        helper = iota // () -> (): asks the host for fuel
	refill                      // (i64) -> (i64): the same, of what a local holds
	chargeEntries               // each charges by a length and returns it: of a table
	chargePages                 // of memory
	fillMemory                  // (i32, i32, i32) -> (i32, i32, i32): each charges for an
	copyMemory                  // instruction on memory by its length, does all of it but for
	initMemory                  // at most a chunk, and returns what is left to be done
	fillChunks                  // the same, of what is longer than a chunk
	copyChunks
	touchChunks
)

func (r *rewriter) helper(h helper) int { return int(r.imports) + 1 + r.module.Functions + int(h) }

// How many bytes are one unit, how many entries, and how many units is a page, as
// powers of two. Requests to grow by more than there can be are answered at once,
// and charged as if for all there can be.
const (
	bytesUnit   = 6
	entriesUnit = 3
	pageUnits   = 6
	mostPages   = maxPages
)

// chunk is how many bytes of memory are worked on at a time. Nothing interrupts that,
// and where the system has yet to find the pages it takes half a millisecond or more.
const chunk = 1 << 20

// touched is how far apart bytes may be for the system to find all pages of memory:
// its smallest page.
const touched = 4 << 10

func (r *rewriter) addHelpers() {
	fuel := appendUint(nil, r.fuel())
	ask := appendUint([]byte{opGlobalGet}, r.stack())
	ask = appendUint(append(ask, opCall), int(r.imports))
	globally := append(append([]byte{0, opGlobalGet}, fuel...), ask...)
	r.addFunction(nil, nil, append(append(globally, opGlobalSet), fuel...))
	r.addFunction([]ValueType{I64}, []ValueType{I64}, append([]byte{0, opLocalGet, 0}, ask...))
	length := []ValueType{I32}
	r.addFunction(length, length, r.byLength(mostPages, opI64ShrU, entriesUnit))
	r.addFunction(length, length, r.byLength(mostPages, opI64Shl, pageUnits))
	if r.module.Memory != nil {
		r.addMemoryHelpers()
	}
}

// byLength is the body of a function that charges its argument, or most if it is
// more, shifted by so many bits, and returns it.
func (r *rewriter) byLength(most uint32, shift byte, bits int64) []byte {
	code := appendUint([]byte{0, opGlobalGet}, r.fuel())
	limit := appendInt([]byte{opI32Const}, int64(int32(most)))
	code = append(append(code, opLocalGet, 0), limit...)
	code = append(append(code, opLocalGet, 0), limit...)
	code = append(code, opI32LtU, opSelect, opI64ExtendI32U)
	return append(r.chargeShifted(code, shift, bits), opLocalGet, 0)
}

// chargeShifted charges the i64 on top of the operands, shifted by so many bits. The
// fuel lies below it.
func (r *rewriter) chargeShifted(code []byte, shift byte, bits int64) []byte {
	code = r.tee(append(appendInt(append(code, opI64Const), bits), shift, opI64Sub), inGlobal)
	return r.below(code, inGlobal)
}

// Operands of instructions on ranges of memory. What they are called is what they are
// to memory.copy.
const (
	opTo = iota
	opFrom
	opLength
	opLeft // of touchChunks: what is left of the length
	opPage // of touchChunks: what is left of a chunk
)

// addMemoryHelpers adds what goes before instructions on memory. All of the length is
// charged at first, as if the instruction were done at once. Of what is longer than a
// chunk, and lies in memory, all chunks but the last are done, and the host is asked
// after each. What does not lie there is left to the instruction, which traps before it
// writes. The usual way is in a function of its own, which needs no room on the stack.
func (r *rewriter) addMemoryHelpers() {
	operands := []ValueType{I32, I32, I32}
	for _, h := range []helper{fillChunks, copyChunks, touchChunks} {
		r.addFunction(operands, operands, r.byRange(h))
	}
	for _, code := range [][]byte{r.filling(), r.copying(), r.touching()} {
		r.addFunction(operands, operands, getOperands(append(code, opEnd)))
	}
}

// byRange is the body of a function that charges its last argument, a length, and
// returns all three of them; if it is more than a chunk, what a helper makes of them.
func (r *rewriter) byRange(h helper) []byte {
	code := append(getGlobal([]byte{0}, r.fuel()), opLocalGet, opLength, opI64ExtendI32U)
	code = r.chargeShifted(code, opI64ShrU, bytesUnit)
	code = append(appendInt(append(code, opLocalGet, opLength, opI32Const), chunk), opI32LeU, opIf)
	code = append(code, r.blockType([]ValueType{I32, I32, I32})...)
	code = append(getOperands(code), opElse)
	code = appendUint(append(getOperands(code), opCall), r.helper(h))
	return append(code, opEnd)
}

func getOperands(code []byte) []byte {
	return append(code, opLocalGet, opTo, opLocalGet, opFrom, opLocalGet, opLength)
}

// filling fills from the end on.
func (r *rewriter) filling() []byte {
	code := append(inMemory([]byte{0}, opTo), opIf, emptyBlock, opLoop, emptyBlock)
	code = lessChunk(code, opLength)
	code = append(code, opLocalGet, opTo, opLocalGet, opLength, opI32Add, opLocalGet, opFrom)
	code = append(appendInt(append(code, opI32Const), chunk), opBulk, opMemoryFill, 0)
	return r.askAndRepeat(code, opLength)
}

// copying copies from the end on where ranges that overlap need that, else from the
// beginning.
func (r *rewriter) copying() []byte {
	move := append(appendInt([]byte{opI32Const}, chunk), opBulk, opMemoryCopy, 0, 0)
	code := append(inMemory(inMemory([]byte{0}, opTo), opFrom), opI32And, opIf, emptyBlock)
	code = append(code, opLocalGet, opFrom, opLocalGet, opTo, opI32LtU, opIf, emptyBlock, opLoop, emptyBlock)
	code = lessChunk(code, opLength)
	for _, at := range []byte{opTo, opFrom} {
		code = append(code, opLocalGet, at, opLocalGet, opLength, opI32Add)
	}
	code = append(r.askAndRepeat(append(code, move...), opLength), opElse, opLoop, emptyBlock)
	code = append(append(code, opLocalGet, opTo, opLocalGet, opFrom), move...)
	code = lessChunk(code, opLength)
	for _, at := range []byte{opTo, opFrom} {
		code = append(appendInt(append(code, opLocalGet, at, opI32Const), chunk), opI32Add, opLocalSet, at)
	}
	return append(r.askAndRepeat(code, opLength), opEnd)
}

// touching writes to each page of a range what it holds, so that memory.init, which
// names a segment and is no longer than the module's file, has nothing to do but to
// copy.
func (r *rewriter) touching() []byte {
	code := []byte{1, 2, byte(I32), opLocalGet, opLength, opLocalSet, opLeft}
	code = append(inMemory(code, opTo), opIf, emptyBlock, opLoop, emptyBlock)
	code = lessChunk(code, opLeft)
	code = append(appendInt(append(code, opI32Const), chunk), opLocalSet, opPage, opLoop, emptyBlock)
	code = append(appendInt(append(code, opLocalGet, opPage, opI32Const), touched), opI32Sub, opLocalSet, opPage)
	for range 2 {
		code = append(code, opLocalGet, opTo, opLocalGet, opLeft, opI32Add, opLocalGet, opPage, opI32Add)
	}
	code = append(code, opI32Load8U, 0, 0, opI32Store8, 0, 0, opLocalGet, opPage, opBranchIf, 0, opEnd)
	return r.askAndRepeat(code, opLeft)
}

// inMemory leaves whether the length from an operand on lies in memory.
func inMemory(code []byte, from byte) []byte {
	code = append(code, opLocalGet, from, opI64ExtendI32U, opLocalGet, opLength, opI64ExtendI32U, opI64Add)
	return append(code, opMemorySize, 0, opI64ExtendI32U, opI64Const, pageBits, opI64Shl, opI64LeU)
}

// lessChunk takes a chunk from a local.
func lessChunk(code []byte, local byte) []byte {
	return append(appendInt(append(code, opLocalGet, local, opI32Const), chunk), opI32Sub, opLocalSet, local)
}

// askAndRepeat asks the host and begins the loop again while a local is more than a
// chunk; then the loop ends.
func (r *rewriter) askAndRepeat(code []byte, local byte) []byte {
	code = appendUint(append(code, opCall), r.helper(refuel))
	code = appendInt(append(code, opLocalGet, local, opI32Const), chunk)
	return append(code, opI32GtU, opBranchIf, 0, opEnd)
}

func (r *rewriter) addFunction(params, results []ValueType, code []byte) {
	r.add(functionID, appendUint(nil, r.addType(params, results)))
	r.add(codeID, appendUint(nil, len(code)+1), code, []byte{opEnd})
}

// Opcodes that are written.
const (
	opBlock         = 0x02
	opLoop          = 0x03
	opIf            = 0x04
	opElse          = 0x05
	opBranch        = 0x0c
	opBranchIf      = 0x0d
	opReturn        = 0x0f
	opCall          = 0x10
	opSelect        = 0x1b
	opLocalGet      = 0x20
	opLocalSet      = 0x21
	opLocalTee      = 0x22
	opGlobalGet     = 0x23
	opGlobalSet     = 0x24
	opI32Load8U     = 0x2d
	opI32Store8     = 0x3a
	opMemorySize    = 0x3f
	opI64Const      = 0x42
	opI32LtU        = 0x49
	opI32GtU        = 0x4b
	opI32LeU        = 0x4d
	opI64LeU        = 0x58
	opI64GeS        = 0x59
	opI32Add        = 0x6a
	opI32Sub        = 0x6b
	opI32And        = 0x71
	opI64Add        = 0x7c
	opI64Sub        = 0x7d
	opI64Or         = 0x84
	opI64Shl        = 0x86
	opI64ShrU       = 0x88
	opI64ExtendI32U = 0xad
	opBulk          = 0xfc // before one of those that follow
	opMemoryCopy    = 0x0a
	opMemoryFill    = 0x0b
	emptyBlock      = 0x40
	pageBits        = 16
)
