package wasmbin_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// What two libraries bring along as examples, plug-ins and test data (written
// in AssemblyScript, C, Go, Haskell, Rust, TinyGo, Zig) is within the default budget, except for
// what is listed.
func TestRealModulesAreWithinTheBudget(t *testing.T) {
	refusals := map[string]string{
		"wasm/nested.c.instr.wasm":                  "2457 locals, at most 2000", // instrumented for tracing
		"experimental/testdata/cpp_exceptions.wasm": "exceptions are not allowed",
		"experimental/testdata/fac.wasm":            "tail calls are not allowed",
		"experimental/testdata/memory.wasm":         "threads are not allowed",
		"experimental/testdata/pthread.wasm":        "is of kind memory, only functions can be imported",
	}
	accepted := 0
	for _, dir := range []string{sources(t, "github.com/tetratelabs/wazero"), sources(t, "github.com/extism/go-sdk")} {
		for _, path := range modules(t, dir) {
			if strings.Contains(path, "integration_test") {
				continue // the corpus
			}
			_, err := wasmbin.Check(read(t, path), wasmbin.Budget{})
			switch want := lookUp(refusals, path); {
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %v; want %s", path, err, want)
			case want == "" && err == nil:
				accepted++
			case want == "" && !onPurpose(err):
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if accepted < 50 {
		t.Errorf("only %d modules", accepted)
	}
}

// quickJS is a module version that holds QuickJS as WebAssembly, 1,138 functions
// with an interpreter's large switch among them.
const quickJS = "github.com/fastschema/qjs@v0.0.6"

func TestQuickJSIsWithinTheBudget(t *testing.T) {
	download := exec.Command("go", "mod", "download", "-json", quickJS)
	download.Dir = t.TempDir() // it is no dependency
	out, err := download.Output()
	if err != nil {
		if os.Getenv("HUTCH_REQUIRE") == "all" {
			t.Fatalf("go mod download: %v", err)
		}
		t.Skipf("QuickJS is not at hand: %v", err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	if m := check(t, read(t, filepath.Join(found.Dir, "qjs.wasm"))); m.Functions < 1_000 {
		t.Errorf("%d functions: is this QuickJS?", m.Functions)
	}
}

// lookUp returns the entry for the end of a path.
func lookUp(entries map[string]string, path string) string {
	for end, entry := range entries {
		if strings.HasSuffix(filepath.ToSlash(path), "/"+end) {
			return entry
		}
	}
	return ""
}

// guests are the modules we ship. Where none has been built, one is.
func guests(t testing.TB) []string {
	built, err := filepath.Glob(filepath.Join("..", "..", "tools-wasm", "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if len(built) > 0 {
		return built
	}
	path := filepath.Join(t.TempDir(), "dates.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", path, "../../guests/dates")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("no guest is built, and none can be: %v: %s", err, out)
	}
	return []string{path}
}

func TestGuestsAreWithinTheBudget(t *testing.T) {
	for _, path := range guests(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if m := check(t, read(t, path)); m.Functions < 1_000 {
				t.Errorf("%d functions: is this a Go guest?", m.Functions)
			}
		})
	}
}

func BenchmarkCheckGuest(b *testing.B) {
	for _, path := range guests(b) {
		wasm := read(b, path)
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.SetBytes(int64(len(wasm)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wasmbin.Check(wasm, wasmbin.Budget{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
