package sdk

import (
	"fmt"
	"unsafe"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// served is the module behind the exports. Exports take no context, so this is
// the one variable that has to be a global; it is set once, by [Serve].
var served *Module

func serve(m *Module) {
	if served != nil {
		panic("sdk: Serve is called twice")
	}
	served = m
}

// The imports of hutch:host. Pointers are into this module's own memory, which
// the host reads and writes only during the call.

//go:wasmimport hutch:host input_len
func inputLen() int32

//go:wasmimport hutch:host input_read
func inputRead(off int32, ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host output_write
func outputWrite(ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host result_read
func resultRead(off int32, ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host log
func hostLog(level int32, ptr unsafe.Pointer, n int32)

//go:wasmimport hutch:host progress
func hostProgress(ptr unsafe.Pointer, n int32) int32

//go:wasmimport hutch:host config_get
func hostConfigGet(ptr unsafe.Pointer, n int32) int64

// pointer is where b begins; it is not nil only if b has room.
func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

//go:wasmexport describe
func exportDescribe() int32 {
	if served == nil {
		return fail("the module has no tools: sdk.Serve was not called")
	}
	out, err := served.Describe()
	if err != nil {
		return fail(err.Error())
	}
	served.warm()
	return write(out)
}

//go:wasmexport call
func exportCall() int32 {
	in := make([]byte, inputLen())
	if n := inputRead(0, pointer(in), int32(len(in))); int(n) != len(in) {
		return fail(fmt.Sprintf("the host gave %d bytes of input, not %d", n, len(in)))
	}
	if served == nil {
		return fail("the module has no tools: sdk.Serve was not called")
	}
	out, err := served.Call(imports{}, in)
	if err != nil {
		return fail(err.Error())
	}
	if write(out) == 0 {
		return 0
	}
	// Nothing was written: a result that is too large is one the model can react to.
	return writeResult(tool.Failed(fmt.Sprintf("the result has %d bytes, more than the host takes; ask for less", len(out))))
}

func writeResult(r Result) int32 {
	out, err := encode(r)
	if err != nil {
		return fail(err.Error())
	}
	return write(out)
}

func write(b []byte) int32 { return outputWrite(pointer(b), int32(len(b))) }

// fail makes text the error that the host reports. If even that cannot be
// written, the status alone has to do.
func fail(text string) int32 {
	_ = write([]byte(text))
	return 1
}

// imports is the [Host] of a guest.
type imports struct{}

func (imports) Log(level abi.LogLevel, text string) {
	hostLog(int32(level), unsafe.Pointer(unsafe.StringData(text)), int32(len(text)))
}

// Progress drops what cannot be told: no tool fails for want of an audience.
func (imports) Progress(p Progress) {
	if b, err := encode(p); err == nil {
		hostProgress(pointer(b), int32(len(b)))
	}
}

func (imports) Config(key string) (string, bool) {
	k, err := encode(key)
	if err != nil {
		return "", false
	}
	b, ok := result(hostConfigGet(pointer(k), int32(len(k))))
	if !ok {
		return "", false
	}
	var value *string // null is no value
	if err := decode(b, &value); err != nil || value == nil {
		return "", false
	}
	return *value, true
}

// Gated reads what was left behind even if it is an error, whose length is not told.
func (imports) Gated(op Gated, body []byte) abi.Response {
	n := op.Import(pointer(body), int32(len(body)))
	if n < 0 {
		const longest = 16 << 10
		b := make([]byte, longest)
		got := resultRead(0, pointer(b), longest)
		return abi.Response{Code: abi.Code(-n), Body: b[:max(got, 0)]}
	}
	b, ok := result(n)
	if !ok {
		return abi.Response{Code: abi.Unavailable}
	}
	return abi.Response{Body: b}
}

// result returns the n bytes that the last import left behind.
func result(n int64) (b []byte, ok bool) {
	if n < 0 || n > 1<<30 {
		return nil, false
	}
	b = make([]byte, n)
	return b, int64(resultRead(0, pointer(b), int32(n))) == n
}
