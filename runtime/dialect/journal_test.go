package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

func TestE08_LogLinesAreLimited(t *testing.T) {
	m := mod{Do: steps(dialecttest.Log(abi.Info, 150, "working"), dialecttest.Print(2, "printed\nlast"), dialecttest.Text("done"))}
	load(t, m, func(t *testing.T, g *Guest) {
		var lines []string
		in := abi.Invocation{Log: func(l abi.LogLevel, s string) { lines = append(lines, fmt.Sprint(l, " ", s)) }}
		_, usage, err := g.Call(t.Context(), 1, in)
		if err != nil || usage.LogLines != 152 {
			t.Errorf("%+v, %v", usage, err)
		}
		want := append(slices.Repeat([]string{"2 working"}, 100), "3 ... 52 more lines dropped: at most 100 are kept of one call")
		if !slices.Equal(lines, want) {
			t.Errorf("%d lines, the last one %q", len(lines), lines[len(lines)-1])
		}
	})
}

func TestPrintedLinesAreLogged(t *testing.T) {
	m := mod{Do: steps(dialecttest.Print(1, "out\nno end"), dialecttest.Print(2, "err\n"), dialecttest.Exit(1))}
	load(t, m, func(t *testing.T, g *Guest) {
		var lines []string
		_, _, err := g.Call(t.Context(), 1, abi.Invocation{Log: func(l abi.LogLevel, s string) { lines = append(lines, fmt.Sprint(l, " ", s)) }})
		if want := []string{"2 out", "3 err", "2 no end"}; !slices.Equal(lines, want) || err == nil {
			t.Errorf("%q, %v", lines, err)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	load(t, mod{Do: steps(dialecttest.Log(abi.Info, 500, "x"), dialecttest.Text("ok"))}, func(t *testing.T, g *Guest) {
		if _, usage, err := g.Call(t.Context(), 1, abi.Invocation{}); err != nil || usage.LogLines != 500 {
			t.Errorf("%+v, %v", usage, err)
		}
	})
}

func TestClean(t *testing.T) {
	tests := []struct {
		in   string
		most int
		want string
	}{
		{"plain", 10, "plain"}, {"", 10, ""}, {"äöü", 5, "äö"}, {"äöü", 1, ""}, {"a\r\nb", 10, "a  b"},
		{"\x1b[2J", 10, "�[2J"}, {"\xff", 10, "�"}, {"\xff", 2, ""}, {"\xed\xa0\x80", 20, "���"}, {"\xc0\x80", 20, "��"},
		{"a\u202eb", 10, "a�b"}, {"a\u2028b", 10, "a b"}, {"👍🏽", 8, "👍🏽"}, {"👍🏽", 7, "👍"},
	}
	for _, tt := range tests {
		if got := clean([]byte(tt.in), tt.most); got != tt.want {
			t.Errorf("%q to %d: %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("a\xff\n\u202e"), 5)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		s := clean(b, most)
		if len(s) > max(most, 0) || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%q to %d: %q", b, most, s)
		}
	})
}

func TestProgressIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := 0
		r := reports{emit: func(json.RawMessage) { count++ }}
		for _, want := range []int{20, 20, 20} {
			count = 0
			for range 1000 {
				if code := r.report([]byte(`{"progress":1}`)); code != 0 {
					t.Fatalf("code %d", code)
				}
			}
			if count != want {
				t.Errorf("%d reports in a second", count)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestProgressOfAGuest(t *testing.T) {
	g := loaded(t, mod{Do: steps(dialecttest.Progress(100, `{"progress":1}`), dialecttest.Text("ok"))}, Options{})
	count := 0
	answer(t, g, abi.Invocation{Progress: func(json.RawMessage) { count++ }})
	if count == 0 {
		t.Error("no reports")
	}
	answer(t, g, abi.Invocation{}) // and with nobody to hear them
}
