package wasmbin_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// seeds are good modules and hostile ones.
func seeds() [][]byte {
	const most = "ffffffff0f"
	all := [][]byte{
		nil, module(), good(), x("0061736d0d000100"), x("0061736d0100000005050100808004"),
		x("0061736d0100000001070160" + most),
		x("0061736d0100000001040160000003020100070501016600000a0901070003400c000b0b"),
		x("0061736d0100000001040160000003020100070501016600000a0601040010000b"),
		x("0061736d0100000001040160000003020100040401700001070501016600000a140112000340d070418080c000fc0f001a0c000b0b"),
		module(functions(2, x("01 d08603 7f 0b"))), module(customs(2, 3)),
		module(section(1, x("01 60 00 00")), section(2, x("01 00 00 00 00")), section(4, x("02 70 00 01 6f 00 01")),
			section(9, x("08  00 4100 0b 01 00  01 00 01 00  02 01 4100 0b 00 01 00  03 00 01 00"+
				"04 4100 0b 01 d200 0b  05 70 01 d070 0b  06 01 4100 0b 6f 01 d06f 0b  07 70 01 d200 0b"))),
	}
	for id := range byte(14) {
		all = append(all, join(module(), []byte{id}, x("05"+most)))
	}
	for _, l := range wasmbintest.Limits() {
		all = append(all, l.Build(30))
	}
	return append(all, bodies()...)
}

// bodies are modules whose code has an instruction of each kind, and some that
// is wrong.
func bodies() (all [][]byte) {
	for _, code := range []string{
		"0b", "00 0f 0b", "027f 4100 0b 1a 0b", "0340 2000 0d00 0b 0b", "2000 0440 05 0b 0b", "0200 1000 0b 0b", "2000 0e02 00 00 00 0b",
		"0240 0340 0240 0c02 0b 0b 0b 0b", "2000 110000 0b", "2000 2100 2000 2200 1a 0b", "2300 2400 0b",
		"4100 2500 4100 4100 1c0170 1a 0b", "d070 d1 1a d200 1a 0b", "4100 28 02 10 1a 4100 4200 37 03 00 0b", "3f00 4000 1a 0b",
		"417f 1a 427f 1a 43 00000000 1a 44 0000000000000000 1a 0b", "43 00000000 fc00 1a 0b",
		"4100 4100 4100 fc080000 fc0900 4100 4100 4100 fc0a0000 4100 4100 4100 fc0b00 0b",
		"4100 4100 4100 fc0c0000 fc0d00 4100 4100 4100 fc0e0000 d070 4101 fc0f00 1a fc1000 1a 0b",
		"fd0c 000102030405060708090a0b0c0d0e0f 1a 0b", "00 fd0d 000102030405060708090a0b0c0d0e1f 00 0b", "00 fd540000 01 fd150f fd8001 fdae01 00 0b",
		"12000b", "fd8c8000 0b", "fe0000 0b", "0240 0b", "05 0b", "0b 0b", "2801000b", "0c050b", "0effffffff0f000b",
	} {
		all = append(all, full(x(code)))
	}
	return append(all, inBody(nested(100, "0240")), inBody(brTable(100)), wasmbintest.LoopsOverLocals(10, 70), wasmbintest.Passing(100, 600),
		x("0061736d010000000105016000017f030201000503010001071002066d656d6f727902000372756e00000a1801160042ffffffffffffffffff00240003400c000b41000b"))
}

// sectionIDs walks the frames of an accepted module, independently.
func sectionIDs(t *testing.T, b []byte) (ids []byte) {
	t.Helper()
	for b = b[8:]; len(b) > 0; {
		size, n := binary.Uvarint(b[1:])
		ids = append(ids, b[0])
		b = b[1+n+int(size):]
	}
	return ids
}

func FuzzCheck(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		m, err := wasmbin.Check(b, wasmbin.Budget{})
		if !bytes.Equal(b, before) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if m != nil {
				t.Fatal("a module beside an error")
			}
			return
		}
		stripped := m.Stripped()
		if bytes.IndexByte(sectionIDs(t, stripped), 0) >= 0 {
			t.Fatalf("a custom section in %x", stripped)
		}
		again, err := wasmbin.Check(stripped, wasmbin.Budget{})
		if err != nil {
			t.Fatalf("stripped: %v", err)
		}
		if !bytes.Equal(again.Stripped(), stripped) {
			t.Fatal("stripping twice differs from stripping once")
		}
		if !reflect.DeepEqual(again.Imports, m.Imports) || !reflect.DeepEqual(again.Exports, m.Exports) {
			t.Fatal("stripping changed imports or exports")
		}
	})
}

func FuzzAppendCustom(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, "hutch.manifest", []byte("{}"))
		f.Add(s, "name", []byte{0})
	}
	f.Fuzz(func(t *testing.T, b []byte, title string, payload []byte) {
		out, err := wasmbin.AppendCustom(b, title, payload)
		m, errBefore := wasmbin.Check(b, wasmbin.Budget{})
		if err != nil {
			if out != nil {
				t.Fatal("bytes beside an error")
			}
			return
		}
		if again, err := wasmbin.AppendCustom(out, title, payload); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("not the same the second time: %v", err)
		}
		after, err := wasmbin.Check(out, wasmbin.Budget{FileBytes: len(out)})
		if errBefore != nil {
			return // AppendCustom looks at frames only
		}
		if err != nil {
			t.Fatalf("accepted before, then: %v", err)
		}
		if !bytes.Equal(after.Stripped(), m.Stripped()) {
			t.Fatal("more than custom sections changed")
		}
		if got, kept := after.Custom[title]; kept && !bytes.Equal(got, payload) {
			t.Fatalf("payload %q", got)
		}
	})
}
