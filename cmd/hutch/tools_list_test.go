package main

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tool"
)

// A description gives way to the terminal's edge, a reason does not.
func TestPrintToolsFits(t *testing.T) {
	const (
		before   = len("-  broken.wasm  rejected  ")
		ellipsis = len("…")
	)
	rows := []listedTool{
		{Name: "a", Module: "a.wasm", Status: tool.Ready, Description: strings.Repeat("x", 70)},
		{Module: "broken.wasm", Status: tool.Rejected, Reason: strings.Repeat("z", 70)},
	}
	for width, want := range map[int]int{60: 60 - before - ellipsis, before + 70: 70, 30: minSummary - ellipsis, math.MaxInt: 70} {
		var b strings.Builder
		if err := printTools(&b, rows, width); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(b.String(), "x"); got != want {
			t.Errorf("%d columns: %d characters of the description, want %d:\n%s", width, got, want, b.String())
		}
		if strings.Count(b.String(), "z") != 70 {
			t.Errorf("%d columns: the reason was cut:\n%s", width, b.String())
		}
	}
}

// A long name does not push the rest off the screen; off a terminal it is whole.
func TestPrintToolsCutsNames(t *testing.T) {
	long := strings.Repeat("n", 200)
	rows := []listedTool{
		{Name: "a", Module: long + ".wasm", Status: tool.Ready, Description: strings.Repeat("x", 70)},
		{Name: strings.Repeat("é", 64), Module: "b.wasm", Status: tool.Ready, Description: "does b"},
	}
	for _, width := range []int{80, 50, math.MaxInt} {
		var b strings.Builder
		if err := printTools(&b, rows, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: %d: %s", width, n, line)
			}
		}
		if got, want := strings.Contains(b.String(), long), width == math.MaxInt; got != want {
			t.Errorf("%d columns: the whole name is there: %v", width, got)
		}
	}
}
