package dialecttest

import (
	"encoding/binary"
	"slices"

	"github.com/hutch-run/hutch/protocol/abi"
)

// Value types of WebAssembly, as they are encoded.
const (
	i32 = 0x7f
	i64 = 0x7e
)

// funcType is the type of a function, parameters and results as encoded bytes.
type funcType struct{ params, results string }

func sig(params, results string) funcType { return funcType{params, results} }

var toI32 = sig("", "\x7f")

// Where things lie in the memory of a built module.
const (
	scratch   = 0    // for structs that WASI wants
	dataStart = 1024 // the texts of the steps
	pageBytes = 64 << 10
	// bufferBytes is the size of the buffer that input and results pass through;
	// it starts at the first page behind the data.
	bufferBytes = pageBytes
)

// assembler collects what a module consists of.
type assembler struct {
	v1       bool
	nImports uint32 // known in the second pass only
	imports  []importedFunc
	funcs    []definedFunc
	index    map[string]uint32 // defined functions by name, without nImports
	data     []byte
	dataAt   map[string]uint32
	letters  int64 // that Output steps write
	hasStart bool
	start    uint32
}

type importedFunc struct {
	module, name string
	typ          funcType
}

type definedFunc struct {
	name   string
	export bool
	typ    funcType
	body   func(*code)
	code   []byte
}

func newAssembler(v1 bool, nImports uint32) *assembler {
	return &assembler{v1: v1, nImports: nImports, index: map[string]uint32{}, dataAt: map[string]uint32{}}
}

// imported returns the index of an imported function.
func (a *assembler) imported(module, name string, t funcType) uint32 {
	for i, f := range a.imports {
		if f.module == module && f.name == name {
			return uint32(i)
		}
	}
	a.imports = append(a.imports, importedFunc{module, name, t})
	return uint32(len(a.imports) - 1)
}

// function returns the index of a function of the module's own, which body
// writes when the module is flushed.
func (a *assembler) function(name string, t funcType, body func(*code)) uint32 {
	i, ok := a.index[name]
	if !ok {
		i = uint32(len(a.funcs))
		a.index[name] = i
		a.funcs = append(a.funcs, definedFunc{name: name, typ: t, body: body})
	}
	return a.nImports + i
}

func (a *assembler) exported(name string, t funcType, body func(*code)) {
	a.function(name, t, body)
	a.funcs[a.index[name]].export = true
}

// flush writes the bodies; writing one may ask for more functions.
func (a *assembler) flush() {
	for i := 0; i < len(a.funcs); i++ {
		c := &code{a: a, params: uint32(len(a.funcs[i].typ.params))}
		a.funcs[i].body(c)
		a.funcs[i].code = c.b
	}
}

// text places s in the memory and returns where.
func (a *assembler) text(s string) (ptr, length int32) {
	at, ok := a.dataAt[s]
	if !ok {
		at = dataStart + uint32(len(a.data))
		a.dataAt[s] = at
		a.data = append(a.data, s...)
	}
	return int32(at), int32(len(s))
}

// buffer returns where the buffer lies. It must not move between steps, so
// texts have one MiB.
func (a *assembler) buffer() int32 { return 16 * pageBytes }

// module puts the sections together.
func (a *assembler) module(m Module) []byte {
	if dataStart+len(a.data) > int(a.buffer()) {
		panic("dialecttest: the texts of a module's steps are over 1 MiB")
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	types := a.types()
	b = section(b, 1, vector(types, func(t funcType) []byte {
		return slices.Concat([]byte{0x60}, name(t.params), name(t.results))
	}))
	b = section(b, 2, vector(a.imports, func(f importedFunc) []byte {
		return slices.Concat(name(f.module), name(f.name), []byte{0}, uleb(slices.Index(types, f.typ)))
	}))
	b = section(b, 3, vector(a.funcs, func(f definedFunc) []byte { return uleb(slices.Index(types, f.typ)) }))
	b = section(b, 5, a.memory(m))
	b = section(b, 6, []byte{3, i64, 1, 0x42, 0, 0x0b, i64, 1, 0x42, 0, 0x0b, i32, 1, 0x41, 0, 0x0b})
	b = section(b, 7, a.exports(m))
	if a.hasStart {
		b = section(b, 8, uleb(a.start))
	}
	b = section(b, 10, vector(a.funcs, func(f definedFunc) []byte {
		body := slices.Concat([]byte{2, 4, i32, 2, i64}, f.code, []byte{0x0b})
		return slices.Concat(uleb(len(body)), body)
	}))
	if len(a.data) > 0 {
		b = section(b, 11, slices.Concat([]byte{1, 0, 0x41}, sleb(dataStart), []byte{0x0b}, name(string(a.data))))
	}
	if m.Manifest != nil {
		b = section(b, 0, slices.Concat(name(abi.ManifestSection), m.Manifest))
	}
	return b
}

func (a *assembler) types() []funcType {
	var types []funcType
	add := func(t funcType) {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	for _, f := range a.imports {
		add(f.typ)
	}
	for _, f := range a.funcs {
		add(f.typ)
	}
	return types
}

func (a *assembler) memory(m Module) []byte {
	pages := m.Pages + uint32(a.buffer()+bufferBytes)/pageBytes
	if m.MaxPages == 0 {
		return slices.Concat([]byte{1, 0}, uleb(pages))
	}
	return slices.Concat([]byte{1, 1}, uleb(pages), uleb(m.MaxPages))
}

func (a *assembler) exports(m Module) []byte {
	var list [][]byte
	if !slices.Contains(m.Omit, "memory") {
		list = append(list, slices.Concat(name("memory"), []byte{2, 0}))
	}
	for i, f := range a.funcs {
		if f.export && !slices.Contains(m.Omit, f.name) {
			list = append(list, slices.Concat(name(f.name), []byte{0}, uleb(a.nImports+uint32(i))))
		}
	}
	return vector(list, func(b []byte) []byte { return b })
}

func section(b []byte, id byte, content []byte) []byte {
	return slices.Concat(b, []byte{id}, uleb(len(content)), content)
}

func vector[T any](list []T, encode func(T) []byte) []byte {
	b := uleb(len(list))
	for _, e := range list {
		b = append(b, encode(e)...)
	}
	return b
}

func name(s string) []byte { return append(uleb(len(s)), s...) }

func uleb[T int | uint32](v T) []byte { return binary.AppendUvarint(nil, uint64(v)) }

func sleb(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
