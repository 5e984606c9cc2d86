package wasmbin

// Memory comes in pages, of which 32 bits address maxPages.
const (
	maxPages  = 1 << 16
	pageBytes = 64 << 10
)

// typeSection: vec(0x60 vec(valtype) vec(valtype)), section 5.5.4.
func (w *walker) typeSection() {
	w.Types = w.vectorOf("types", w.budget.Types)
	w.types = make([]FuncType, w.Types)
	arena := make([]ValueType, 0, w.left()) // each type in it takes a byte
	for i := 0; i < w.Types && w.enter("type", i); i++ {
		if form := w.byte(); form != 0x60 {
			w.unknownType("form", form)
		}
		t := &w.types[i]
		arena, t.Params = w.valueTypes(arena, "parameters", w.budget.Params)
		arena, t.Results = w.valueTypes(arena, "results", w.budget.Results)
	}
}

func (w *walker) valueTypes(arena []ValueType, unit string, limit int) (rest, types []ValueType) {
	start := len(arena)
	for n := w.vectorOf(unit, limit); n > 0 && w.err == nil; n-- {
		arena = append(arena, w.valueType())
	}
	return arena, arena[start:len(arena):len(arena)]
}

// importSection: vec(name name 0x00 typeidx), section 5.5.5; other kinds are
// refused.
func (w *walker) importSection() {
	n := w.vectorOf("imports", w.budget.Imports)
	w.Imports = make([]Import, 0, n)
	for i := 0; i < n && w.enter("import", i); i++ {
		module, name := w.name(), w.name()
		switch k := Kind(w.byte()); k {
		case Function:
		case tag:
			w.fail("%.64q %.64q is of kind %s: %s not allowed", module, name, k, exceptions)
		default:
			w.fail("%.64q %.64q is of kind %s, only functions can be imported", module, name, k)
		}
		t := w.u32()
		if w.below(t, w.Types, "type"); w.err == nil {
			w.Imports = append(w.Imports, Import{string(module), string(name), Function, &w.types[t]})
		}
	}
}

// functionSection: vec(typeidx), section 5.5.6.
func (w *walker) functionSection() {
	w.Functions = w.vectorOf("functions", w.budget.Functions)
	w.funcs = make([]uint32, w.Functions)
	for i := 0; i < w.Functions && w.enter("function", len(w.Imports)+i); i++ {
		w.funcs[i] = w.u32()
		w.below(w.funcs[i], w.Types, "type")
	}
}

// tableSection: vec(reftype limits), section 5.5.7.
func (w *walker) tableSection() {
	const withInitial = 0x40 // in the place of the type
	w.Tables = w.vectorOf("tables", w.budget.Tables)
	w.tables = make([]Limits, w.Tables)
	for i := 0; i < w.Tables && w.enter("table", i); i++ {
		if w.peek() == withInitial {
			w.fail("an initial value: %s not allowed", typedReferences)
		}
		w.referenceType()
		start := w.pos
		w.tables[i] = w.limits()
		if w.rewriting != nil {
			w.rewriting.table(span{start, w.pos}, w.tables[i], w.budget.TableEntries)
		}
		if l := w.tables[i]; int64(l.Min) > int64(w.budget.TableEntries) {
			w.fail("starts with %d entries, at most %d", l.Min, w.budget.TableEntries)
		}
	}
}

// memorySection: vec(limits), section 5.5.8; at most one.
func (w *walker) memorySection() {
	n := w.vector("memories")
	if n > 1 {
		w.fail("%d memories: %s not allowed", n, multiMemory)
	}
	if n == 0 {
		return
	}
	w.enter("memory", 0)
	l := w.limits()
	if limit := min(w.budget.MemoryBytes/pageBytes, maxPages); int64(l.Min) > limit {
		w.fail("starts with %d pages of 64 KiB, at most %d", l.Min, limit)
	}
	if l.Max > maxPages {
		w.fail("a maximum of %d pages, at most %d", l.Max, maxPages)
	}
	w.Memory = &l
}

// limits: 0x00 min, or 0x01 min max; section 5.3.7.
func (w *walker) limits() Limits {
	var l Limits
	flags := w.byte()
	switch flags {
	case 0, 1:
	case 2, 3:
		w.fail("limits of form %#02x: %s not allowed", flags, threads)
	case 4, 5, 6, 7:
		w.fail("limits of form %#02x: %s not allowed", flags, memory64)
	default:
		w.fail("unknown limits of form %#02x", flags)
	}
	l.Min = w.u32()
	if l.HasMax = flags == 1; l.HasMax {
		l.Max = w.u32()
		if l.Max < l.Min {
			w.fail("a maximum of %d, but a minimum of %d", l.Max, l.Min)
		}
	}
	return l
}

// globalSection: vec(valtype mut expr), section 5.5.9.
func (w *walker) globalSection() {
	w.Globals = w.vectorOf("globals", w.budget.Globals)
	for i := 0; i < w.Globals && w.enter("global", i); i++ {
		t := w.valueType()
		mut := w.byte()
		if mut > 1 {
			w.fail("mutability %#02x", mut)
		}
		if w.rewriting != nil && mut == 1 {
			w.rewriting.mutable(i, t)
		}
		w.constant(i)
	}
}

// exportSection: vec(name kind index), section 5.5.10; names are unique.
func (w *walker) exportSection() {
	n := w.vectorOf("exports", w.budget.Exports)
	w.Exports = make([]Export, 0, n)
	seen := make(map[string]bool, n)
	for i := 0; i < n && w.enter("export", i); i++ {
		e := Export{Name: string(w.name())}
		if seen[e.Name] {
			w.fail("a second one named %.64q", e.Name)
		}
		seen[e.Name] = true
		if e.Kind = Kind(w.byte()); e.Kind >= tag {
			w.fail("%.64q is of kind %s, which cannot be exported", e.Name, e.Kind)
		}
		if e.Kind == Function {
			e.Index = w.functionIndex()
		} else {
			e.Index = w.indexOf(e.Kind.String(), w.count(e.Kind))
		}
		if w.err == nil && e.Kind == Function {
			e.Func = w.signature(e.Index)
		}
		w.Exports = append(w.Exports, e)
	}
}

// startSection: funcidx, section 5.5.11.
func (w *walker) startSection() {
	w.functionIndex()
	w.HasStart = true
}
