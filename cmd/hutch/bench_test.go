package main

import (
	"slices"
	"testing"
	"time"

	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

func TestBenchTimes(t *testing.T) {
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i)*time.Microsecond)
	}
	if got, want := timesOf(took), (benchTimes{Count: 200, P50: 101, P99: 199, Worst: 200}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := timesOf(nil); got != (benchTimes{}) {
		t.Errorf("of nothing: %v", got)
	}
	for count, want := range map[int]string{99: "1.00 us\t-\t3.00 us\t99", 100: "1.00 us\t2.00 us\t3.00 us\t100"} {
		if got := (benchTimes{count, 1, 2, 3}).String(); got != want {
			t.Errorf("%d: got %q, want %q", count, got, want)
		}
	}
}

func TestShortTime(t *testing.T) {
	for microseconds, want := range map[float64]string{
		0: "0.00 us", 6.234: "6.23 us", 62.34: "62.3 us", 623.4: "623 us", 1000: "1.00 ms", 62_340: "62.3 ms", 1_500_000: "1.50 s",
	} {
		if got := shortTime(microseconds); got != want {
			t.Errorf("%g: got %q, want %q", microseconds, got, want)
		}
	}
}

// What is measured when nobody says what is there.
func TestBenchHasAShippedTool(t *testing.T) {
	set, err := toolswasm.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Modules()) == 0 {
		skipUnlessRequired(t, "no module is built: make tools")
	}
	b := benchRun{}
	must(t, b.ship("text"))
	must(t, b.ship(benchModule))
	if b.module != benchModule {
		t.Errorf("took %s", b.module)
	}
	if tools := stampedTools(b.body); !slices.Contains(tools, benchTool) {
		t.Errorf("%s has %q, and no %s", benchModule, tools, benchTool)
	}
}
