package dialect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/sandbox"
	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// engineExport is a function of an engine, and its type.
type engineExport struct {
	name string
	t    funcType
}

// engineExports are what is called of an engine. Pointers are i32 and values of
// JavaScript i64; texts end with a NUL.
func engineExports() []engineExport {
	const i32, i64 = wasmbin.I32, wasmbin.I64
	return []engineExport{
		{"malloc", funcType{Params: types(i32), Results: types(i32)}},
		{"free", funcType{Params: types(i32)}},
		// (memory, stack, time, collection) -> runtime; 0 is the engine's own choice
		{"New_QJS", funcType{Params: types(i32, i32, i32, i32), Results: types(i32)}},
		{"QJS_GetContext", funcType{Params: types(i32), Results: types(i32)}},
		// (text, bytecode, its length, file, flags) -> options
		{"QJS_CreateEvalOption", funcType{Params: types(i32, i32, i32, i32, i32), Results: types(i32)}},
		{"QJS_Eval", funcType{Params: types(i32, i32), Results: types(i64)}},
		// (context, function, this, count, values) -> value
		{"QJS_Call", funcType{Params: types(i32, i64, i64, i32, i64), Results: types(i64)}},
		{"QJS_CreateFunctionProxy", funcType{Params: types(i32, i64, i64, i64), Results: types(i64)}},
		{"JS_GetException", funcType{Params: types(i32), Results: types(i64)}},
		{"QJS_IsString", funcType{Params: types(i64), Results: types(i32)}},
		// a pointer to length | pointer<<32, or 0
		{"QJS_ToCString", funcType{Params: types(i32, i64), Results: types(i32)}},
		{"JS_FreeCString", funcType{Params: types(i32, i32)}},
		{"QJS_NewString", funcType{Params: types(i32, i32), Results: types(i64)}},
	}
}

// A value has its type in the upper half, and these have all else in the lower one.
const (
	jsTagInt       = 0
	jsTagUndefined = 3
	jsTagException = 6
	jsUndefined    = uint64(jsTagUndefined) << 32
)

func jsNumber(n int) uint64 { return uint64(uint32(int32(n))) }

func jsInt(v uint64) (int32, bool) { return int32(uint32(v)), v>>32 == jsTagInt }

const (
	// jsStackBytes is the stack of the engine's C. Its own has 64 KiB, is not guarded
	// and lies above its data; the engine looks at none for WebAssembly. So it gets
	// another one, and the meter's count of frames ends calls within each other long
	// before that is used up.
	jsStackBytes = 2 << 20
	jsStackUnits = 256 << 10
	// jsStackPointer is the global that points into it: linkers make it the first.
	jsStackPointer = 0
	// jsStrict has a script run in strict mode.
	jsStrict = 1 << 3
)

// interpreter is where an engine is in the memory of its instance.
type interpreter struct {
	handle   uint64 // of its context; 0 if there is none yet
	stackEnd uint32 // where the stack that it was given ends
	enter    uint64 // the way into the prelude
	loaded   bool   // the script has run
}

// engine is an interpreter in an instance.
type engine struct {
	interpreter
	in *sandbox.Instance
	// over is set if memory was refused and then an exception left the script.
	over *abi.Failure
	// call calls an export and returns its result, if it has one.
	call func(export string, args ...uint64) (uint64, error)
}

// newEngine calls the engine in an instance from outside.
func newEngine(ctx context.Context, in *sandbox.Instance, at interpreter) *engine {
	return &engine{interpreter: at, in: in, call: func(export string, args ...uint64) (uint64, error) {
		results, err := in.Call(ctx, export, args...)
		return first(results), err
	}}
}

// call32 is call for an export whose result is an i32: the engine that runs it
// leaves anything in the upper half.
func (e *engine) call32(export string, args ...uint64) (uint64, error) {
	v, err := e.call(export, args...)
	return uint64(uint32(v)), err
}

func first(results []uint64) uint64 {
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// open makes an interpreter.
func (e *engine) open() error {
	if err := e.moveStack(); err != nil {
		return err
	}
	runtime, err := e.call32("New_QJS", 0, 0, 0, 0)
	if err != nil || runtime == 0 {
		return either(err, e.broken("no interpreter was made"))
	}
	e.handle, err = e.call32("QJS_GetContext", runtime)
	return err
}

// boot makes an interpreter, with the prelude, for the script of that name, unless
// there is one.
func (e *engine) boot(name string) error {
	if e.handle != 0 {
		return nil
	}
	if err := e.open(); err != nil {
		return err
	}
	door, err := e.call("QJS_CreateFunctionProxy", e.handle, 0, 0, 0)
	if err != nil {
		return err
	}
	around, thrown, err := e.eval(preludeName, prelude)
	if err != nil || thrown {
		return either(err, e.broken("the prelude did not run"))
	}
	if e.enter, thrown, err = e.apply(around, door); err != nil || thrown {
		return either(err, e.broken("the prelude did not run"))
	}
	file := e.newString([]byte(name))
	if _, thrown, err = e.apply(e.enter, jsName, file); err != nil || thrown {
		return either(err, e.broken("the prelude did not run"))
	}
	return nil
}

// moveStack gives the engine a larger stack, with something at its end that is there
// as long as it was not exceeded.
func (e *engine) moveStack() (err error) {
	end, err := e.call32("malloc", jsStackBytes)
	if err != nil || end == 0 {
		return either(err, e.noMemory())
	}
	e.stackEnd = uint32(end)
	if !e.in.Write(e.stackEnd, stackMark()) || !e.in.SetGlobal(jsStackPointer, (e.stackEnd+jsStackBytes)&^15) {
		return e.broken("it has no stack that can be moved")
	}
	return nil
}

// exceeded reports whether the engine wrote beyond its stack: then nothing that it
// says counts. What cannot be read any more says nothing.
func (e *engine) exceeded() bool {
	found, ok := e.in.Read(e.stackEnd, uint32(len(stackMark())))
	return ok && !bytes.Equal(found, stackMark())
}

// stackMark is larger than what functions of C leave out of their frames.
func stackMark() []byte { return bytes.Repeat([]byte{0xa5}, 4<<10) }

// broken is the failure of an engine that did not do what engines do.
func (e *engine) broken(what string) error {
	if f := e.in.OverMemory("could not start"); f != nil {
		return f
	}
	return abi.Failf(abi.ClassTrap, "JavaScript engine: %s", what)
}

// eval runs code as a script, and what it leaves to run, and returns its value;
// thrown says that there is an exception instead.
func (e *engine) eval(name string, code []byte) (value uint64, thrown bool, err error) {
	text, err := e.put(code)
	if err != nil {
		return 0, false, err
	}
	file, err := e.put([]byte(name))
	if err != nil {
		return 0, false, err
	}
	options, err := e.call32("QJS_CreateEvalOption", text, 0, 0, file, jsStrict)
	if err != nil || options == 0 {
		return 0, false, either(err, e.noMemory())
	}
	return e.value("QJS_Eval", e.handle, options)
}

// span reads a length and a pointer.
func (e *engine) span(at uint64) (span32, bool) {
	packed, ok := e.in.Read(uint32(at), 8)
	if !ok {
		return span32{}, false
	}
	n := binary.LittleEndian.Uint64(packed)
	return span32{ptr: uint32(n >> 32), len: uint32(n)}, true
}

// apply calls a function of JavaScript.
func (e *engine) apply(function uint64, args ...uint64) (result uint64, thrown bool, err error) {
	values := make([]byte, 0, 8*len(args))
	for _, a := range args {
		values = binary.LittleEndian.AppendUint64(values, a)
	}
	at, err := e.put(values)
	if err != nil {
		return 0, false, err
	}
	return e.value("QJS_Call", e.handle, function, jsUndefined, uint64(len(args)), at)
}

func (e *engine) value(export string, args ...uint64) (value uint64, thrown bool, err error) {
	value, err = e.call(export, args...)
	thrown = err == nil && value>>32 == jsTagException
	if thrown {
		e.over = e.in.OverMemory("ran out of it")
	}
	return value, thrown, err
}

// put copies b into memory that the engine gives, with a NUL behind it. It is not
// given back: what is put there is little, and the instance ends with the call.
func (e *engine) put(b []byte) (uint64, error) {
	at, err := e.call32("malloc", uint64(len(b)+1))
	if err != nil || at == 0 {
		return 0, either(err, e.noMemory())
	}
	if !e.in.Write(uint32(at), b) || !e.in.Write(uint32(at)+uint32(len(b)), []byte{0}) {
		return 0, abi.Failf(abi.ClassTrap, "JavaScript engine: it gave memory that it has not")
	}
	return at, nil
}

func (e *engine) noMemory() error { return e.broken("it has no memory left") }

// span32 is a part of a guest's memory.
type span32 struct{ ptr, len uint32 }

// string returns where the bytes of a string are until free is called; false for
// what is none.
func (e *engine) string(v uint64) (text span32, free func(), ok bool) {
	if is, err := e.call32("QJS_IsString", v); err != nil || is == 0 {
		return text, nil, false
	}
	at, err := e.call32("QJS_ToCString", e.handle, v)
	if err != nil || at == 0 {
		return text, nil, false
	}
	if text, ok = e.span(at); !ok {
		return text, nil, false
	}
	return text, func() {
		_, _ = e.call("JS_FreeCString", e.handle, uint64(text.ptr)) // it unwinds, or works
		_, _ = e.call("free", at)
	}, true
}

// newString returns b as a string, or undefined if the engine has no memory for it.
func (e *engine) newString(b []byte) uint64 {
	at, err := e.put(b)
	if err != nil {
		return jsUndefined
	}
	v, err := e.call("QJS_NewString", e.handle, at)
	if err != nil {
		return jsUndefined
	}
	_, _ = e.call("free", at)
	return v
}

// checkEngine returns an error unless m has what is called of an engine.
func checkEngine(m *wasmbin.Module) error {
	for _, x := range engineExports() {
		if err := checkExport(m, x.name, x.t); err != nil {
			return fmt.Errorf("JavaScript engine: %w", err)
		}
	}
	return nil
}
