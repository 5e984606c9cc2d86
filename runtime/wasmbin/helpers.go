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
	chargeBytes                 // each charges by a length and returns it
	chargeEntries               // of a table
	chargePages                 // of memory
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

func (r *rewriter) addHelpers() {
	fuel := appendUint(nil, r.fuel())
	ask := appendUint([]byte{opGlobalGet}, r.stack())
	ask = appendUint(append(ask, opCall), int(r.imports))
	globally := append(append([]byte{0, opGlobalGet}, fuel...), ask...)
	r.addFunction(nil, nil, append(append(globally, opGlobalSet), fuel...))
	r.addFunction([]ValueType{I64}, []ValueType{I64}, append([]byte{0, opLocalGet, 0}, ask...))
	length := []ValueType{I32}
	r.addFunction(length, length, r.byLength(1<<32-1, opI64ShrU, bytesUnit))
	r.addFunction(length, length, r.byLength(mostPages, opI64ShrU, entriesUnit))
	r.addFunction(length, length, r.byLength(mostPages, opI64Shl, pageUnits))
}

// byLength is the body of a function that charges its argument, or most if it is
// more, shifted by so many bits, and returns it.
func (r *rewriter) byLength(most uint32, shift byte, bits int64) []byte {
	code := appendUint([]byte{0, opGlobalGet}, r.fuel())
	if most < 1<<32-1 {
		limit := appendInt([]byte{opI32Const}, int64(int32(most)))
		code = append(append(code, opLocalGet, 0), limit...)
		code = append(append(code, opLocalGet, 0), limit...)
		code = append(code, opI32LtU, opSelect)
	} else {
		code = append(code, opLocalGet, 0)
	}
	code = appendInt(append(code, opI64ExtendI32U, opI64Const), bits)
	code = r.tee(append(code, shift, opI64Sub), inGlobal)
	return append(r.below(code, inGlobal), opLocalGet, 0)
}

func (r *rewriter) addFunction(params, results []ValueType, code []byte) {
	r.add(functionID, appendUint(nil, r.addType(params, results)))
	r.add(codeID, appendUint(nil, len(code)+1), code, []byte{opEnd})
}

// Opcodes that are written.
const (
	opBlock         = 0x02
	opIf            = 0x04
	opElse          = 0x05
	opBranch        = 0x0c
	opReturn        = 0x0f
	opCall          = 0x10
	opSelect        = 0x1b
	opLocalGet      = 0x20
	opLocalSet      = 0x21
	opLocalTee      = 0x22
	opGlobalGet     = 0x23
	opGlobalSet     = 0x24
	opI64Const      = 0x42
	opI32LtU        = 0x49
	opI64GeS        = 0x59
	opI64Sub        = 0x7d
	opI64Or         = 0x84
	opI64Shl        = 0x86
	opI64ShrU       = 0x88
	opI64ExtendI32U = 0xad
	emptyBlock      = 0x40
)
