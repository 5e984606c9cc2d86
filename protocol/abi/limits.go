package abi

import "time"

// PageBytes is the size of a page of WebAssembly memory.
const PageBytes = 64 << 10

// Limits bound one call of one module. A zero field means its default, so the
// zero value is what an operator who configured nothing gets.
type Limits struct {
	// Wall is the longest a call may take, waiting included. Default 30 s.
	Wall time.Duration `json:"wall,omitempty"`
	// Compile is the longest a module may take to compile. Default 30 s.
	Compile time.Duration `json:"compile,omitempty"`
	// MemoryBytes is the most linear memory one instance may have, rounded
	// down to whole pages. Default 64 MiB.
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// InputBytes is the largest accepted call, as JSON. Default 4 MiB.
	InputBytes int `json:"inputBytes,omitempty"`
	// OutputBytes is the largest result a guest may give, as JSON. Default 1 MiB.
	OutputBytes int `json:"outputBytes,omitempty"`
	// LogLines and LogLineBytes bound what one call may log; more lines are
	// counted and dropped, longer ones cut. Defaults 100 and 8 KiB.
	LogLines     int `json:"logLines,omitempty"`
	LogLineBytes int `json:"logLineBytes,omitempty"`
	// HostCalls is how many gated operations one call may ask for. Default 1,000.
	HostCalls int `json:"hostCalls,omitempty"`
	// Fuel is how much a call may compute, counted in the guest's code: about one
	// unit an instruction, so that the same call always burns the same. Default
	// 50,000,000,000, which is ten seconds or so.
	Fuel int64 `json:"fuel,omitempty"`
	// Fresh has the module start anew for the call, instead of beginning in the state
	// that its start left: slower by what that takes, and nothing that a start draws
	// or reads, such as the seed of a random generator, is the same twice.
	Fresh bool `json:"fresh,omitempty"`
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	orDefault(&l.Wall, 30*time.Second)
	orDefault(&l.Compile, 30*time.Second)
	orDefault(&l.MemoryBytes, 64<<20)
	orDefault(&l.InputBytes, 4<<20)
	orDefault(&l.OutputBytes, 1<<20)
	orDefault(&l.LogLines, 100)
	orDefault(&l.LogLineBytes, 8<<10)
	orDefault(&l.HostCalls, 1000)
	orDefault(&l.Fuel, 50_000_000_000)
	return l
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
