package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func quickly(t *testing.T) effort {
	t.Helper()
	e := quick
	var err error
	if e.clock, err = clockNamed(wallClock); err != nil {
		t.Fatal(err)
	}
	return e
}

// The smallest guest runs in every engine there is, and its table has them all.
func TestAllEnginesRunTheSmallGuest(t *testing.T) {
	scratch, work := t.TempDir(), quickly(t)
	g := guests(".")[0]
	if err := g.make(t.Context(), scratch); errors.Is(err, errMissing) && os.Getenv("HUTCH_REQUIRE") != "all" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	r, all := newReport(work, true), engines(scratch, work.clock)
	if err := r.guest(t.Context(), g, all, work); err != nil {
		t.Fatal(err)
	}
	if err := r.finish(all); err != nil {
		t.Fatal(err)
	}
	left := strings.Join(r.Left, "\n")
	for _, e := range all {
		if e.name != "native Go" && r.find("C", "fib", e.name) == nil && !strings.Contains(left, e.name+" is left out") {
			t.Errorf("%s has no figure and is not said to be left out", e.name)
		}
	}
	var table strings.Builder
	if err := r.print(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"wazero takes", "fresh call, p99", "geometric mean", "hutch: "} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, &table)
		}
	}
}

// liar has the exports echo and fib, which say that their result is wrong:
//
//	(func (export "echo") (export "fib") (result i32) (i32.const 1)) (memory (export "memory") 1)
const liar = "\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x17\x03\x04echo\x00\x00\x03fib\x00\x00\x06memory\x02\x00\x0a\x06\x01\x04\x00\x41\x01\x0b"

// A run in which an engine gives a wrong result, or a guest lacks something, fails.
func TestWrongResultsFail(t *testing.T) {
	work := quickly(t)
	for _, e := range engines(t.TempDir(), work.clock) {
		if _, err := e.Load(t.Context(), &guest{wasm: []byte(liar)}); e.native || errors.Is(err, errMissing) {
			continue
		}
		for workload, want := range map[string]string{"fib": "wrong result: code 1", "gone": "gone"} {
			g := &guest{name: "liar", language: "C", wasm: []byte(liar), workloads: []string{workload}}
			err := newReport(work, true).guest(t.Context(), g, []named{e}, work)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), e.name) {
				t.Errorf("%s, %s: %v, want %q", e.name, workload, err, want)
			}
		}
	}
}

func TestNothingMeasuredFails(t *testing.T) {
	if err := newReport(quickly(t), true).finish(nil); err == nil {
		t.Error("a report without a row is none")
	}
	r := newReport(quickly(t), true)
	r.rows = []row{{"C", "fib", samples{baseline: {time.Second}}}}
	if err := r.finish([]named{{name: baseline}}); err == nil {
		t.Error("a row without hutch says nothing about hutch")
	}
}

func TestSpread(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64(99-i))
	}
	if got, want := spreadOf(values), (spread{10, 50, 90, 99}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := spreadOf([]float64{7}), (spread{7, 7, 7, 7}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Ratios are of the same round: a slow machine slows both, and says nothing.
func TestRatiosArePaired(t *testing.T) {
	s := samples{ours: {2, 20, 200}, baseline: {1, 10, 100}}
	if got, ok := s.ratio(ours, baseline); !ok || got != (spread{2, 2, 2, 2}) {
		t.Errorf("%v, %t", got, ok)
	}
	if _, ok := s.ratio(ours, wasmtimeName); ok {
		t.Error("a ratio to what did not run")
	}
}

func TestMeansLeaveOutFreshCalls(t *testing.T) {
	r := newReport(quickly(t), true)
	r.rows = []row{
		{"C", "fib", samples{ours: {2}, baseline: {1}}},
		{"C", "sieve", samples{ours: {8}, baseline: {1}}},
		{"C", freshCall, samples{ours: {1000}, baseline: {1}}},
	}
	m, ok := r.mean(ours, baseline)
	if !ok || math.Abs(m.Mean-4) > 1e-9 || m.Worst != 8 || m.At != "C, sieve" {
		t.Errorf("%+v, %t", m, ok)
	}
}

// Every engine has its turn in every round, the order changes, and what is warm-up
// does not count.
func TestTurns(t *testing.T) {
	var order strings.Builder
	say := func(name string) turn {
		return turn{name, func() error { order.WriteString(name); return nil }, 0}
	}
	times, err := inTurn(t.Context(), quickly(t), 20, []turn{say("a"), say("b"), say("c")})
	if err != nil || len(times["a"]) != 20 {
		t.Errorf("%v, %v", times, err)
	}
	orders := map[string]int{}
	for i := 0; i < order.Len(); i += 3 {
		round := order.String()[i : i+3]
		orders[round]++
		for _, name := range []string{"a", "b", "c"} {
			if strings.Count(round, name) != 1 {
				t.Errorf("round %s", round)
			}
		}
	}
	if len(orders) < 4 {
		t.Errorf("always the same: %v", orders)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inTurn(ctx, quickly(t), 1, []turn{say("a")}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMissedAimsAreSaid(t *testing.T) {
	r := newReport(quickly(t), true)
	r.rows = []row{{"C", freshCall, samples{ours: {7 * time.Microsecond}, baseline: {time.Microsecond}}}}
	if err := r.finish([]named{{name: ours}, {name: baseline}}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.summary(), "hutch: MISSED 1 of 1 aims: C, fresh call, us: 7.00, at most 6.00"; got != want || r.OK {
		t.Errorf("%q, ok: %t", got, r.OK)
	}
}

// Tables in documents are written by a run, and only between their marks.
func TestDocuments(t *testing.T) {
	r := newReport(quickly(t), true)
	r.rows = []row{{"C", "fib", samples{ours: {2000}, baseline: {1000}}}}
	if err := r.finish([]named{{name: ours}, {name: baseline}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.md")
	if err := os.WriteFile(file, []byte("before\n"+marks[0].begins+"old\n"+tableEnds+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.document(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n"+marks[0].begins) || !strings.HasSuffix(got, tableEnds+"after\n") ||
		strings.Contains(got, "old") || strings.Count(got, "| C | fib | 1.00 us | 2.00 ±0.00 |\n") != 1 {
		t.Error(got)
	}
	brief, err := r.between([]byte(marks[1].begins + tableEnds))
	if want := "|---|---|---|---|\n| all but fresh calls | geometric mean |  | 2.00 |\n\n" + tableEnds; err != nil || !strings.HasSuffix(string(brief), want) {
		t.Errorf("%v\n%s", err, brief)
	}
	for _, text := range []string{"no marks", marks[0].begins + "no end", tableEnds} {
		if _, err := r.between([]byte(text)); err == nil {
			t.Errorf("%q: a table went nowhere", text)
		}
	}
	// What was written is what is read, and of a few rounds there is no document.
	figures := filepath.Join(t.TempDir(), "build", "x.json")
	if err := r.writeJSON(figures); err != nil {
		t.Fatal(err)
	}
	read, err := readReport(figures)
	if err != nil || read.markdown() != r.markdown() {
		t.Errorf("%v, %s", err, read.markdown())
	}
	if err := run(t.Context(), options{from: figures, documents: file}); err == nil || !strings.HasPrefix(err.Error(), "-documents: ") {
		t.Error(err)
	}
	if err := os.WriteFile(figures, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readReport(figures); err == nil {
		t.Error("figures of nothing")
	}
}

// The documents that `make bench-documents` names have a place for their tables.
func TestDocumentsHaveMarks(t *testing.T) {
	for file, m := range map[string]mark{"docs/benchmarks.md": marks[0], "README.md": marks[1]} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), m.begins); n != 1 {
			t.Errorf("%s: %d times %q", file, n, m.begins)
		}
		if _, err := (&report{}).between(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The processor's clock goes on while this process works, and knows of others what it
// is told.
func TestClocks(t *testing.T) {
	if _, err := clockNamed("sun"); err == nil || err.Error() != `-clock "sun": allowed are wall and cpu` {
		t.Error(err)
	}
	cpu, err := clockNamed("cpu")
	if runtime.GOOS != "linux" { // other systems are not asked for that clock
		if err == nil {
			t.Error("there is a clock that nobody reads")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	before := cpu.now()
	for cpu.now()-before < time.Millisecond { // it goes on, or the test never ends
	}
	before = cpu.now()
	cpu.add(time.Hour)
	if cpu.now()-before < time.Hour {
		t.Error("the time of another process is lost")
	}
	wall, err := clockNamed(wallClock)
	if err != nil {
		t.Fatal(err)
	}
	wall.add(time.Hour)
	if wall.now() > time.Hour {
		t.Error("on the wall, it is counted twice")
	}
}
