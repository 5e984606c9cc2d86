package wasmbin

import "encoding/binary"

// What instructions cost in fuel, besides the one that each of them does.
const (
	hostUnits = 50 // a call of an imported function
	bulkUnits = 20 // an operation on a range, besides what its length costs
)

// metered is what is known of a body while its meter is made. How that counts is
// known at its end, so what is counted is kept until then.
type metered struct {
	declared int // the edit that replaces how many declarations of locals there are
	exit     int // the edit where the code ends
	regions  []region
	region   int // the one that is being walked
	blocks   []opened
	loops    []int    // the regions of all loops
	calls    bool     // there are calls of functions of the module
	returns  []int    // edits that replace return by a branch
	around   []int    // edits before calls, each followed by the one behind it
	lengths  []length // operations on ranges
}

// region is code that is charged for at once, where it begins. The first is the
// function's, and each loop has one. More begin where ways part, and behind a block
// that can be left for elsewhere than its end: what stands there may be skipped while
// what stands before is done again and again, as in a loop that is a switch.
type region struct {
	edit  int
	cost  uint64
	plain bool // neither a function's nor a loop's: nobody is asked for more there
}

// opened is a block that has not ended.
type opened struct {
	region int // that it stands in
	reach  int // the outermost block that a branch in it leads to
}

// length is an edit before an operation on a range.
type length struct {
	edit   int
	helper helper
}

// enter begins a body, which declares its locals from start and has its code from
// code.
func (r *rewriter) enter(start, code int) {
	b := &r.body
	*b = metered{
		regions: b.regions[:0], blocks: b.blocks[:0], loops: b.loops[:0],
		returns: b.returns[:0], around: b.around[:0], lengths: b.lengths[:0],
	}
	_, size := binary.Uvarint(r.raw[start:])
	r.edit(span{start, start + size}, r.raw[start:start+size])
	r.begin(code, false)
	b.blocks = append(b.blocks, opened{})
}

// begin begins a region.
func (r *rewriter) begin(at int, plain bool) {
	b := &r.body
	b.region = len(b.regions)
	b.regions = append(b.regions, region{edit: r.insert(at), plain: plain})
}

// charge adds to what the region costs.
func (r *rewriter) charge(units uint64) {
	r.body.regions[r.body.region].cost += units
}

// instruction is told of each one in a body, which is at a span, before it takes
// effect.
func (r *rewriter) instruction(w *walker, in *instruction, at span, index uint32) {
	if !in.free {
		r.charge(1)
	}
	if in.meter != nil {
		in.meter(r, w, at, index)
	}
}

func (r *rewriter) block(w *walker, _ span, _ uint32) {
	r.body.blocks = append(r.body.blocks, opened{r.body.region, len(w.function.open)})
}

func (r *rewriter) ifThen(w *walker, at span, _ uint32) {
	r.block(w, at, 0)
	r.begin(at.end, true)
}

func (r *rewriter) elseThen(_ *walker, at span, _ uint32) {
	r.begin(at.end, true)
}

func (r *rewriter) loop(w *walker, at span, _ uint32) {
	b := &r.body
	r.block(w, at, 0)
	r.begin(at.end, false)
	b.loops = append(b.loops, b.region)
}

func (r *rewriter) end(w *walker, at span, _ uint32) {
	b, level := &r.body, len(w.function.open)-1
	if level == 0 {
		b.exit = r.insert(at.start)
		return
	}
	ended := b.blocks[level]
	b.blocks = b.blocks[:level]
	b.region = ended.region
	if ended.reach < level {
		b.blocks[level-1].reach = min(b.blocks[level-1].reach, ended.reach)
		r.begin(at.end, true)
	}
}

// label is told of each that a branch in a body leads to.
func (r *rewriter) label(w *walker, label uint32) {
	level := len(w.function.open) - 1
	r.reach(level, level-int(label))
}

func (r *rewriter) reach(level, target int) {
	top := &r.body.blocks[level]
	top.reach = min(top.reach, target)
}

func (r *rewriter) returns(w *walker, at span, _ uint32) {
	level := len(w.function.open) - 1
	r.reach(level, 0)
	r.body.returns = append(r.body.returns, len(r.edits))
	r.edit(at, appendUint([]byte{opBranch}, level))
}

func (r *rewriter) call(_ *walker, at span, index uint32) {
	if index < r.imports {
		r.charge(hostUnits)
		r.around(r.insert(at.start), at)
		return
	}
	renumbered := r.edits[len(r.edits)-1]
	r.edits = r.edits[:len(r.edits)-1]
	before := r.insert(at.start)
	r.edits = append(r.edits, renumbered)
	r.around(before, at)
	r.body.calls = true
}

func (r *rewriter) callIndirect(_ *walker, at span, _ uint32) {
	r.around(r.insert(at.start), at)
	r.body.calls = true
}

// around notes a call, with the edit before it and one behind it. What is called may
// charge as well; a host function does by calling the guest again.
func (r *rewriter) around(before int, at span) {
	r.body.around = append(r.body.around, before, r.insert(at.end))
}

func (r *rewriter) growMemory(_ *walker, at span, _ uint32) { r.bulk(at, chargePages) }

func (r *rewriter) moveEntries(_ *walker, at span, _ uint32) {
	r.out.ChangesTables = true
	r.bulk(at, chargeEntries)
}

// bulk charges what lies on top of the operands by way of a helper, which leaves it
// there.
func (r *rewriter) bulk(at span, h helper) {
	r.charge(bulkUnits)
	r.body.lengths = append(r.body.lengths, length{r.insert(at.start), h})
}

// leave ends a body, of which everything is at s.
func (r *rewriter) leave(w *walker, t *FuncType, locals int, s span) {
	r.count(t, locals)
	r.scratch = r.apply(r.scratch[:0], s)
	w.atMost(uint64(len(r.scratch)), MeteredTimes*w.budget.BodyBytes, "bytes of code with a meter")
	r.bodies = append(appendUint(r.bodies, len(r.scratch)), r.scratch...)
}
