package dialecttest

// code is the body of one function: after the parameters it has four i32 locals
// and two i64 locals, for whoever writes it.
type code struct {
	a      *assembler
	params uint32
	b      []byte
}

// Opcodes used here.
const (
	opUnreachable = 0x00
	opBlock       = 0x02
	opLoop        = 0x03
	opIf          = 0x04
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opReturn      = 0x0f
	opDrop        = 0x1a
	opI32Eqz      = 0x45
	opI32Eq       = 0x46
	opI32LtS      = 0x48
	opI32GeU      = 0x4f
	opI64Eqz      = 0x50
	opI32Add      = 0x6a
	opI32Sub      = 0x6b
	opI64Add      = 0x7c
	opI32Wrap     = 0xa7
	opI64ExtendU  = 0xad
	opMemoryGrow  = 0x40
	void          = 0x40
)

// Globals of a built module: where the output block of a v1 guest lies, how
// much of it is written, and how often the guest was called.
const (
	globalBlock = 0
	globalSize  = 1
	globalCount = 2
)

func (c *code) op(b ...byte) *code { c.b = append(c.b, b...); return c }

func (c *code) i32(v int32) *code { return c.op(0x41).op(sleb(int64(v))...) }
func (c *code) i64(v int64) *code { return c.op(0x42).op(sleb(v)...) }

func (c *code) call(f uint32) *code { return c.op(0x10).op(uleb(f)...) }

func (c *code) get(local uint32) *code { return c.op(0x20).op(uleb(local)...) }
func (c *code) set(local uint32) *code { return c.op(0x21).op(uleb(local)...) }

// word and long return the nth scratch local of either type.
func (c *code) word(n uint32) uint32 { return c.params + n }
func (c *code) long(n uint32) uint32 { return c.params + 4 + n }

func (c *code) global(n byte) *code    { return c.op(0x23, n) }
func (c *code) setGlobal(n byte) *code { return c.op(0x24, n) }

func (c *code) load8() *code   { return c.op(0x2d, 0, 0) }
func (c *code) store8() *code  { return c.op(0x3a, 0, 0) }
func (c *code) store32() *code { return c.op(0x36, 0, 0) }
func (c *code) store64() *code { return c.op(0x37, 0, 0) }

// repeat runs body n times, counting in local.
func (c *code) repeat(local uint32, n func(*code), body func(*code)) *code {
	c.i32(0).set(local)
	c.op(opBlock, void, opLoop, void)
	c.get(local)
	n(c)
	c.op(opI32GeU, opBrIf, 1)
	body(c)
	c.get(local).i32(1).op(opI32Add).set(local)
	return c.op(opBr, 0, opEnd, opEnd)
}

func times(n int) func(*code) { return func(c *code) { c.i32(int32(n)) } }

func (c *code) steps(list []Step) {
	for _, s := range list {
		s(c)
	}
}

// finish returns 0, after a v1 guest has said where its output lies.
func (c *code) finish() {
	if c.a.v1 {
		c.global(globalBlock).global(globalSize).call(c.extism("output_set", i64s(2), ""))
	}
	c.i32(0)
}

// text pushes pointer and length of s.
func (c *code) text(s string) *code {
	ptr, length := c.a.text(s)
	return c.i32(ptr).i32(length)
}

func (c *code) native(name, params, results string) uint32 {
	return c.a.imported("hutch:host", name, sig(params, results))
}

func (c *code) extism(name, params, results string) uint32 {
	return c.a.imported("extism:host/env", name, sig(params, results))
}

func (c *code) wasi(name, params string) uint32 {
	return c.a.imported("wasi_snapshot_preview1", name, sig(params, "\x7f"))
}

func i32s(n int) string { return string(repeatByte(i32, n)) }
func i64s(n int) string { return string(repeatByte(i64, n)) }

func repeatByte(b byte, n int) []byte {
	s := make([]byte, n)
	for i := range s {
		s[i] = b
	}
	return s
}

// write appends (ptr, len) on the stack to the output.
func (c *code) write() *code {
	if !c.a.v1 {
		return c.call(c.native("output_write", i32s(2), i32s(1))).op(opDrop)
	}
	return c.call(c.a.function("write", sig(i32s(2), ""), writeV1))
}

// outputBlockBytes is what a v1 guest allocates for its output, beside what its
// Output steps write.
const outputBlockBytes = 512 << 10

func writeV1(c *code) {
	c.global(globalBlock).op(opI64Eqz, opIf, void)
	c.i64(outputBlockBytes + c.a.letters).call(c.extism("alloc", i64s(1), i64s(1))).setGlobal(globalBlock)
	c.op(opEnd)
	c.repeat(c.word(0), func(c *code) { c.get(1) }, func(c *code) {
		c.global(globalBlock).global(globalSize).op(opI64Add)
		c.get(0).get(c.word(0)).op(opI32Add).load8()
		c.call(c.extism("store_u8", i64s(1)+i32s(1), ""))
		c.global(globalSize).i64(1).op(opI64Add).setGlobal(globalSize)
	})
}

// block turns (ptr, len) on the stack into an Extism block with these bytes.
func (c *code) block() *code {
	return c.call(c.a.function("block", sig(i32s(2), i64s(1)), func(c *code) {
		c.get(1).op(opI64ExtendU).call(c.extism("alloc", i64s(1), i64s(1))).set(c.long(0))
		c.repeat(c.word(0), func(c *code) { c.get(1) }, func(c *code) {
			c.get(c.long(0)).get(c.word(0)).op(opI64ExtendU, opI64Add)
			c.get(0).get(c.word(0)).op(opI32Add).load8()
			c.call(c.extism("store_u8", i64s(1)+i32s(1), ""))
		})
		c.get(c.long(0))
	}))
}

// read copies the input from (off, ptr, len) and leaves how much there was.
func (c *code) read() *code {
	if !c.a.v1 {
		return c.call(c.native("input_read", i32s(3), i32s(1)))
	}
	return c.call(c.a.function("read", sig(i32s(3), i32s(1)), readV1))
}

func readV1(c *code) {
	length := c.extism("input_length", "", i64s(1))
	c.op(opBlock, void)
	c.repeat(c.word(0), func(c *code) { c.get(2) }, func(c *code) {
		c.get(0).get(c.word(0)).op(opI32Add)
		c.call(length).op(opI32Wrap, opI32GeU, opBrIf, 2)
		c.get(1).get(c.word(0)).op(opI32Add)
		c.get(0).get(c.word(0)).op(opI32Add, opI64ExtendU)
		c.call(c.extism("input_load_u8", i64s(1), i32s(1))).store8()
	})
	c.op(opEnd).get(c.word(0))
}
