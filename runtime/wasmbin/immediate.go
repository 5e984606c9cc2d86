package wasmbin

// immediate is a kind of what can follow an opcode (core specification,
// section 5.4).
type immediate uint8

const (
	nothing immediate = iota
	labelIndex
	labelIndices // of br_table
	functionIndex
	typeIndex
	localIndex
	globalIndex
	tableIndex
	memoryIndex
	elementIndex
	dataIndex
	laneIndex
	laneIndices // of i8x16.shuffle
	memoryArgument
	blockType
	resultTypes // of select
	heapType
	i32Value
	i64Value
	f32Value
	f64Value
	v128Value
)

// What block types return that are no index of a type.
const (
	noValues  uint32 = 1<<32 - 1
	oneResult uint32 = 1<<32 - 2
)

// immediates read each kind and hold it against the module. They return what
// they read if it is one index, or a number of 32 bits.
var immediates = [...]func(*walker, *instruction) uint32{
	labelIndex:     func(w *walker, _ *instruction) uint32 { return w.label() },
	labelIndices:   (*walker).labelIndices,
	functionIndex:  func(w *walker, _ *instruction) uint32 { return w.functionIndex() },
	typeIndex:      func(w *walker, _ *instruction) uint32 { return w.indexOf("type", w.Types) },
	localIndex:     func(w *walker, _ *instruction) uint32 { return w.indexOf("local", w.function.locals) },
	globalIndex:    func(w *walker, _ *instruction) uint32 { return w.indexOf("global", w.globals) },
	tableIndex:     func(w *walker, _ *instruction) uint32 { return w.indexOf("table", w.Tables) },
	memoryIndex:    (*walker).memoryIndex,
	elementIndex:   func(w *walker, _ *instruction) uint32 { return w.indexOf("element segment", w.ElementSegments) },
	dataIndex:      (*walker).dataIndex,
	laneIndex:      (*walker).laneIndex,
	laneIndices:    (*walker).laneIndices,
	memoryArgument: (*walker).memoryArgument,
	blockType:      (*walker).blockType,
	resultTypes:    (*walker).resultTypes,
	heapType:       (*walker).heapType,
	i32Value:       func(w *walker, _ *instruction) uint32 { return uint32(w.signed(32)) },
	i64Value:       func(w *walker, _ *instruction) uint32 { w.signed(64); return 0 },
	f32Value:       func(w *walker, _ *instruction) uint32 { w.bytes(4); return 0 },
	f64Value:       func(w *walker, _ *instruction) uint32 { w.bytes(8); return 0 },
	v128Value:      func(w *walker, _ *instruction) uint32 { w.bytes(16); return 0 },
}

// indexOf reads an index of one of count things.
func (w *walker) indexOf(kind string, count int) uint32 {
	index := w.u32()
	w.below(index, count, kind)
	return index
}

// label reads the index of a block, counted from the innermost one.
func (w *walker) label() uint32 {
	label := w.indexOf("label", len(w.function.open))
	if w.rewriting != nil && w.err == nil {
		w.rewriting.label(w, label)
	}
	return label
}

// labelIndices: vec(labelidx) labelidx, the last one being the default.
func (w *walker) labelIndices(*instruction) uint32 {
	n := w.vector("targets")
	w.function.targets += n
	w.atMost(uint64(w.function.targets), w.budget.BranchTargets, "targets in the function")
	for ; n >= 0 && w.err == nil; n-- {
		w.branch(w.label())
	}
	return 0
}

// memoryIndex reads what is a zero byte as long as there is one memory.
func (w *walker) memoryIndex(*instruction) uint32 {
	if w.byte() != 0 {
		w.fail("%s not allowed", multiMemory)
	}
	w.below(0, w.memories(), "memory")
	return 0
}

// dataIndex reads the index of a data segment. Those come after the code, so it
// is the data count section that says how many there are.
func (w *walker) dataIndex(*instruction) uint32 {
	index := w.u32()
	if w.dataCount < 0 {
		w.fail("names a data segment, but there is no data count section")
	}
	w.below(index, w.dataCount, "data segment")
	return index
}

// laneIndex: a byte, for a lane of 16 bytes.
func (w *walker) laneIndex(in *instruction) uint32 {
	index := uint32(w.byte())
	w.below(index, 16>>in.width, "lane")
	return index
}

// laneIndices: 16 bytes, each for a lane of two vectors.
func (w *walker) laneIndices(*instruction) uint32 {
	for i := 0; i < 16 && w.err == nil; i++ {
		w.below(uint32(w.byte()), 32, "lane")
	}
	return 0
}

// memoryArgument: align:u32 offset:u32, section 5.4.6. A set bit 6 of align
// would put a memory's index between the two.
func (w *walker) memoryArgument(in *instruction) uint32 {
	align := w.u32()
	if align&^0x3f == 0x40 {
		w.fail("%s not allowed", multiMemory)
	}
	if align > uint32(in.width) {
		w.fail("an alignment of 2^%d bytes, at most 2^%d", align, in.width)
	}
	w.below(0, w.memories(), "memory")
	w.u32()
	return 0
}

// blockType: s33, section 5.4.1. It is the index of a type, or a byte that would
// be a negative number: 0x40 for no values, or the type of one result.
func (w *walker) blockType(*instruction) uint32 {
	if first := w.peek(); first == 0x40 {
		w.byte()
		return noValues
	} else if first&0xc0 == 0x40 {
		w.valueType()
		return oneResult
	}
	index := w.signed(33)
	if index < 0 || index >= int64(w.Types) {
		w.fail("type index %d, but there are only %d", index, w.Types)
	}
	return uint32(index)
}

// resultTypes: vec(valtype), but there is only one result.
func (w *walker) resultTypes(*instruction) uint32 {
	if n := w.byte(); n != 1 {
		w.fail("%d result types, only 1 is known", n)
	}
	w.valueType()
	return 0
}

// heapType reads the type of a null reference. A number that is not negative
// would be the index of a type.
func (w *walker) heapType(*instruction) uint32 {
	if first := w.peek(); first&0xc0 != 0x40 && w.left() > 0 {
		w.fail("%s not allowed", typedReferences)
	}
	w.referenceType()
	return 0
}
