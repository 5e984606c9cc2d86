package wasmbin_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/hutch-run/hutch/runtime/wasmbin"
)

// wide is a budget that leaves only the format to object to.
var wide = wasmbin.Budget{
	FileBytes: 1 << 30, Types: 1 << 30, Params: 1 << 30, Results: 1 << 30, Imports: 1 << 30, Functions: 1 << 30,
	Tables: 1 << 30, TableEntries: 1<<31 - 1, MemoryBytes: 4 << 30, Globals: 1 << 30, Exports: 1 << 30,
	Segments: 1 << 30, BodyBytes: 1 << 30, Locals: 1 << 30, ModuleLocals: 1 << 30,
	Nesting: 1 << 30, Blocks: 1 << 30, Loops: 1 << 30, LoopNesting: 1 << 30, LocalsTimesBlocks: math.MaxInt, LocalsTimesLoops: math.MaxInt,
	BranchTargets: 1 << 30, Values: 1 << 30, BulkOperations: 1 << 30,
}

// onPurpose says whether a module is refused for what the engine takes and we
// do not: imports of tables, memories and globals, and tables that grow without
// an end.
func onPurpose(err error) bool {
	return strings.Contains(err.Error(), "only functions can be imported") ||
		strings.Contains(err.Error(), "declares no maximum")
}

// sources returns where a module of the build has its files.
func sources(t testing.TB, module string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.TrimSpace(string(dir))
}

// modules returns the modules below a folder.
func modules(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".wasm" {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// judge returns a function that asks the engine what it thinks of a module,
// with the features of WebAssembly 2.0 and more.
func judge(t testing.TB, more api.CoreFeatures) func([]byte) error {
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2 | more)
	ctx := context.WithoutCancel(t.Context())
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	t.Cleanup(func() {
		if err := runtime.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return func(b []byte) error {
		m, err := runtime.CompileModule(ctx, b)
		if err != nil {
			return err
		}
		return m.Close(ctx)
	}
}

// corpus is where the engine keeps the modules of its tests.
func corpus(t testing.TB) string {
	return filepath.Join(sources(t, "github.com/tetratelabs/wazero"), "internal", "integration_test")
}

// typed says whether a module is refused for the types of typed function
// references, which the engine decodes whatever features are switched on.
func typed(path string, err error) bool {
	return strings.Contains(path, "typed-function-references") && strings.Contains(err.Error(), "typed function references are not allowed")
}

// Whatever the engine takes, we take, but for what we refuse on purpose and
// types of a proposal that it does not switch off.
// So what we refuse in the files of the specification and its proposals, and
// in those that once broke the engine, the engine must refuse as well.
func TestD15_D18_NoStricterThanTheEngine(t *testing.T) {
	engine := judge(t, 0)
	var accepted, skipped, refused int
	for _, path := range modules(t, corpus(t)) {
		b := read(t, path)
		m, err := wasmbin.Check(b, wide)
		switch {
		case err == nil:
			accepted++
			if _, err := wasmbin.Check(m.Stripped(), wide); err != nil {
				t.Errorf("%s: stripped: %v", path, err)
			}
		case onPurpose(err):
			skipped++
		default:
			refused++
			if engine(b) == nil && !typed(path, err) {
				t.Errorf("%s: the engine takes it: %v", path, err)
			}
		}
	}
	t.Logf("%d accepted, %d refused, %d refused on purpose", accepted, refused, skipped)
	if accepted < 5_000 || refused < 1_800 || skipped > 440 {
		t.Errorf("the corpus changed: %d accepted, %d refused, %d refused on purpose", accepted, refused, skipped)
	}
}

// What the specification calls malformed we refuse.
func TestD07_MalformedOfTheSpecification(t *testing.T) {
	checked := 0
	for _, version := range []string{"v1", "v2"} {
		dir := filepath.Join(corpus(t), "spectest", version, "testdata")
		for _, file := range malformed(t, dir) {
			checked++
			if _, err := wasmbin.Check(read(t, filepath.Join(dir, file)), wide); err == nil {
				t.Errorf("%s/%s is malformed, and accepted", version, file)
			}
		}
	}
	if checked < 400 {
		t.Errorf("the corpus shrank: %d malformed modules", checked)
	}
}

// What the engine takes only with the features of a proposal is refused, and
// the proposal is named.
func TestD15_ProposalsAreNamed(t *testing.T) {
	const all = experimental.CoreFeaturesThreads | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst |
		experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesTypedFunctionReferences
	engine, more := judge(t, 0), judge(t, all)
	tests := []struct {
		dir       string
		atLeast   int // modules that no other reason refuses first
		proposals []string
	}{
		{"threads", 5, []string{"threads are"}},
		{"tail-call", 6, []string{"tail calls are"}},
		{"extended-const", 6, []string{"extended constant expressions are"}},
		{"exception-handling", 14, []string{"exceptions are", "typed function references are", "garbage collected types are"}},
		{"typed-function-references", 28, []string{"typed function references are", "tail calls are"}},
	}
	for _, tt := range tests {
		t.Run(tt.dir, func(t *testing.T) {
			named := 0
			for _, path := range modules(t, filepath.Join(corpus(t), "spectest", tt.dir)) {
				b := read(t, path)
				if engine(b) == nil || more(b) != nil {
					continue
				}
				_, err := wasmbin.Check(b, wide)
				switch {
				case err == nil:
					t.Errorf("%s: accepted", path)
				case names(err, tt.proposals):
					named++
				case !onPurpose(err):
					t.Errorf("%s: %v", path, err)
				}
			}
			t.Logf("%d modules", named)
			if named < tt.atLeast {
				t.Errorf("the corpus shrank: %d modules", named)
			}
		})
	}
}

func names(err error, proposals []string) bool {
	return slices.ContainsFunc(proposals, func(p string) bool { return strings.Contains(err.Error(), ": "+p+" not allowed") })
}

// malformed returns the binary modules that the test scripts in dir assert to
// be malformed.
func malformed(t *testing.T, dir string) []string {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, path := range scripts {
		var script struct {
			Commands []struct {
				Type, Filename string
				ModuleType     string `json:"module_type"`
			}
		}
		if err := json.Unmarshal(read(t, path), &script); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, c := range script.Commands {
			if c.Type == "assert_malformed" && c.ModuleType == "binary" {
				files = append(files, c.Filename)
			}
		}
	}
	return files
}

// The tests' own good module is one by the engine's judgement too.
func TestGoodModuleIsGood(t *testing.T) {
	if err := judge(t, 0)(good()); err != nil {
		t.Error(err)
	}
}
