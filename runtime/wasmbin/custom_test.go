package wasmbin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// customs are n sections that are ours, each with size bytes.
func customs(n, size int) []byte {
	var all []byte
	for i := range n {
		all = join(all, custom(fmt.Sprintf("hutch.%d", i), make([]byte, size)))
	}
	return all
}

func TestCustomSectionsOfOurs(t *testing.T) {
	m := check(t, module(customs(8, wasmbin.MaxCustomBytes), custom("hutch", x("01")), custom("other", make([]byte, 1<<20))))
	if len(m.Custom) != 8 || len(m.Custom["hutch.7"]) != wasmbin.MaxCustomBytes {
		t.Errorf("%d kept", len(m.Custom))
	}
	refused(t, module(custom("hutch.x", nil), custom("hutch.x", nil)),
		`custom section: a second one named "hutch.x" (at offset 0x14)`)
	refused(t, module(custom("hutch.x", make([]byte, wasmbin.MaxCustomBytes+1))),
		`custom section: "hutch.x" has 262145 bytes, at most 262144 (at offset 0xc)`)
	refused(t, module(customs(9, 0)),
		`custom section: 9 sections named "hutch.*", at most 8 (at offset 0x5a)`)
}

func TestCustomPayloadIsACopy(t *testing.T) {
	b := module(custom("hutch.x", []byte("before")))
	m := check(t, b)
	copy(b[len(b)-6:], "after!")
	if got := string(m.Custom["hutch.x"]); got != "before" {
		t.Errorf("payload %q", got)
	}
}

func TestStripped(t *testing.T) {
	bare := check(t, good()).Stripped()
	m := check(t, bare)
	if m.Custom != nil || len(m.Exports) != 2 || bytes.Contains(bare, []byte("hutch.manifest")) {
		t.Errorf("stripped: %+v", m)
	}
	if again := m.Stripped(); &again[0] != &bare[0] {
		t.Error("copied, although there was nothing to leave out")
	}
}

func TestAppendCustom(t *testing.T) {
	base := module(section(1, x("00")))
	one, err := wasmbin.AppendCustom(base, "hutch.x", []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := wasmbin.AppendCustom(join(one, custom("hutch.x", []byte("doubled")), custom("name", x("01"))), "hutch.x", []byte("second"))
	if err != nil {
		t.Fatal(err)
	}
	if want := join(base, custom("name", x("01")), custom("hutch.x", []byte("second"))); !bytes.Equal(two, want) {
		t.Errorf("got  %x\nwant %x", two, want)
	}
	if !bytes.Equal(base, module(section(1, x("00")))) {
		t.Error("the module itself was changed")
	}
}

func TestAppendCustomRefuses(t *testing.T) {
	long := strings.Repeat("n", 256)
	tests := []struct {
		name, title string
		wasm        []byte
		payload     int
		want        string
	}{
		{"not wasm", "n", []byte("text"), 0, `header: not a WebAssembly module: it starts with "text" (at offset 0x0)`},
		{"nothing", "n", nil, 0, "header: the file is empty (at offset 0x0)"},
		{"cut section", "n", module(x("01 05 00")), 0, "type section: 5 bytes, but 1 bytes left (at offset 0x9)"},
		{"name over its section", "n", module(x("00 01 05"), custom("n", nil)), 0,
			"custom section: 5 bytes, but 0 bytes left (at offset 0xa)"},
		{"name", "\xff", module(), 0, `custom section: name "\xff" of 1 bytes, at most 255 of UTF-8`},
		{"long name", long, module(), 0, `custom section: name "` + long[:64] + `" of 256 bytes, at most 255 of UTF-8`},
		{"payload", "n", module(), wasmbin.MaxCustomBytes + 1, `custom section: "n" has 262145 bytes, at most 262144`},
		{"one too many", "hutch.x", module(customs(8, 0)), 0, `custom section: 8 named "hutch.*" already, at most 8`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := wasmbin.AppendCustom(tt.wasm, tt.title, make([]byte, tt.payload))
			if err == nil || err.Error() != tt.want || out != nil {
				t.Errorf("got  %v (%d bytes)\nwant %s", err, len(out), tt.want)
			}
		})
	}
	for _, title := range []string{"hutch.7", "name", long[:255]} { // replaces, is not ours, just fits
		if _, err := wasmbin.AppendCustom(module(customs(8, 0)), title, make([]byte, wasmbin.MaxCustomBytes)); err != nil {
			t.Errorf("%.10s: %v", title, err)
		}
	}
}

func TestWithoutCustom(t *testing.T) {
	base := join(module(section(1, x("00"))), custom("hutch.y", []byte("kept")))
	both := join(base, custom("hutch.x", []byte("first")), custom("hutch.x", []byte("second")))
	if got, err := wasmbin.WithoutCustom(both, "hutch.x"); err != nil || !bytes.Equal(got, base) {
		t.Errorf("got %x, %v", got, err)
	}
	if got, err := wasmbin.WithoutCustom(base, "hutch.x"); err != nil || &got[0] != &base[0] {
		t.Errorf("copied, although there was nothing to leave out: %v", err)
	}
	for _, bad := range [][]byte{nil, x("00"), both[:len(both)-1], join(base, x("00ff"))} {
		if _, err := wasmbin.WithoutCustom(bad, "hutch.x"); err == nil {
			t.Errorf("%x is accepted", bad)
		}
	}
}
