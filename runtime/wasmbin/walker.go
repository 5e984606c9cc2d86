package wasmbin

import "fmt"

// walker holds what sections need of those before them.
type walker struct {
	reader
	budget Budget
	*Module

	rank      int        // of the last section that was not a custom one
	types     []FuncType // the type section
	funcs     []uint32   // the function section: for each function its type
	tables    []Limits   // the table section
	globals   int        // that an instruction may name: the first ones
	function  function   // whose body is being walked
	locals    uint64     // of all functions so far, parameters included
	bodies    int        // in the code section
	dataCount int        // of the data count section; -1 without one

	rewriting *rewriter // nil while a module is only checked
}

// sections are the known ones, by id (core specification, section 5.5.2).
// Their rank is their place in the order that the format prescribes; custom
// ones stand anywhere.
var sections = [...]struct {
	name string
	rank int
	walk func(*walker)
}{
	0:  {"custom section", 0, (*walker).customSection},
	1:  {"type section", 1, (*walker).typeSection},
	2:  {"import section", 2, (*walker).importSection},
	3:  {"function section", 3, (*walker).functionSection},
	4:  {"table section", 4, (*walker).tableSection},
	5:  {"memory section", 5, (*walker).memorySection},
	6:  {"global section", 6, (*walker).globalSection},
	7:  {"export section", 7, (*walker).exportSection},
	8:  {"start section", 8, (*walker).startSection},
	9:  {"element section", 9, (*walker).elementSection},
	10: {"code section", 11, (*walker).codeSection},
	11: {"data section", 12, (*walker).dataSection},
	12: {"data count section", 10, (*walker).dataCountSection},
	13: {"tag section", 0, (*walker).tagSection},
}

func sectionName(id byte) string {
	if int(id) < len(sections) {
		return sections[id].name
	}
	return fmt.Sprintf("section %d", id)
}

func (w *walker) tagSection() { w.fail("%s not allowed", exceptions) }

// walk walks one section, which must use up its bytes exactly.
func (w *walker) walk(f frame) {
	w.place(f)
	if w.err != nil {
		return
	}
	file := w.b
	w.b = file[:f.body.end]
	w.entries = w.pos
	sections[f.id].walk(w)
	w.item, w.inside = "", ""
	if w.left() > 0 {
		w.last = w.pos
		w.fail("%d bytes too many", w.left())
	}
	if w.rewriting != nil && w.err == nil {
		w.rewriting.section(f.id, span{w.entries, f.body.end})
	}
	w.b = file
}

// place checks that a section is known and stands where it may.
func (w *walker) place(f frame) {
	w.last = f.start
	if int(f.id) >= len(sections) {
		w.fail("not a section of WebAssembly 2.0")
		return
	}
	rank := sections[f.id].rank
	if rank == 0 {
		return
	}
	if rank <= w.rank {
		w.fail("twice, or after a section that it must stand before")
	}
	w.rank = rank
	w.keep(span{f.start, f.body.end})
}

func (w *walker) keep(s span) { w.parts = append(w.parts, s) }

// finish checks what only the end shows: sections that others promised.
func (w *walker) finish() {
	w.last, w.item = w.pos, ""
	w.section = "code section"
	w.sameBodies()
	w.section = "data section"
	w.sameSegments()
}

func (w *walker) sameBodies() {
	if w.bodies != w.Functions {
		w.fail("%d bodies, but %d functions in the function section", w.bodies, w.Functions)
	}
}

func (w *walker) sameSegments() {
	if w.dataCount >= 0 && w.dataCount != w.DataSegments {
		w.fail("%d segments, but %d in the data count section", w.DataSegments, w.dataCount)
	}
}

// functions counts all functions that an index can name.
func (w *walker) functions() int { return len(w.Imports) + w.Functions }

// functionIndex reads the index of a function. It is the only place that does, so
// that none is forgotten when functions are numbered anew.
func (w *walker) functionIndex() uint32 {
	start := w.pos
	index := w.u32()
	w.below(index, w.functions(), "function")
	if w.rewriting != nil {
		w.rewriting.function(span{start, w.pos}, index)
	}
	return index
}

// signature returns the type of a function that exists.
func (w *walker) signature(function uint32) *FuncType {
	if i := int(function); i < len(w.Imports) {
		return w.Imports[i].Func
	}
	return &w.types[w.funcs[int(function)-len(w.Imports)]]
}

// count returns how many things of a kind an index can name.
func (w *walker) count(k Kind) int {
	switch k {
	case Function:
		return w.functions()
	case Table:
		return w.Tables
	case Memory:
		return w.memories()
	case Global:
		return w.Globals
	}
	return 0
}

func (w *walker) memories() int {
	if w.Memory == nil {
		return 0
	}
	return 1
}
