package main

import (
	"fmt"
	"strings"
)

// An aim is a value that hutch is to stay under. One that is missed fails nothing,
// since the machine may be busy; it is said under the table.
type aim struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	AtMost float64 `json:"atMost"`
}

func (a aim) missed() bool { return a.Value > a.AtMost }

// freshAims are how long a fresh call may take, in microseconds, and how it is to
// stand to others: a ratio of hutch's time to theirs.
var freshAims = []struct {
	guest                string
	microseconds         float64
	toExtism, toWasmtime float64
}{
	{"C", 6, 1.0 / 50, 1.0 / 3},
	{"AssemblyScript", 12, 1.0 / 40, 0},
	{goGuest, 40, 1.0 / 50, 1.0 / 3},
	{goJSONGuest, 120, 0, 0},
	{javaScript, 80, 0, 0},
}

// aims returns those that this run has figures for.
func (r *report) aims() []aim {
	found := []aim{}
	compare := func(to string, meanAtMost, worstAtMost float64) {
		if m, ok := r.mean(ours, to); ok {
			found = append(found,
				aim{"geometric mean to " + to, m.Mean, meanAtMost},
				aim{fmt.Sprintf("worst to %s (%s)", to, m.At), m.Worst, worstAtMost})
		}
	}
	compare(plainWazero, 1.25, 1.8)
	compare(wasmtimeFuel, 1.5, 2.0)
	for _, want := range freshAims {
		mine := r.find(want.guest, freshCall, ours)
		if mine == nil {
			continue
		}
		found = append(found, aim{want.guest + ", fresh call, us", mine.Microseconds.P50, want.microseconds})
		beside := func(to string, atMost float64) {
			if other := r.find(want.guest, freshCall, to); other != nil && atMost > 0 {
				found = append(found, aim{want.guest + ", fresh call to " + to, mine.Microseconds.P50 / other.Microseconds.P50, atMost})
			}
		}
		beside(extismSDK, want.toExtism)
		beside(wasmtimeName, want.toWasmtime)
	}
	return found
}

func (r *report) missed() (list []string) {
	for _, a := range r.Aims {
		if a.missed() {
			list = append(list, fmt.Sprintf("%s: %s, at most %s", a.What, short(a.Value), short(a.AtMost)))
		}
	}
	return list
}

// summary says in one line whether the aims were met.
func (r *report) summary() string {
	missed := r.missed()
	if len(missed) == 0 {
		return fmt.Sprintf("%s: all %d aims are met", ours, len(r.Aims))
	}
	return fmt.Sprintf("%s: MISSED %d of %d aims: %s", ours, len(missed), len(r.Aims), strings.Join(missed, "; "))
}
