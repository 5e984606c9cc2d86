package wasmbin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/wasmbin"
	"github.com/hutch-run/hutch/runtime/wasmbin/wasmbintest"
)

// soon is how long the check of a hostile module may take. What it is kept from,
// a compilation of tens of seconds, is well above; what is promised, 50 ms, is
// measured by make bench, since a busy machine with the race detector takes ten times
// as long.
const soon = 5 * time.Second

// judged checks that a module is refused with an error that has reason in it,
// before soon, or accepted if there is none.
func judged(t *testing.T, b []byte, reason string) {
	t.Helper()
	start := time.Now()
	_, err := wasmbin.Check(b, wasmbin.Budget{})
	if took := time.Since(start); took > soon {
		t.Errorf("took %v", took)
	}
	if (err == nil) != (reason == "") || err != nil && !strings.Contains(err.Error(), reason) {
		t.Errorf("got  %v\nwant %s", err, reason)
	}
}

// judgedAll judges the generated modules of which the name has one of these
// beginnings: as they are, and as tools.
func judgedAll(t *testing.T, beginnings ...string) {
	t.Helper()
	n := 0
	wanted := func(name string) bool {
		for _, b := range beginnings {
			if strings.HasPrefix(name, b) {
				n++
				return true
			}
		}
		return false
	}
	for _, h := range wasmbintest.Generated() {
		if wanted(h.Name) {
			t.Run(h.Name, func(t *testing.T) { judged(t, h.Bytes, h.Reason) })
		}
	}
	for _, h := range wasmbintest.Tools() {
		if wanted(h.Name) {
			t.Run(h.Name+" as a tool", func(t *testing.T) { judged(t, h.Bytes("harm"), h.Reason) })
		}
	}
	if n == 0 {
		t.Errorf("no module begins with %q", beginnings)
	}
}

func TestD03_ParametersAndResults(t *testing.T) { judgedAll(t, "params", "values") }

func TestD08_DeepNesting(t *testing.T) { judgedAll(t, "nest") }

func TestD09_BranchTables(t *testing.T) { judgedAll(t, "brtable") }

func TestD10_Locals(t *testing.T) { judgedAll(t, "locals") }

func TestD12_LargeModules(t *testing.T) {
	judgedAll(t, "straight", "functions", "exports", "globals", "segments")
}

// Functions that were found to take seconds to minutes to compile, and what is
// just small enough of each.
func TestD08_D09_FunctionsThatCompileForLong(t *testing.T) {
	judgedAll(t, "branches", "loops", "bulk", "stores", "calls")
}

func TestE06_TablesThatGrowNeedAMaximum(t *testing.T) { judgedAll(t, "tablegrow") }

// What hurts only when it runs is not for this check to see.
func TestHostileOnlyWhenRun(t *testing.T) {
	judgedAll(t, "loop", "grow", "recurse", "expcall", "twice", "fill")
}

// The fixtures, which a deadline alone would not stop while they run, and those
// that end a host which trusts their counts.
func TestD01_D02_D03_D04_D14_D15_D16_E06_Fixtures(t *testing.T) {
	for _, h := range wasmbintest.Fixtures() {
		t.Run(h.Name, func(t *testing.T) { judged(t, h.Bytes, h.Reason) })
	}
}
