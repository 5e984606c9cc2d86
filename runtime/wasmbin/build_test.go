package wasmbin_test

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// Short names for what the many modules below are written with.

func x(digits string) []byte { return wasmbintest.Hex(digits) }

func u(n int) []byte { return wasmbintest.Uint(n) }

func join(parts ...[]byte) []byte { return wasmbintest.Join(parts...) }

func module(sections ...[]byte) []byte { return wasmbintest.Module(sections...) }

func section(id byte, body ...[]byte) []byte { return wasmbintest.Section(id, body...) }

func repeat(n int, entry []byte) []byte { return wasmbintest.Repeat(n, entry) }

func name(s string) []byte { return wasmbintest.Name(s) }

func custom(title string, payload []byte) []byte { return wasmbintest.Custom(title, payload) }

// good is a module with something in every section: an imported and two own
// functions, one of each segment, two custom sections.
func good() []byte {
	return module(
		custom("name", x("00 02 01 67")),
		section(1, x("02 60 00 00 60 02 7f7e 01 7c")),
		section(2, x("01"), name("hutch:host"), name("log"), x("00 00")),
		section(3, x("02 00 01")),
		section(4, x("01 70 01 02 03")),
		section(5, x("01 01 01 02")),
		section(6, x("02 7f 01 41 2a 0b 7b 00 fd0c 00000000000000000000000000000000 0b")),
		section(7, x("02"), name("memory"), x("02 00"), name("call"), x("00 02")),
		section(8, x("01")),
		section(9, x("02 00 41 00 0b 01 01  05 70 02 d0 70 0b d2 02 0b")),
		section(12, x("02")),
		section(10, x("02 02 00 0b 0d 01 02 7b"), x("44 0000000000000000 0b")),
		section(11, x("02 00 41 00 0b 02"), []byte("hi"), x("01 00")),
		custom("hutch.manifest", []byte(`{"tools":[]}`)),
	)
}

func check(t *testing.T, b []byte) *wasmbin.Module {
	t.Helper()
	m, err := wasmbin.Check(b, wasmbin.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// refused checks that b is refused with exactly this message.
func refused(t *testing.T, b []byte, want string) {
	t.Helper()
	m, err := wasmbin.Check(b, wasmbin.Budget{})
	if err == nil {
		t.Fatalf("accepted; want %q", want)
	}
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if m != nil {
		t.Error("a module beside an error")
	}
}
