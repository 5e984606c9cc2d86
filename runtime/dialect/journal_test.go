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
		want := append(slices.Repeat([]string{"2 working"}, 100), "3 ... 52 more lines dropped: at most 100 are kept of one call (limits.log_lines)")
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

// What is logged at once but has lines is as many lines, and each counts.
func TestLoggedLinesAreSplit(t *testing.T) {
	var lines []string
	j := journal{emit: func(_ abi.LogLevel, s string) { lines = append(lines, s) }, mostLines: 3, mostBytes: 100}
	j.write(abi.Error, []byte("goroutine 1\nmain.f()\n\tmain.go:3\nmain.main()\n"))
	j.write(abi.Info, nil)
	j.close()
	want := []string{"goroutine 1", "main.f()", " main.go:3", "... 2 more lines dropped: at most 3 are kept of one call (limits.log_lines)"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

// A module that breaks before it can say anything is refused with its own words:
// the first of them, as one line, and no more than can be read.
func TestDescribeSaysWhatTheGuestSaid(t *testing.T) {
	for _, tt := range []struct{ printed, want string }{
		{"\npanic: bo\x1bom\ngoroutine 1\n", "trap: trapped: unreachable: panic: bo\uFFFDom"},
		{strings.Repeat("x", 500), "trap: trapped: unreachable: " + strings.Repeat("x", maxComplaint-3) + "…"},
		{"", "trap: trapped: unreachable"},
	} {
		load(t, mod{Describe: steps(dialecttest.Print(1, "chatter\n"), dialecttest.Print(2, tt.printed), dialecttest.Trap())}, func(t *testing.T, g *Guest) {
			if _, err := g.Describe(t.Context()); err == nil || err.Error() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	load(t, mod{Do: steps(dialecttest.Log(abi.Info, 500, "x"), dialecttest.Text("ok"))}, func(t *testing.T, g *Guest) {
		if _, usage, err := g.Call(t.Context(), 1, abi.Invocation{}); err != nil || usage.LogLines != 500 {
			t.Errorf("%+v, %v", usage, err)
		}
	})
}

// E10: what a guest logs is UTF-8 when it leaves.
func TestE10_LogLinesAreUTF8(t *testing.T) {
	for _, bad := range []string{"\xff\xfe", "\xed\xa0\x80", "\xc0\x80", "\xe2\x82"} {
		var line string
		j := journal{emit: func(_ abi.LogLevel, s string) { line = s }, mostLines: 1, mostBytes: 100}
		j.write(abi.Info, []byte("a"+bad+"b"))
		if !utf8.ValidString(line) || !strings.HasPrefix(line, "a\uFFFD") || !strings.HasSuffix(line, "b") {
			t.Errorf("%q becomes %q", bad, line)
		}
	}
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
