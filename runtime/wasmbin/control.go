package wasmbin

// function is what the walk of a body knows of the function. What it counts is
// what compilers take more than linear time for.
type function struct {
	locals  int     // parameters included
	open    []block // that have not ended: the body itself, and those in it
	nested  int     // loops in open
	blocks  int     // so far, as are the rest
	loops   int
	targets int // of br_table
	bulk    int // operations
	values  int // passed
}

// block is what an end can end.
type block struct {
	kind  blockKind
	label int // how many values a branch to it takes along
}

type blockKind byte

const (
	plainBlock blockKind = iota // or a body, or what follows else
	loopBlock
	ifBlock
)

// The effects of control instructions (core specification, section 5.4.1).

func (w *walker) block(blockType uint32) { w.begin(plainBlock, blockType) }

func (w *walker) loop(blockType uint32) {
	f := &w.function
	f.loops++
	f.nested++
	w.atMost(uint64(f.loops), w.budget.Loops, "loops")
	w.atMost(uint64(f.nested), w.budget.LoopNesting, "nested loops")
	w.product(f.loops, "loops", w.budget.LocalsTimesLoops)
	w.begin(loopBlock, blockType)
}

func (w *walker) ifThen(blockType uint32) { w.begin(ifBlock, blockType) }

// product bounds what of the function there are n for each of its locals.
func (w *walker) product(n int, of string, limit int) {
	locals := w.function.locals
	if product := uint64(locals) * uint64(n); limit < 0 || product > uint64(limit) {
		w.fail("%d locals times %d %s, at most %d", locals, n, of, limit)
	}
}

func (w *walker) begin(kind blockKind, blockType uint32) {
	f := &w.function
	w.atMost(uint64(len(f.open)), w.budget.Nesting, "nested blocks")
	f.blocks++
	w.atMost(uint64(f.blocks), w.budget.Blocks, "blocks")
	w.product(f.blocks, "blocks", w.budget.LocalsTimesBlocks)
	params, results := w.arity(blockType)
	w.pass(params + results)
	if kind == loopBlock { // a branch to it leads to its start
		results = params
	}
	f.open = append(f.open, block{kind, results})
}

// arity returns how many parameters and results a type of blocks has.
func (w *walker) arity(blockType uint32) (params, results int) {
	switch blockType {
	case noValues:
		return 0, 0
	case oneResult:
		return 0, 1
	}
	t := w.types[blockType]
	return len(t.Params), len(t.Results)
}

func (w *walker) elseThen(uint32) {
	top := &w.function.open[len(w.function.open)-1]
	if top.kind != ifBlock {
		w.fail("belongs to no if")
	}
	top.kind = plainBlock
}

func (w *walker) end(uint32) {
	f := &w.function
	last := len(f.open) - 1
	if f.open[last].kind == loopBlock {
		f.nested--
	}
	f.open = f.open[:last]
}

func (w *walker) branch(label uint32) {
	if open := w.function.open; w.err == nil {
		w.pass(open[len(open)-1-int(label)].label)
	}
}

func (w *walker) returns(uint32) { w.pass(w.function.open[0].label) }

func (w *walker) call(function uint32) { w.callType(w.signature(function)) }

func (w *walker) callIndirect(index uint32) { w.callType(&w.types[index]) }

func (w *walker) callType(t *FuncType) { w.pass(len(t.Params) + len(t.Results)) }

// pass counts values that go from one block or function to another: the engine
// gives each of them a name of its own, every time.
func (w *walker) pass(values int) {
	w.function.values += values
	w.atMost(uint64(w.function.values), w.budget.Values, "values passed")
}

// bulk counts an operation that works on a range of memory or of a table.
func (w *walker) bulk(uint32) {
	w.function.bulk++
	w.atMost(uint64(w.function.bulk), w.budget.BulkOperations, "bulk operations")
}

// growTable needs a bound: the engine has none of its own for tables.
func (w *walker) growTable(table uint32) {
	w.bulk(table)
	switch l := w.tables[table]; {
	case !l.HasMax:
		w.fail("table %d declares no maximum, a table that grows needs one of at most %d", table, w.budget.TableEntries)
	case int64(l.Max) > int64(w.budget.TableEntries):
		w.fail("table %d declares a maximum of %d entries, at most %d", table, l.Max, w.budget.TableEntries)
	}
}
