package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// smallDisk mounts a file system of so many bytes at dir, where the test may.
func smallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// bulky is the nth of many values that fill a disk.
func bulky(c *lineClient, n int) outcome {
	c.t.Helper()
	got, err := c.call("set", fmt.Sprintf(`{"key":"bulky/%d","value":%q}`, n, strings.Repeat("x", 50_000)))
	must(c.t, err)
	return got
}

// awaitSaid waits until the process has logged something.
func (c *lineClient) awaitSaid(words string) {
	c.t.Helper()
	late := time.After(patientFor)
	for !strings.Contains(c.said.String(), words) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			c.t.Fatalf("it never says %q", words)
		}
	}
}

const cannotKeep = `{"error":{"code":"unavailable","message":"kv_set: values cannot be reached now: try again later"}}`

// A state folder without room refuses what would be kept, and says so once. What
// was kept can be read, tools that keep nothing go on, and when there is room again,
// so does everything.
func TestStateFolderIsFull(t *testing.T) {
	dir := keeperFolder(t, "512MiB")
	st := filepath.Join(dir, "state")
	policy, err := os.ReadFile(state{st}.policy())
	must(t, err)
	smallDisk(t, st, 10<<20)
	must(t, os.WriteFile(state{st}.policy(), policy, 0o600))
	must(t, writeAtomic(filepath.Join(dir, "tools", "hi.wasm"), greeter("hi", "hello")))
	filler := filepath.Join(st, "filler")
	must(t, os.WriteFile(filler, make([]byte, 6<<20), 0o600))

	c := startLines(t, dir)
	n := 0
	for ; string(bulky(c, n).structured) != cannotKeep; n++ {
		if n > 1000 {
			t.Fatal("it is never full")
		}
	}
	for i := range 50 {
		if got := bulky(c, n+i); string(got.structured) != cannotKeep {
			t.Fatalf("without room: %+v %s", got, got.structured)
		}
	}
	if got, err := c.call("get", `{"key":"bulky/0"}`); err != nil || len(got.structured) < 50_000 {
		t.Errorf("what was kept before: %+v, %v", got, err)
	}
	if got, err := c.call("hi", `{}`); err != nil || got.text != "hello" {
		t.Errorf("a tool that keeps nothing: %+v, %v", got, err)
	}
	must(t, writeAtomic(filepath.Join(dir, "tools", "late.wasm"), greeter("late", "hello")))
	c.awaitSaid("cannot be kept in the state folder: no space left on device")
	must(t, os.Remove(filler))
	if got := bulky(c, 0); got.failed || !strings.Contains(string(got.structured), `"stored":true`) {
		t.Errorf("with room again: %+v %s", got, got.structured)
	}
	late := time.After(2 * patientFor) // the folder is looked at again every 30 s
	for got := (outcome{}); got.text != "hello"; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-late:
			t.Fatalf("the module that there was no room for: %+v", got)
		}
		got, err = c.call("late", `{}`)
		must(t, err)
	}
	c.end()
	if lines := strings.Count(c.said.String(), "no room left for the database"); lines != 1 {
		t.Errorf("it said %d times that there is no room:\n%s", lines, c.said)
	}
	t.Log(c.said)
}

// limitFiles bounds how long the files of a process may become. Less than they are
// is as bad as a disk that takes nothing more, and needs no right.
func (c *lineClient) limitFiles(most uint64) {
	c.t.Helper()
	limit := syscall.Rlimit{Cur: most, Max: math.MaxUint64} // none
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(c.p.Process.Pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		c.t.Fatal("limit the files of a process: ", errno)
	}
}

// A state folder that takes no more writes does the same harm as a full one.
func TestStateFolderCannotBeWritten(t *testing.T) {
	dir := keeperFolder(t, "512MiB")
	must(t, writeAtomic(filepath.Join(dir, "tools", "hi.wasm"), greeter("hi", "hello")))
	c := startLines(t, dir)
	if got := bulky(c, 0); got.failed || !strings.Contains(string(got.structured), `"stored":true`) {
		t.Fatalf("before: %+v %s", got, got.structured)
	}
	if got, err := c.call("hi", `{}`); err != nil || got.text != "hello" {
		t.Fatalf("before: %+v, %v", got, err)
	}
	c.limitFiles(0)
	for n := range 50 {
		if got := bulky(c, n); string(got.structured) != cannotKeep {
			t.Fatalf("without writing: %+v %s", got, got.structured)
		}
	}
	if got, err := c.call("get", `{"key":"bulky/0"}`); err != nil || len(got.structured) < 50_000 {
		t.Errorf("what was kept before: %+v, %v", got, err)
	}
	if got, err := c.call("hi", `{}`); err != nil || got.text != "hello" {
		t.Errorf("a tool that keeps nothing: %+v, %v", got, err)
	}
	c.limitFiles(math.MaxUint64)
	if got := bulky(c, 1); got.failed || !strings.Contains(string(got.structured), `"stored":true`) {
		t.Errorf("written again: %+v %s", got, got.structured)
	}
	c.end()
	if lines := strings.Count(c.said.String(), "the store did not serve a module"); lines != 1 {
		t.Errorf("it said %d times that it cannot write:\n%s", lines, c.said)
	}
	t.Log(c.said)
}
