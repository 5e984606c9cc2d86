package wasmbin_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
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
		module(functions(2, x("01 d08603 7f 0b"))), locals(3), exports(3), module(customs(2, 3)),
		module(section(1, x("01 60 00 00")), section(2, x("01 00 00 00 00")), section(4, x("02 70 00 01 6f 00 01")),
			section(9, x("08  00 4100 0b 01 00  01 00 01 00  02 01 4100 0b 00 01 00  03 00 01 00"+
				"04 4100 0b 01 d200 0b  05 70 01 d070 0b  06 01 4100 0b 6f 01 d06f 0b  07 70 01 d200 0b"))),
	}
	for id := range byte(14) {
		all = append(all, join(module(), []byte{id}, x("05"+most)))
	}
	return all
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
