package wasmbin

// Budget bounds what a module may be made of. A zero field means its default.
// The defaults are above what the largest real modules need, and low enough
// that a compiler gets through each single function in about a second. What
// [Module.Rewrite] adds is bounded by them: a meter makes a function, and the file, at
// most [MeteredTimes] as large as they may be, and adds two blocks and a local to a
// function, and a block to each loop.
type Budget struct {
	// FileBytes is the size of the whole module. Default 16 MiB.
	FileBytes int
	// Types is the number of function types. Default 5,000.
	Types int
	// Params is the number of parameters of one type. Default 1,000.
	Params int
	// Results is the number of results of one type. Default 1,000.
	Results int
	// Imports is the number of imports. Default 200.
	Imports int
	// Functions is the number of functions, imports not counted. Default 50,000.
	Functions int
	// Tables is the number of tables. Default 4.
	Tables int
	// TableEntries is the number of entries a table may start with, and the
	// largest maximum of one that code can grow, which must declare one. Default
	// 65,536.
	TableEntries int
	// MemoryBytes is the size of memory a module may start with, rounded down
	// to whole pages of 64 KiB. Default 64 MiB.
	MemoryBytes int64
	// Globals is the number of globals. Default 2,000.
	Globals int
	// Exports is the number of exports. Default 500.
	Exports int
	// Segments is the number of element and data segments together. Default
	// 200,000.
	Segments int
	// BodyBytes is the size of one function's code, declarations of its locals
	// included. Default 512 KiB.
	BodyBytes int
	// Locals is the number of locals of one function, its parameters included.
	// Default 2,000.
	Locals int
	// ModuleLocals is the sum of that over all functions. Default 1,000,000.
	ModuleLocals int
	// Nesting is how deep blocks of one function may stand in each other. A
	// block is what block, loop or if begins. Default 5,000.
	Nesting int
	// Blocks is the number of blocks of one function. Default 6,000.
	Blocks int
	// Loops is the number of those blocks that are loops. Default 500.
	Loops int
	// LoopNesting is how deep loops of one function may stand in each other.
	// Default 64.
	LoopNesting int
	// LocalsTimesBlocks is the product of the two for one function. Default
	// 1,000,000.
	LocalsTimesBlocks int
	// LocalsTimesLoops is the product of the two for one function. Default 200,000.
	LocalsTimesLoops int
	// BranchTargets is the number of targets of all br_table of one function,
	// the default of each not counted. Default 20,000.
	BranchTargets int
	// Values is the number of values that calls, blocks and branches of one
	// function pass on: the parameters and results of their types, counted each
	// time. Default 100,000.
	Values int
	// BulkOperations is the number of instructions of one function that fill,
	// copy or initialise memory or tables, or grow tables. Default 1,000.
	BulkOperations int
}

func (b Budget) withDefaults() Budget {
	orDefault(&b.FileBytes, 16<<20)
	orDefault(&b.Types, 5_000)
	orDefault(&b.Params, 1_000)
	orDefault(&b.Results, 1_000)
	orDefault(&b.Imports, 200)
	orDefault(&b.Functions, 50_000)
	orDefault(&b.Tables, 4)
	orDefault(&b.TableEntries, 65_536)
	orDefault(&b.MemoryBytes, 64<<20)
	orDefault(&b.Globals, 2_000)
	orDefault(&b.Exports, 500)
	orDefault(&b.Segments, 200_000)
	orDefault(&b.BodyBytes, 512<<10)
	orDefault(&b.Locals, 2_000)
	orDefault(&b.ModuleLocals, 1_000_000)
	orDefault(&b.Nesting, 5_000)
	orDefault(&b.Blocks, 6_000)
	orDefault(&b.Loops, 500)
	orDefault(&b.LoopNesting, 64)
	orDefault(&b.LocalsTimesBlocks, 1_000_000)
	orDefault(&b.LocalsTimesLoops, 200_000)
	orDefault(&b.BranchTargets, 20_000)
	orDefault(&b.Values, 100_000)
	orDefault(&b.BulkOperations, 1_000)
	return b
}

func orDefault[T int | int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
