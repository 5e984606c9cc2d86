package sandbox

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// 10,000 calls, of which some write every page and some trap, leave the process as
// large as it was after the first ones.
func TestE21_CallsLeaveNoMemory(t *testing.T) {
	c := checkpointed(t, compiled(t, scribbler(), paged(t, Options{})), scribbled)
	call := func(i int) {
		in := leased(t, c)
		export, args := "store", []uint64{uint64(i) * 100, 1}
		if i%32 == 0 {
			export, args = "fill", []uint64{uint64(i)}
		}
		if _, err := in.Call(t.Context(), export, args...); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if _, err := in.Call(t.Context(), "deep", 100); err == nil {
				t.Fatal("it did not trap")
			}
		}
		closed(t, in)
	}
	for i := range 500 {
		call(i)
	}
	before := residentPages(t)
	for i := range 10_000 {
		call(i)
	}
	if grown := (residentPages(t) - before) * os.Getpagesize(); grown > 16<<20 {
		t.Errorf("%d bytes more are resident", grown)
	}
}

// A page that a call changed is the file's again once many were, so that one call that
// wrote everything costs the next ones nothing.
func TestManyPagesAreGivenBack(t *testing.T) {
	c := checkpointed(t, compiled(t, scribbler(), paged(t, Options{})), scribbled)
	in := leased(t, c)
	before := residentPages(t)
	if _, err := in.Call(t.Context(), "fill", 1); err != nil {
		t.Fatal(err)
	}
	written := residentPages(t) - before
	if err := c.image.restore(in.bytes(), in.memory); err != nil {
		t.Fatal(err)
	}
	pages := len(in.bytes()) / os.Getpagesize()
	if left := residentPages(t) - before; written < pages/2 || left > pages/2 {
		t.Errorf("%d of %d pages were resident after a call, %d after it was undone", written, pages, left)
	}
	closed(t, in)
}

// residentPages returns how much memory the process has, in pages.
func residentPages(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
