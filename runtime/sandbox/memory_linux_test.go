package sandbox

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

func TestE21_FailedStartsGiveTheirMemoryBack(t *testing.T) {
	modules := map[string][]byte{
		"start traps":  mod{Start: steps(dialecttest.Trap())}.Bytes(),
		"start leaves": mod{Start: steps(dialecttest.Exit(1))}.Bytes(),
		"call traps":   mod{Do: steps(dialecttest.Trap())}.Bytes(),
		// One page of memory, and a byte for the second.
		"data outside": unhex(t, "0061736d010000000503010001"+"0b09010041808004"+"0b0141"),
	}
	for name, wasm := range modules {
		m := compiled(t, wasm, Options{})
		before := addressPages(t)
		for range 100 { // each reserves 64 MiB
			if _, _, err := run(t, m); err == nil {
				t.Fatalf("%s: no error", name)
			}
		}
		if grown := addressPages(t) - before; grown > 1<<30/os.Getpagesize() {
			t.Errorf("%s: %d pages more are mapped", name, grown)
		}
		if m.users != 1 {
			t.Errorf("%s: %d instances are left", name, m.users-1)
		}
	}
}

// addressPages returns how much address space the process has, in pages.
func addressPages(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
