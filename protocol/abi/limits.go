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

// Or returns l with every zero field set from base; Fresh is set if it is in either.
func (l Limits) Or(base Limits) Limits {
	return Limits{
		Wall:         either(l.Wall, base.Wall),
		Compile:      either(l.Compile, base.Compile),
		MemoryBytes:  either(l.MemoryBytes, base.MemoryBytes),
		InputBytes:   either(l.InputBytes, base.InputBytes),
		OutputBytes:  either(l.OutputBytes, base.OutputBytes),
		LogLines:     either(l.LogLines, base.LogLines),
		LogLineBytes: either(l.LogLineBytes, base.LogLineBytes),
		HostCalls:    either(l.HostCalls, base.HostCalls),
		Fuel:         either(l.Fuel, base.Fuel),
		Fresh:        l.Fresh || base.Fresh,
	}
}

// either returns the first that is not zero.
func either[T comparable](first, second T) T {
	var zero T
	if first != zero {
		return first
	}
	return second
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	return l.Or(Limits{
		Wall:         30 * time.Second,
		Compile:      30 * time.Second,
		MemoryBytes:  64 << 20,
		InputBytes:   4 << 20,
		OutputBytes:  1 << 20,
		LogLines:     100,
		LogLineBytes: 8 << 10,
		HostCalls:    1000,
		Fuel:         50_000_000_000,
	})
}
