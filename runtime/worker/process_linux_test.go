package worker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

const diesWithParent = true

// isRunning reports whether a process is alive; one that only waits to be reaped
// is not.
func isRunning(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func greedyMain(limit string) int {
	n, err := strconv.ParseInt(limit, 10, 64)
	if err == nil {
		err = confine(loadHead{Calls: 1, MemoryBytes: n})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	block := make([]byte, 1<<30)
	fmt.Println(len(block))
	return 0
}

// The limit that a worker sets itself ends it when it is over it.
func TestConfine(t *testing.T) {
	for limit, dies := range map[string]bool{"268435456": true, "1125899906842624": false} {
		text, err := exec.Command(os.Args[0], asGreedy, limit).CombinedOutput()
		if (err != nil) != dies {
			t.Errorf("1 GiB within %s bytes: %v, %.200s", limit, err, text)
		}
		if outOfMemory(string(text)) != dies {
			t.Errorf("it died of something else: %.500s", text)
		}
	}
}

// A worker has nothing but its pipe: no environment, no other descriptor even if
// ours were handed to us open, a group of its own, no core.
func TestHygiene(t *testing.T) {
	t.Setenv("HUTCH_SECRET", "hunter2")
	file, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	leaked, err := syscall.Dup(int(file.Fd())) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Close(leaked); err != nil {
			t.Error(err)
		}
	}()

	// Once it has a module, nobody but root may look so closely.
	pid := greeted(t)
	proc := fmt.Sprintf("/proc/%d", pid)
	if env, err := os.ReadFile(proc + "/environ"); err != nil || len(env) > 0 {
		t.Errorf("environment %q, %v, want none", env, err)
	}
	entries, err := os.ReadDir(proc + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(proc, "fd", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		pipe := strings.HasPrefix(target, "pipe:") && len(e.Name()) == 1 && e.Name() <= "2"
		if !pipe && !strings.HasPrefix(target, "anon_inode:[event") { // of the Go runtime
			t.Errorf("descriptor %s is %s", e.Name(), target)
		}
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process group %d, %v, want its own", group, err)
	}
	if dir, err := os.Readlink(proc + "/cwd"); err != nil || dir != "/" {
		t.Errorf("working folder %s, %v", dir, err)
	}
}

// greeted starts a worker that waits for its module, until the test ends.
func greeted(t *testing.T) (pid int) {
	t.Helper()
	c, err := startChild(workertest.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.kill()
		_ = c.wait() // it was killed
		_, _ = c.in.Close(), c.out.Close()
	})
	if h, err := readHeader(c.out); err != nil || h.kind != kindHello {
		t.Fatalf("first frame %+v, %v, want a hello", h, err)
	}
	return c.pid
}

// What the parent asks for reaches the kernel.
func TestMemoryLimitIsSet(t *testing.T) {
	p := newReal(t, Options{})
	if _, err := p.Describe(t.Context(), doing()); err != nil {
		t.Fatal(err)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.processes()[0].child.pid))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"Max data size":      fmt.Sprint(p.ceiling(doing().Limits.WithDefaults())),
		"Max core file size": "0",
	}
	for line := range strings.Lines(string(limits)) {
		for name, most := range want {
			if rest, ok := strings.CutPrefix(line, name); ok && strings.Fields(rest)[0] != most {
				t.Errorf("limit %q, want %s", line, most)
			}
		}
	}
}

// A worker that is stopped from outside is seen within its limit, between calls
// and in the middle of one, and replaced: nobody's call fails for it.
func TestStoppedWorkerIsReplaced(t *testing.T) {
	p := newReal(t, Options{Heartbeat: time.Second})
	m := doing(dialecttest.Sleep(300*time.Millisecond), dialecttest.Text("done"))
	call := func() {
		t.Helper()
		if body, _, err := p.Call(t.Context(), m, tool("echo", `{}`)); err != nil || !strings.Contains(string(body), "done") {
			t.Errorf("got %q, %v", body, err)
		}
	}
	stop := func() {
		t.Helper()
		for _, proc := range p.processes() {
			if proc.reason() == "" {
				if err := syscall.Kill(proc.child.pid, syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
			}
		}
	}
	call()
	stop()
	waitUntil(t, func() bool { return p.Stats().Ends["frozen"] == 1 })
	call()
	var running sync.WaitGroup
	running.Go(call)
	waitUntil(t, func() bool { return pending(p) == 1 })
	stop()
	running.Wait()
	if s := p.Stats(); s.Ends["frozen"] != 2 || s.Reruns != 1 || s.Starts != 3 {
		t.Errorf("stats %+v, want two frozen workers replaced and one call run again", s)
	}
}
