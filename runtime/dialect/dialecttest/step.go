package dialecttest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// Step is one thing that a built guest does.
type Step func(*code)

// Write appends s to the output as it is.
func Write(s string) Step { return func(c *code) { c.text(s).write() } }

// Result writes a whole result, as JSON.
func Result(jsonText string) Step { return Write(jsonText) }

// Text writes a result of one text block.
func Text(s string) Step {
	b, err := json.Marshal(tool.Text(s))
	if err != nil {
		panic("dialecttest: text: " + err.Error())
	}
	return Write(string(b))
}

// structured writes a result whose structured content is what inner writes.
func structured(inner Step) Step {
	return func(c *code) {
		Write(`{"content":[],"structuredContent":`)(c)
		inner(c)
		Write(`}`)(c)
	}
}

// Echo writes a result whose structured content is the call's input, which may
// have 500 KB in a v1 guest.
func Echo() Step { return structured(copyInput) }

func copyInput(c *code) {
	buffer, offset, n := c.a.buffer(), c.word(1), c.word(2)
	c.i32(0).set(offset)
	c.op(opBlock, void, opLoop, void)
	c.get(offset).i32(buffer).i32(bufferBytes).read().set(n)
	c.get(n).op(opI32Eqz, opBrIf, 1)
	c.i32(buffer).get(n).write()
	c.get(offset).get(n).op(opI32Add).set(offset)
	c.op(opBr, 0, opEnd, opEnd)
}

// Output writes a result of one text block of n letters; n is rounded down to
// whole KiB.
func Output(n int) Step {
	letters := strings.Repeat("x", 1024)
	return func(c *code) {
		c.a.letters += int64(n)
		Write(`{"content":[{"type":"text","text":"`)(c)
		c.repeat(c.word(1), times(n/1024), func(c *code) { c.text(letters).write() })
		Write(`"}]}`)(c)
	}
}

// Log writes a line n times to the log.
func Log(level abi.LogLevel, n int, line string) Step {
	return func(c *code) {
		c.repeat(c.word(1), times(n), func(c *code) {
			if c.a.v1 {
				name := [...]string{"log_trace", "log_debug", "log_info", "log_warn", "log_error"}[level]
				c.text(line).block().call(c.extism(name, i64s(1), ""))
				return
			}
			c.i32(int32(level)).text(line).call(c.native("log", i32s(3), ""))
		})
	}
}

// Print writes s to WASI's standard output (fd 1) or error (fd 2).
func Print(fd int, s string) Step {
	return func(c *code) {
		ptr, length := c.a.text(s)
		c.i32(scratch).i32(ptr).store32()
		c.i32(scratch + 4).i32(length).store32()
		c.i32(int32(fd)).i32(scratch).i32(1).i32(scratch + 8).call(c.wasi("fd_write", i32s(4))).op(opDrop)
	}
}

// Op asks n times for a gated operation and answers with the last result as
// structured content. A v1 guest knows http_request only, and answers with the
// response body.
func Op(op abi.Op, n int, body string) Step {
	return structured(func(c *code) {
		if c.a.v1 {
			c.repeat(c.word(1), times(n), func(c *code) {
				c.text(body).block().i64(0).call(c.extism("http_request", i64s(2), i64s(1))).set(c.long(0))
			})
			copyBlock(c)
			return
		}
		c.repeat(c.word(1), times(n), func(c *code) {
			c.text(body).call(c.native(string(op), i32s(2), i64s(1))).op(opDrop)
		})
		copyResult(c)
	})
}

// Ask does nothing unless the tool that is called has this name; no other of the
// module may begin with the same letter. It asks for the operation with the
// arguments of the call as its body, which are at most 60 KiB, and answers with
// the result as structured content. Only a native guest can.
func Ask(name string, op abi.Op) Step {
	const head = `{"method":"tools/call","params":{"name":"`
	before, after := int32(len(head+name+`","arguments":`)), int32(len("}}"))
	ask := structured(func(c *code) {
		buffer, n := c.a.buffer(), c.word(2)
		c.i32(before).i32(buffer).i32(bufferBytes).read().set(n)
		c.i32(buffer).get(n).i32(after).op(opI32Sub)
		c.call(c.native(string(op), i32s(2), i64s(1))).op(opDrop)
		copyResult(c)
	})
	return func(c *code) {
		c.i32(int32(len(head))).i32(c.a.buffer()).i32(1).read().op(opDrop)
		c.i32(c.a.buffer()).load8().i32(int32(name[0])).op(opI32Eq, opIf, void)
		ask(c)
		c.op(opEnd)
	}
}

// Config answers with the value of a configuration key as structured content:
// a JSON string, or null. A v1 guest answers with the bare value.
func Config(key string) Step {
	return structured(func(c *code) {
		if c.a.v1 {
			c.text(key).block().call(c.extism("config_get", i64s(1), i64s(1))).set(c.long(0))
			copyBlock(c)
			return
		}
		b, err := json.Marshal(key)
		if err != nil {
			panic("dialecttest: config: " + err.Error())
		}
		c.text(string(b)).call(c.native("config_get", i32s(2), i64s(1))).op(opDrop)
		copyResult(c)
	})
}

// copyResult writes what result_read gives.
func copyResult(c *code) {
	buffer, offset, n := c.a.buffer(), c.word(1), c.word(2)
	c.i32(0).set(offset)
	c.op(opBlock, void, opLoop, void)
	c.get(offset).i32(buffer).i32(bufferBytes).call(c.native("result_read", i32s(3), i32s(1))).set(n)
	c.get(n).i32(1).op(opI32LtS, opBrIf, 1)
	c.i32(buffer).get(n).write()
	c.get(offset).get(n).op(opI32Add).set(offset)
	c.op(opBr, 0, opEnd, opEnd)
}

// copyBlock writes the Extism block in the first i64 local, or null.
func copyBlock(c *code) {
	buffer := c.a.buffer()
	c.get(c.long(0)).op(opI64Eqz, opIf, void)
	Write("null")(c)
	c.op(opEnd)
	c.repeat(c.word(1), func(c *code) {
		c.get(c.long(0)).call(c.extism("length", i64s(1), i64s(1))).op(opI32Wrap)
	}, func(c *code) {
		c.i32(buffer)
		c.get(c.long(0)).get(c.word(1)).op(opI64ExtendU, opI64Add).call(c.extism("load_u8", i64s(1), i32s(1)))
		c.store8()
		c.i32(buffer).i32(1).write()
	})
}

// Progress reports progress n times. Only a native guest can.
func Progress(n int, body string) Step {
	return func(c *code) {
		c.repeat(c.word(1), times(n), func(c *code) {
			c.text(body).call(c.native("progress", i32s(2), i32s(1))).op(opDrop)
		})
	}
}

// Loop never ends.
func Loop() Step { return func(c *code) { c.op(opLoop, void, opBr, 0, opEnd) } }

// Exponential never ends either, but has no loop: it calls itself 2^60 times.
func Exponential() Step {
	return func(c *code) {
		var f uint32
		f = c.a.function("exponential", sig(i32s(1), ""), func(c *code) {
			c.get(0).op(opIf, void)
			for range 2 {
				c.get(0).i32(1).op(opI32Sub).call(f)
			}
			c.op(opEnd)
		})
		c.i32(60).call(f)
	}
}

// Recurse calls itself until the stack ends.
func Recurse() Step {
	return func(c *code) {
		var f uint32
		f = c.a.function("recurse", sig(i64s(1), i64s(1)), func(c *code) {
			c.get(0).i64(1).op(opI64Add).call(f).get(0).op(opI64Add)
		})
		c.i64(0).call(f).op(opDrop)
	}
}

// Trap executes unreachable.
func Trap() Step { return func(c *code) { c.op(opUnreachable) } }

// Exit leaves through WASI's proc_exit.
func Exit(status int) Step {
	return func(c *code) {
		c.i32(int32(status)).call(c.a.imported("wasi_snapshot_preview1", "proc_exit", sig(i32s(1), "")))
	}
}

// Sleep waits in WASI's poll_oneoff.
func Sleep(d time.Duration) Step {
	return func(c *code) {
		const subscription, event, count = scratch, scratch + 64, scratch + 128
		c.i32(subscription).i64(0).store64()
		c.i32(subscription + 8).i64(0).store64()  // a clock
		c.i32(subscription + 16).i64(1).store64() // the monotonic one
		c.i32(subscription + 24).i64(int64(d)).store64()
		c.i32(subscription + 32).i64(0).store64()
		c.i32(subscription + 40).i64(0).store64() // a duration, not a time
		c.i32(subscription).i32(event).i32(1).i32(count).call(c.wasi("poll_oneoff", i32s(4))).op(opDrop)
	}
}

// Grow asks for so many more pages of memory, and fails with the text
// "no memory" if they are refused.
func Grow(pages int) Step {
	return func(c *code) {
		c.i32(int32(pages)).op(opMemoryGrow, 0).i32(-1).op(opI32Eq, opIf, void)
		Fail(1, "no memory")(c)
		c.op(opEnd)
	}
}

// GrowOrTrap asks for so many more pages of memory, and executes unreachable if
// they are refused, as an allocator that cannot fail does.
func GrowOrTrap(pages int) Step {
	return func(c *code) {
		c.i32(int32(pages)).op(opMemoryGrow, 0).i32(-1).op(opI32Eq, opIf, void)
		Trap()(c)
		c.op(opEnd)
	}
}

// GrowInVain asks for so many more pages of memory, and goes on without them.
func GrowInVain(pages int) Step {
	return func(c *code) { c.i32(int32(pages)).op(opMemoryGrow, 0).op(opDrop) }
}

// Fail reports an error and returns code.
func Fail(status int, text string) Step {
	return func(c *code) {
		if c.a.v1 {
			c.text(text).block().call(c.extism("error_set", i64s(1), ""))
		} else {
			c.text(text).write()
		}
		c.i32(int32(status)).op(opReturn)
	}
}

// Count answers {"n":N} as structured content: the Nth call of this instance,
// up to 9.
func Count() Step {
	return structured(func(c *code) {
		Write(`{"n":`)(c)
		c.global(globalCount).i32(1).op(opI32Add).setGlobal(globalCount)
		c.i32(c.a.buffer()).global(globalCount).i32('0').op(opI32Add).store8()
		c.i32(c.a.buffer()).i32(1).write()
		Write(`}`)(c)
	})
}

// Import calls any imported function with constant arguments and drops what it
// returns. Params and results have an i for each i32 and an l for each i64.
func Import(module, name, params, results string, args ...int64) Step {
	return func(c *code) {
		for i, p := range params {
			if p == 'l' {
				c.i64(args[i])
			} else {
				c.i32(int32(args[i]))
			}
		}
		encode := strings.NewReplacer("i", i32s(1), "l", i64s(1))
		c.call(c.a.imported(module, name, sig(encode.Replace(params), encode.Replace(results))))
		for range results {
			c.op(opDrop)
		}
	}
}
