package worker

import (
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// scribblerPages is how much memory a scribbler has where its calls begin, which is
// more than is brought back page by page.
const scribblerPages = 24

// scribbler is a guest whose tools, each known by its first letter, do this:
//
//	check      answer with all that they find: memory but for its first 8 bytes, how
//	           much there is, and globals, in 8 bytes
//	fill       write all memory and all globals, then check
//	grow       take two more pages of 64 KiB, then fill
//	trap       fill, then trap
//	deep       fill, then call themselves for ever
//	loop       fill, log a line, then never end
//	steady     look at all memory a thousand times, then check
//	wait       look at all memory and ask for a value, until it is {}, then check
//
// Describing changes memory and globals and grows memory, so that calls begin in a
// state which the module's bytes do not have.
func scribbler() []byte {
	b, name, join := wasmbintest.Hex, wasmbintest.Name, wasmbintest.Join
	host := func(field string, typ byte) []byte { return join(name("hutch:host"), name(field), []byte{0, typ}) }
	text := `{"tools":[{"name":"check","inputSchema":{"type":"object"}}]}`
	return wasmbintest.Module(
		// () -> i32, (i32, i32, i32) -> i32, (i32, i32) -> i32, () -> (), () -> i64,
		// (i32, i32) -> i64, (i32, i32, i32) -> ()
		wasmbintest.Section(1, wasmbintest.Vector(b("60 00 01 7f"), b("60 03 7f7f7f 01 7f"), b("60 02 7f7f 01 7f"), b("60 00 00"), b("60 00 01 7e"),
			b("60 02 7f7f 01 7e"), b("60 03 7f7f7f 00"))),
		wasmbintest.Section(2, wasmbintest.Vector(host("input_read", 1), host("output_write", 2), host("kv_get", 5), host("log", 6))),
		wasmbintest.Section(3, wasmbintest.Vector([]byte{0}, []byte{0}, []byte{3}, []byte{4}, []byte{0}, []byte{3})),
		wasmbintest.Section(5, b("01 00 02")),
		wasmbintest.Section(6, wasmbintest.Vector(b("7f 01 4107 0b"), b("7e 01 4208 0b"), b("7d 01 43 00000041 0b"), b("7c 01 44 0000000000002240 0b"))),
		wasmbintest.Section(7, wasmbintest.Vector(join(name("memory"), b("02 00")), join(name("describe"), b("00 04")), join(name("call"), b("00 05")))),
		wasmbintest.Section(10, wasmbintest.Vector(
			scribblerDescribes(len(text)), scribblerCalls(),
			// 6, scribble: memory.fill with 9; every global another value
			wasmbintest.Func(b("00"), b("4100 4109 3f00 4110 74 fc0b00"), b("417f 2400 427f 2401 43 0000803f 2402 44 000000000000f03f 2403")),
			scribblerState(),
			// 8, check: memory[8] = state(); output_write(8, 8)
			wasmbintest.Func(b("00"), b("4108 1007 370300 4108 4108 1001")),
			// 9, deep
			wasmbintest.Func(b("00"), b("1009")),
		)),
		wasmbintest.Section(11, wasmbintest.Vector(join(b("00 418008 0b"), name(text)), join(b("00 418010 0b"), name(`{"key":"a"}`)))),
	)
}

// scribblerDescribes is function 4: it grows memory to all its pages, writes to the
// last of them and sets the first global, then writes its description.
func scribblerDescribes(length int) []byte {
	b := wasmbintest.Hex
	return wasmbintest.Func(b("00"),
		b("41"), wasmbintest.Int(scribblerPages-2), b("4000 1a"),
		b("41"), wasmbintest.Int(scribblerPages<<16-1), b("4105 3a0000 41cd00 2400"),
		b("418008 41"), wasmbintest.Int(length), b("1001"))
}

// scribblerCalls is function 5: the tool's first letter is read to 0.
func scribblerCalls() []byte {
	b, join := wasmbintest.Hex, wasmbintest.Join
	when := func(letter byte, code string) []byte {
		return join(b("2000 41"), wasmbintest.Int(int(letter)), b("46 0440"), b(code), b("0b"))
	}
	const head = `{"method":"tools/call","params":{"name":"`
	return wasmbintest.Func(b("01 02 7f"),
		b("41"), wasmbintest.Int(len(head)), b("4100 4101 1000 1a 4100 2d0000 2100"),
		when('f', "1006"),
		when('g', "4102 4000 1a 1006"),
		when('t', "1006 00"),
		when('d', "1006 1009"),
		when('l', "1006 4102 4100 4101 1003 0340 0c00 0b"),
		when('s', "0340 1007 1a 2001 4101 6a 2201 41e807 48 0d00 0b"),
		when('w', "0340 1007 1a 418010 410b 1002 4202 52 0d00 0b"),
		b("1008"))
}

// scribblerState is function 7. Each step loses nothing of what was there before, so
// two states that differ in one place have two results.
func scribblerState() []byte {
	b, join := wasmbintest.Hex, wasmbintest.Join
	mix := func(value string) []byte {
		return join(b("2000"), b(value), b("85 42"), wasmbintest.Int(0x100000001b3), b("7e 2100"))
	}
	return wasmbintest.Func(b("02 01 7e 01 7f"),
		b("4108 2101 0340"), mix("2001 290300"), b("2001 4108 6a 2201 3f00 4110 74 49 0d00 0b"),
		mix("3f00 ad"), mix("2300 ad"), mix("2301"), mix("2302 bc ad"), mix("2303 bd"), b("2000"))
}
