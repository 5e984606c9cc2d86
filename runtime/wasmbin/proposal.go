package wasmbin

// proposal is an extension of WebAssembly beyond version 2.0. Its parts are
// known so that a module that needs them can be told so; none is allowed.
type proposal byte

const (
	inStandard proposal = iota // of WebAssembly 2.0, so of no proposal
	threads
	tailCalls
	exceptions
	typedReferences
	garbageCollection
	relaxedVectors
	extendedConstants
	memory64
	multiMemory
)

// String names a proposal as the subject of "... not allowed".
func (p proposal) String() string {
	return [...]string{
		inStandard:        "WebAssembly 2.0 is",
		threads:           "threads are",
		tailCalls:         "tail calls are",
		exceptions:        "exceptions are",
		typedReferences:   "typed function references are",
		garbageCollection: "garbage collected types are",
		relaxedVectors:    "relaxed SIMD instructions are",
		extendedConstants: "extended constant expressions are",
		memory64:          "64-bit memories are",
		multiMemory:       "multiple memories are",
	}[p]
}

// proposalOf returns the proposal that a byte comes from which stands in the
// place of a type.
func proposalOf(t byte) proposal {
	switch t {
	case 0x69, 0x74: // exn, noexn
		return exceptions
	case 0x63, 0x64: // ref null ht, ref ht
		return typedReferences
	case 0x4e, 0x4f, 0x50, 0x5e, 0x5f, // rec, sub final, sub, array, struct
		0x6a, 0x6b, 0x6c, 0x6d, 0x6e, // array, struct, i31, eq, any
		0x71, 0x72, 0x73: // none, noextern, nofunc
		return garbageCollection
	}
	return inStandard
}

// unknownType fails for a byte that is no type of this kind, and says which
// proposal has one there.
func (r *reader) unknownType(kind string, t byte) {
	if p := proposalOf(t); p != inStandard {
		r.fail("%s %#02x: %s not allowed", kind, t, p)
	}
	r.fail("unknown %s %#02x", kind, t)
}
