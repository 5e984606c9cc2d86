package wasmbin

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// The names of what [Module.Rewrite] adds to a module. No guest may export or
// import any of them; see [Module.Reserved].
const (
	// ReservedPrefix begins the names of all exports that are added.
	ReservedPrefix = "hutch:"
	// FuelExport is the counter of fuel, a mutable i64: what is left of the slice,
	// negative while more of it was used than there was.
	FuelExport = ReservedPrefix + "fuel"
	// StackExport is what is left of the stack, a mutable i64, in units of
	// [FrameUnits] and of one for each local.
	StackExport = ReservedPrefix + "stack"
	// MemoryExport is the memory, if the module has one.
	MemoryExport = ReservedPrefix + "memory"
	// MeterModule and MeterFunction are the one import that is added, of type
	// [MeterType]. It gets what FuelExport and StackExport are, one of which is
	// negative unless a long operation on memory asks, and returns what fuel is to
	// be, or does not return.
	MeterModule   = "hutch:meter"
	MeterFunction = "tick"
)

// MeterType is the type of the function that is imported as [MeterFunction].
func MeterType() FuncType {
	return FuncType{Params: []ValueType{I64, I64}, Results: []ValueType{I64}}
}

// GlobalExport is the name under which a mutable global of the guest is
// exported, TableExport that of a table.
func GlobalExport(index int) string { return ReservedPrefix + "global." + strconv.Itoa(index) }

// TableExport is the name under which a table of the guest is exported.
func TableExport(index int) string { return ReservedPrefix + "table." + strconv.Itoa(index) }

// FrameUnits is how much of the stack a call takes, besides its locals: roughly
// eight bytes a unit.
const FrameUnits = 16

// MeteredTimes is how much larger FileBytes and BodyBytes of a [Budget] are for what
// has a meter. Code of real guests grows by less than a third. What grows more is calls
// without number in a function that has a loop as well, at 10 bytes for two: half a
// MiB of them took a compiler 1.7 s without a meter and 7 s with one.
const MeteredTimes = 2

// Rewriting says how a module is rewritten. The zero value works.
type Rewriting struct {
	// StackUnits is how much of the stack calls within each other may take.
	// Default 2 Mi, which is 16 MiB or so.
	StackUnits int64
}

// Rewritten is a module with what was added, and what a copy of its state needs
// to know.
type Rewritten struct {
	// Wasm is the module, without its custom sections.
	Wasm []byte
	// Mutable are the guest's own mutable globals, each exported under the name
	// that [GlobalExport] gives its index.
	Mutable []MutableGlobal
	// ChangesTables says that code writes to tables or drops what fills them,
	// DropsData that it drops data segments: neither is in memory or globals.
	ChangesTables, DropsData bool
}

// MutableGlobal is a global that code can change.
type MutableGlobal struct {
	Index int
	Type  ValueType
}

// Reserved returns an error if the module exports or imports a name that
// [Module.Rewrite] adds.
func (m *Module) Reserved() error {
	for i, e := range m.Exports {
		if strings.HasPrefix(e.Name, ReservedPrefix) {
			return fmt.Errorf("export section: export %d: %.64q: names that begin with %q are reserved, choose another one", i, e.Name, ReservedPrefix)
		}
	}
	for i, im := range m.Imports {
		if im.Module == MeterModule {
			return fmt.Errorf("import section: import %d: %.64q %.64q: the module is reserved, nothing can be imported from it", i, im.Module, im.Name)
		}
	}
	return nil
}

// Rewrite returns the module with a meter in it. Each function charges fuel for
// its instructions when it is entered and for those of a loop on each turn; what
// works on ranges of memory or tables charges by their length as well, and calls
// take from the stack what they give back when they return. Where fuel or stack
// falls below zero the host is asked (see [MeterFunction]), and after each MiB that
// one instruction fills, copies or initialises.
//
// It also exports memory, tables and mutable globals, gives each table a maximum,
// and merges data segments. Results and traps are those of the module. What is
// added stands behind what the guest can name, but for one import, behind which
// functions are numbered anew; so the guest cannot reach any of it. The same
// module gives the same bytes each time. One that becomes more than [MeteredTimes] as
// large as the budget it was checked against allows is refused.
func (m *Module) Rewrite(o Rewriting) (*Rewritten, error) {
	if err := m.Reserved(); err != nil {
		return nil, err
	}
	orDefault(&o.StackUnits, 2<<20)
	r := &rewriter{raw: m.raw, imports: uint32(len(m.Imports)), module: m, types: map[string]int{}}
	r.bodies = make([]byte, 0, len(m.raw)) // most of what there is
	r.prepare(o.StackUnits)
	if _, err := traverse(m.raw, m.budget, r); err != nil { // it was checked
		return nil, err
	}
	r.out.Wasm = r.assemble()
	if size, most := len(r.out.Wasm), MeteredTimes*m.budget.FileBytes; size > most {
		return nil, fmt.Errorf("file: %d bytes with a meter, at most %d", size, most)
	}
	return &r.out, nil
}

// Sections by id, and their order in the file.
const (
	typeID = 1 + iota
	importID
	functionID
	tableID
	memoryID
	globalID
	exportID
	startID
	elementID
	codeID
	dataID
	dataCountID
	sectionIDs
)

var fileOrder = [...]byte{typeID, importID, functionID, tableID, memoryID, globalID, exportID, startID, elementID, dataCountID, codeID, dataID}

func (r *rewriter) memories() int {
	if r.module.Memory == nil {
		return 0
	}
	return 1
}

// section keeps what became of a section whose entries are at s.
func (r *rewriter) section(id byte, s span) {
	switch id {
	case 0:
	case dataCountID:
		r.dataCount = true
	case codeID:
		r.sections[id] = r.bodies
	case dataID:
		r.sections[id] = r.segments(s)
	default:
		r.sections[id] = r.apply(nil, s)
	}
}

// assemble puts the module together.
func (r *rewriter) assemble() []byte {
	r.addHelpers()
	r.addExports()
	m := r.module
	counts := [sectionIDs]int{
		typeID: m.Types, importID: len(m.Imports), functionID: m.Functions, tableID: m.Tables, memoryID: r.memories(),
		globalID: m.Globals, exportID: len(m.Exports), elementID: m.ElementSegments, codeID: m.Functions, dataID: r.segmentCount,
	}
	size := 0
	for id, s := range r.sections {
		size += len(s) + len(r.added[id])
	}
	out := append(make([]byte, 0, size+sectionIDs*16), m.raw[:8]...)
	for _, id := range fileOrder {
		var head []byte
		switch n := counts[id] + r.more[id]; {
		case id == startID && m.HasStart:
		case id == dataCountID && r.dataCount:
			head = appendUint(nil, counts[dataID])
		case n > 0:
			head = appendUint(nil, n)
		default:
			continue
		}
		out = appendUint(append(out, id), len(head)+len(r.sections[id])+len(r.added[id]))
		out = append(append(append(out, head...), r.sections[id]...), r.added[id]...)
	}
	return out
}

// add puts an entry behind those that a section has.
func (r *rewriter) add(id byte, parts ...[]byte) {
	r.more[id]++
	for _, p := range parts {
		r.added[id] = append(r.added[id], p...)
	}
}

// addType adds a type, and returns its index.
func (r *rewriter) addType(params, results []ValueType) int {
	t := FuncType{params, results}
	index, ok := r.types[t.String()]
	if !ok {
		index = r.module.Types + r.more[typeID]
		r.types[t.String()] = index
		r.add(typeID, []byte{0x60}, valueVector(params), valueVector(results))
	}
	return index
}

func valueVector(types []ValueType) []byte {
	b := appendUint(nil, len(types))
	for _, t := range types {
		b = append(b, byte(t))
	}
	return b
}

func (r *rewriter) addExports() {
	m := r.module
	add := func(name string, k Kind, index int) {
		r.add(exportID, nameBytes(name), []byte{byte(k)}, appendUint(nil, index))
	}
	add(FuelExport, Global, r.fuel())
	add(StackExport, Global, r.stack())
	if m.Memory != nil {
		add(MemoryExport, Memory, 0)
	}
	for i := range m.Tables {
		add(TableExport(i), Table, i)
	}
	for _, g := range r.out.Mutable {
		add(GlobalExport(g.Index), Global, g.Index)
	}
}

func nameBytes(s string) []byte { return append(appendUint(nil, len(s)), s...) }

func appendUint(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// appendInt appends n as a signed number.
func appendInt(b []byte, n int64) []byte {
	for ; n < -64 || n > 63; n >>= 7 {
		b = append(b, byte(n&0x7f|0x80))
	}
	return append(b, byte(n&0x7f))
}
