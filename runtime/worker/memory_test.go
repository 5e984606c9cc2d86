package worker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// wantMemory fails unless err is about the limit of memory.
func wantMemory(t *testing.T, err error, text string) {
	t.Helper()
	wantClass(t, err, abi.ClassLimit, text)
	var f *abi.Failure
	if !errors.As(err, &f) || f.Limit != abi.LimitMemory {
		t.Errorf("limit %q of %v", f.Limit, err)
	}
}

// A guest that ends because it was refused memory is told of the limit, not of
// how it took it: one in C traps at once, one in Go says so first.
func TestGuestsOutOfMemoryAreTold(t *testing.T) {
	p := newReal(t, Options{})
	_, _, err := p.Call(t.Context(), doing(dialecttest.GrowOrTrap(10_000)), tool("echo", `{}`))
	wantMemory(t, err, "at most 67108864; then the tool trapped: unreachable (limits.memory)")

	_, _, err = p.Call(t.Context(), goGuest(t, "testdata/hungry"), tool("eat", `{}`))
	wantMemory(t, err, "at most 67108864; then the tool ")
}

// goGuest builds the program in a folder as a module.
func goGuest(t *testing.T, folder string) Module {
	t.Helper()
	name := filepath.Base(folder) + ".wasm"
	path := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-o", path, "./"+folder)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", folder, err, text)
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return asModule(name, wasm)
}

// A worker that the system refuses memory says so as its last words, and its
// calls are told of the limit; any other crash is a lost worker.
func TestWorkerWithoutMemoryIsTold(t *testing.T) {
	for words, starved := range map[string]bool{
		"fatal error: runtime: out of memory\n\nruntime stack:\n":                               true,
		"runtime: out of memory: cannot allocate 8192-byte block\nfatal error: out of memory\n": true,
		"level=WARN msg=x\nfatal error: runtime: cannot allocate memory\n":                      true,
		"fatal error: all goroutines are asleep\nfatal error: out of memory\n":                  false,
		"level=ERROR msg=\"a tool said: fatal error: out of memory\"\n":                         false,
		"panic: runtime error\n": false,
	} {
		bubble(t, func(t *testing.T) {
			f := newFake(t, Options{}, func(_ context.Context, w *fakeWorker, _ []byte) (guest, error) {
				w.words = words
				return &fakeGuest{w, behaviour{"die": func(context.Context, *fakeWorker, abi.Invocation) ([]byte, error) {
					w.kill()
					return nil, nil
				}}}, nil
			})
			_, _, err := f.Call(t.Context(), numbered(1), tool("die", `{}`))
			if starved {
				wantMemory(t, err, "used up the memory of its process")
			} else {
				wantClass(t, err, abi.ClassWorkerLost, "")
			}
		})
	}
}
