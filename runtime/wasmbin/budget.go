package wasmbin

// Budget bounds what a module may be made of. A zero field means its default.
// The defaults are several times what the largest real modules need, and low
// enough that a compiler gets through each single function in about a second.
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
	// TableEntries is the number of entries a table may start with. Default
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
	return b
}

func orDefault[T int | int64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}
