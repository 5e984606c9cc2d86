package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A figure over its aim is said under the table and in the JSON.
func TestMissedAimsAreSaid(t *testing.T) {
	r := newReport(setup{hutch: "bin/hutch", worker: "bin/hutch-worker"})
	r.add(figure{Name: "met", Value: 1, AtMost: 2, Unit: "ms"}, figure{Name: "no aim", Value: 9, Unit: "ms"})
	if got := r.summary(); got != "all 1 aims are met" || !r.OK {
		t.Errorf("%q, ok: %t", got, r.OK)
	}
	r.add(figure{Name: "late", Value: 3, AtMost: 2, Unit: "ms"})
	var table strings.Builder
	if err := r.table(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(table.String(), "\nMISSED 1 of 2 aims: late: 3.00 ms, at most 2.00\n") || r.OK {
		t.Errorf("ok: %t\n%s", r.OK, table.String())
	}
}

// A benchmark that is not there has no figure, not even 0.
func TestMissingBenchmarksFail(t *testing.T) {
	found := &lowest{values: map[string]float64{"RoundTrip/pipe p50-us": 20}}
	if found.get("RoundTrip/pipe", "p50-us") != 20 || found.missing() != nil {
		t.Error("a benchmark that ran is missing")
	}
	found.all = map[string][]float64{"Long ratio": {1, 2, 9}}
	if found.middle("Long", "ratio") != 2 || found.missing() != nil {
		t.Error("the median is another one")
	}
	found.middle("Gone", "ns/op")
	if err := found.missing(); err == nil || err.Error() != "no benchmark gave Gone in ns/op" {
		t.Error(err)
	}
}

// The worst of benchmarks is named; without any there is no figure.
func TestWorst(t *testing.T) {
	found := &lowest{values: map[string]float64{"Late/a ms": 3, "Late/b_c ms": 7, "Late/d us": 9, "Other/e ms": 8}}
	if got := found.worst("Late/", "ms"); got != (named{"b c", 7}) || found.missing() != nil {
		t.Error(got)
	}
	if found.worst("Gone/", "ms"); found.missing() == nil {
		t.Error("a benchmark that is not there has a figure")
	}
}

// A document gets the figures that are about its table, between its marks, each time anew.
func TestTablesOfDocuments(t *testing.T) {
	r := newReport(setup{})
	r.add(figure{Name: "other", Value: 1, Unit: "ms"},
		figure{Name: "turn", Program: "hutch", Value: 3, AtMost: 2, Unit: "ms", About: "the engine"}.beside("bare", 1.5))
	file := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	engine, tracker := tables()[0], tables()[1]
	write("before\n" + engine.begins() + "old\n" + engine.ends() + "after\n" + tracker.begins() + "kept\n" + tracker.ends())
	for range 2 {
		if err := r.document(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	row := "| turn | hutch | 3.00 ms | 2.00 ms, MISSED | bare: 1.50 ms |\n\n" + engine.ends() + "after\n" + tracker.begins() + "kept\n" + tracker.ends()
	if got := string(text); !strings.HasPrefix(got, "before\n"+engine.begins()+"\n") || !strings.HasSuffix(got, row) || strings.Contains(got, "other") || strings.Contains(got, "old") {
		t.Error(got)
	}
	write("no mark")
	if err := r.document(file); err == nil {
		t.Error("written into a document without a mark")
	}
}
