package abi_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 0, ""},
		{"plain", 5, "plain"},
		{"plain!", 5, "pl…"},
		{"äöü", 6, "äöü"},
		{"äöüß", 7, "äö…"},
		{"äöüß", 6, "ä…"},
		{"a👍🏽b", 8, "a👍…"},
		{"a👍🏽b", 7, "a…"},
		{"äöü", 2, "ä"},
		{"äöü", 1, ""},
		{"plain", 0, ""},
		{"plain", -1, ""},
		{"a\nb\u202ec", 20, "a\nb\u202ec"},
		{strings.Repeat("\xbf", 9), 8, strings.Repeat("\xbf", 5) + "…"},
	} {
		if got := abi.Cut(c.in, c.most); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"", 9, ""},
		{"größe 👍🏽 ❤️", 99, "größe 👍🏽 ❤️"},
		{"a\r\n\tb\n", 9, "a   b "},
		{"a\vb\fc\u0085d\u2028e\u2029f", 99, "a b c d e f"},
		{"\x1b[2Ja\x00\x7f\u009b", 99, "�[2Ja���"},
		{"a\u202eb\u2066c\u200fd", 99, "a�b�c�d"},
		{"a\u200bb\u200dc\ufeffd\u00ade", 99, "a�b�c�d�e"},
		{"a\U000e0041b", 99, "a�b"},
		{"\xff\xed\xa0\x80\xc0\x80", 99, "������"},
		{"\xff\xff\xff", 8, "�…"},
		{"a\nbcdef", 6, "a b…"},
		{"a\n\n\n\n", 4, "a…"},
		{"abc", 0, ""},
		{"abc", -1, ""},
	} {
		if got := abi.OneLine(c.in, c.most); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.in, c.most, got, c.want)
		}
	}
}

// A line of any length costs what is kept of it.
func TestOneLineStopsReading(t *testing.T) {
	long := strings.Repeat("\x00", 64<<20)
	if n := testing.AllocsPerRun(10, func() { abi.OneLine(long, 100) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleOneLine() {
	fmt.Println(abi.OneLine("all is well\x1b[2K\rhutch: \u202eerror", 40))
	fmt.Println(abi.OneLine("two\nlines, and more than fit", 20))
	// Output:
	// all is well�[2K hutch: �error
	// two lines, and mo…
}

// FuzzOneLine: whatever comes in, what goes out is bounded, one line, and shown as
// it is written; and doing it twice does nothing more.
func FuzzOneLine(f *testing.F) {
	f.Add("a\xff\n\u202e 👍🏽", 5)
	f.Add("\u2029\u00a0äöü", 99)
	f.Fuzz(func(t *testing.T, text string, most int) {
		line := abi.OneLine(text, most)
		if len(line) > max(most, 0) || !utf8.ValidString(line) || strings.ContainsFunc(line, abi.Hidden) {
			t.Errorf("%q to %d: %q", text, most, line)
		}
		if again := abi.OneLine(line, most); again != line {
			t.Errorf("%q to %d: %q, and again: %q", text, most, line, again)
		}
		if part := abi.Cut(text, most); len(part) > max(most, 0) || utf8.ValidString(text) && !utf8.ValidString(part) {
			t.Errorf("%q to %d: cut to %q", text, most, part)
		}
	})
}
