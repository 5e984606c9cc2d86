package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
	bytes.Count(c.image.bytes, []byte{1}) // what was read of the image is resident too
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

// Once an image was made nobody changes it: not by the file, by a mapping of it, old or
// new, nor by making it another size.
func TestImagesAreSealed(t *testing.T) {
	probe, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(probe) //nolint:errcheck // it is empty
	if _, err := unix.FcntlInt(uintptr(probe), unix.F_ADD_SEALS, unix.F_SEAL_FUTURE_WRITE); err != nil {
		skipUnlessRequired(t, "this system has no such seal: "+err.Error())
	}
	options := paged(t, Options{})
	c := checkpointed(t, compiled(t, scribbler(), options), scribbled)
	pages := options.Pages
	for what, change := range map[string]func() error{
		"written": func() error { _, err := unix.Pwrite(pages.file, []byte{1}, 0); return err },
		"mapped": func() error {
			_, err := unix.Mmap(pages.file, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			return err
		},
		"made writable": func() error { return unix.Mprotect(pages.kept, unix.PROT_READ|unix.PROT_WRITE) },
		"punched": func() error {
			return unix.Fallocate(pages.file, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 1<<16)
		},
		"cut": func() error { return unix.Ftruncate(pages.file, 0) },
		"unsealed": func() error {
			_, err := unix.FcntlInt(uintptr(pages.file), unix.F_ADD_SEALS, unix.F_SEAL_EXEC)
			return err
		},
	} {
		if err := change(); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
			t.Errorf("the image can be %s: %v", what, err)
		}
	}
	if pages.filled != nil {
		t.Error("the image is mapped to be written")
	}
	if _, err := pages.keep(c.image.bytes); err == nil {
		t.Error("a second image was made")
	}
	closed(t, leased(t, c))
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
