// Package cmd_test holds what is true of the whole tree: who may import whom,
// and that the README's commands work.
package cmd_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/hutch-run/hutch"

// The map. A package is named by its folder, "." is the module's root.

// folders says which other top folders (or single packages in them) the
// packages of a top folder may see. A top folder that is not here may not exist.
var folders = map[string][]string{
	".":          nil,
	"protocol":   nil,
	"guests":     {"protocol/abi", "protocol/tool"},
	"runtime":    {"protocol"},
	"host":       {"protocol"},
	"tools-wasm": nil,
	"cmd":        {".", "protocol", "runtime", "host", "tools-wasm"},
}

// everything stands for all that the top folder may see, and its siblings.
const everything = "*"

// packages says which of our packages a package may import, completely; one
// that is not here may import none. "x/*" is the row of all packages in x that
// have none of their own.
var packages = map[string][]string{
	"protocol/event":    {"protocol/chat", "protocol/tool"},
	"protocol/rawjson":  {"protocol/abi"},
	"protocol/portable": {"protocol/abi", "protocol/rawjson", "protocol/tool"},
	"protocol/access":   {"protocol/abi"},
	"protocol/mcp":      {"protocol/abi", "protocol/rawjson", "protocol/tool"},
	"protocol/agui":     {"protocol/chat", "protocol/event", "protocol/rawjson"},
	"protocol/a2a":      {"protocol/chat", "protocol/event"},
	"protocol/console":  {"protocol/event", "protocol/tool"},

	"protocol/trackerclient": {"protocol/tracker"},
	"protocol/trackerhub":    {"protocol/tracker"},
	"protocol/trackerrest":   {"protocol/tracker"},

	"protocol/strictyaml": {"protocol/abi"},
	"protocol/definition": {"protocol/abi", "protocol/portable", "protocol/rawjson", "protocol/tool"},

	"host/capability":   {"host/address", "protocol/abi", "protocol/rawjson", "protocol/strictyaml", "protocol/tool"},
	"host/gate":         {"host/address", "host/capability", "host/fetch", "host/kv", "host/receipt", "host/secrets", "host/trackerproxy", "protocol/abi", "protocol/rawjson", "protocol/tool"},
	"host/fetch":        {"host/address", "host/capability", "protocol/abi"},
	"host/kv":           {"protocol/abi", "protocol/rawjson"},
	"host/secrets":      {"host/capability", "host/ownfile", "protocol/abi"},
	"host/guestlog":     {"protocol/abi"},
	"host/trackerproxy": {"protocol/abi", "protocol/tracker"},
	"host/conversation": {"host/capability", "protocol/abi", "protocol/chat"},
	"host/bridge":       {"host/capability", "protocol/abi", "protocol/tool"},
	"host/receipt":      {"protocol/tool"},

	"runtime/sandbox":  {"runtime/plainfile", "runtime/wasmbin", "protocol/abi"},
	"runtime/dialect":  {"runtime/sandbox", "runtime/wasmbin", "protocol/abi", "protocol/rawjson", "protocol/tool"},
	"runtime/worker":   {"runtime/dialect", "runtime/sandbox", "protocol/abi"},
	"runtime/registry": {"runtime/dialect", "runtime/plainfile", "runtime/schema", "runtime/wasmbin", "runtime/worker", "protocol/abi", "protocol/definition", "protocol/portable", "protocol/rawjson", "protocol/tool"},
	"runtime/schema":   {"protocol/abi"},
	"runtime/reload":   {"runtime/plainfile", "protocol/abi", "protocol/tool"},
	"runtime/llm":      {"protocol/abi", "protocol/chat", "protocol/rawjson", "protocol/tool"},
	"runtime/script":   {"protocol/chat", "protocol/rawjson", "protocol/strictyaml"},
	"runtime/agent":    {"runtime/approval", "runtime/prompt", "protocol/chat", "protocol/event", "protocol/tool"},
	"runtime/approval": {"runtime/prompt", "protocol/event"},
	"runtime/prompt":   {"protocol/chat", "protocol/event", "protocol/tool"},
	"runtime/session":  {"runtime/history", "runtime/tail", "protocol/chat", "protocol/event"},
	"runtime/history":  {"protocol/chat"},
	"runtime/tail":     {"protocol/chat", "protocol/event"},
	"runtime/mailbox":  {"protocol/chat"},
	"runtime/router":   {"protocol/tracker"},
	"runtime/store":    {"runtime/board", "runtime/mailbox", "runtime/router", "runtime/session", "protocol/access", "protocol/event", "protocol/tracker"},
	"runtime/board":    {"protocol/tracker"},

	// What its site serves, only its users' tests see.
	"runtime/board/boardtest": {"protocol/trackerrest"},

	"guests/sdk":         {"protocol/abi", "protocol/tool"},
	"guests/sdk/fetch":   {"guests/sdk", "protocol/abi"},
	"guests/sdk/kv":      {"guests/sdk", "protocol/abi"},
	"guests/sdk/tracker": {"guests/sdk", "protocol/abi"},
	"guests/*":           {"guests/sdk", "guests/sdk/fetch", "guests/sdk/kv", "guests/sdk/tracker"},
	"guests/examples/*":  {"guests/sdk", "guests/sdk/fetch"},

	"cmd/hutch":        {everything},
	"cmd/hutch-worker": {"runtime/worker"},
	// What hutch tells a collector is the program's business, as its figures are, and too
	// much for the folder of the commands. Nothing that is told of knows of it.
	"cmd/hutch/telemetry": {"host/gate", "protocol/abi", "protocol/chat", "protocol/tool"},
}

// sealed packages may import nothing else of the standard library. The vocabulary
// is part of every guest, and a large import there is in each of them.
var sealed = map[string][]string{
	".":             {"embed"},
	"protocol/abi":  {"context", "encoding/json", "fmt", "strings", "time", "unicode", "unicode/utf8"},
	"protocol/tool": {"encoding/json", "errors"},
}

// libraries says who may import a third-party module. One that is not here has
// no owner and may not be imported: a new dependency is a decision in a diff.
var libraries = map[string][]string{
	"github.com/tetratelabs/wazero":            {"runtime/sandbox"},
	"github.com/extism/go-sdk":                 {"runtime/dialect"},
	"github.com/landlock-lsm/go-landlock":      {"runtime/worker"},
	"github.com/elastic/go-seccomp-bpf":        {"runtime/worker"},
	"golang.org/x/sys":                         {"cmd/hutch", "runtime/sandbox", "runtime/worker"},
	"github.com/santhosh-tekuri/jsonschema/v6": {"runtime/schema"},
	"github.com/fsnotify/fsnotify":             {"runtime/reload"},
	"github.com/gofrs/flock":                   {"runtime/owner", "runtime/store"},
	"github.com/openai/openai-go/v3":           {"runtime/llm"},
	"modernc.org/sqlite":                       {"runtime/store"},
	"github.com/jackc/pgx/v5":                  {"runtime/store"},

	"github.com/modelcontextprotocol/go-sdk": {"protocol/mcp"},
	"github.com/a2aproject/a2a-go/v2":        {"protocol/a2a"},
	"github.com/go-chi/chi/v5":               {"protocol/trackerrest", "cmd/hutch"},
	"github.com/gorilla/websocket":           {"protocol/trackerclient", "protocol/trackerhub"},

	"golang.org/x/time":           {"host/gate", "runtime/worker"},
	"golang.org/x/text":           {"runtime/reload"},
	"filippo.io/age":              {"host/secrets"},
	"github.com/goccy/go-yaml":    {"protocol/strictyaml"},
	"golang.org/x/net":            {"guests/fetch", "host/capability"},
	"github.com/urfave/cli/v2":    {"cmd/hutch"},
	"golang.org/x/term":           {"cmd/hutch"},
	"github.com/extism/go-pdk":    {"guests/examples/*"},
	"golang.org/x/crypto":         {"guests/hash"},
	"github.com/itchyny/gojq":     {"guests/jq"},
	"github.com/rivo/uniseg":      {"guests/text"},
	"github.com/yuin/goldmark":    {"guests/markdown"},
	"github.com/sosodev/duration": {"guests/dates"},

	"codeberg.org/readeck/go-readability/v2": {"guests/fetch"},

	"github.com/aymanbagabas/go-udiff":    {"guests/text"},
	"github.com/prometheus/client_golang": {"cmd/hutch"},
	"go.opentelemetry.io/otel":            {"cmd/hutch/telemetry"},
	"go.opentelemetry.io/proto/otlp":      {"cmd/hutch/telemetry"},
	"google.golang.org/protobuf":          {"cmd/hutch/telemetry"},
	"github.com/rogpeppe/go-internal":     testsAlone,
	"go.uber.org/goleak":                  testsAlone,
	"golang.org/x/tools/txtar":            testsAlone,
}

// testsAlone owns what any _test.go file, and no other, may import.
var testsAlone = []string{"_test.go"}

// A run's engine must not know how its callers are connected: taking our own
// edges transitively, no path leads from engine to net/http or to a facade.
var (
	engine  = []string{"runtime/agent", "runtime/session", "runtime/mailbox", "runtime/router"}
	facades = []string{"protocol/mcp", "protocol/agui", "protocol/a2a", "protocol/trackerclient", "protocol/trackerhub", "protocol/trackerrest", "protocol/console"}
)

// TestLayers holds the tree to the map above, and the map to the tree.
//
// It parses in this process and asks no `go list`: the test cache does not see
// what a child process reads, so such a test answers "ok (cached)" with a
// violation in the tree; and `go list` sees one GOOS, so imports in _wasip1.go,
// _windows.go or _darwin.go files stay invisible. Both happened.
func TestLayers(t *testing.T) {
	files, err := readTree("..")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(f source) bool { return f.path == "protocol/tool/tool.go" }) {
		t.Fatal("protocol/tool/tool.go not found: not the module's root?")
	}
	for _, v := range slices.Concat(violations(files), unused(files)) {
		t.Error(v)
	}
}

// TestLayersFindsViolations plants one violation of each kind.
func TestLayersFindsViolations(t *testing.T) {
	ours := func(pkgs ...string) (imports []string) {
		for _, p := range pkgs {
			imports = append(imports, path.Join(module, p))
		}
		return imports
	}
	for _, tt := range []struct {
		name string
		tree []source
		want string
	}{
		{"top folder", []source{{"pkg/x/x.go", nil}}, "pkg/x/x.go: top folder pkg is not on the map"},
		{"top folder, test file", []source{{"internal/x_test.go", nil}}, "internal/x_test.go: top folder internal is not on the map"},
		{"folder", []source{{"runtime/agent/a.go", ours("host/gate")}}, "runtime/agent/a.go: runtime may not see host/gate"},
		{"folder, upwards", []source{{"protocol/tool/a.go", ours("runtime/agent")}}, "protocol/tool/a.go: protocol may not see runtime/agent"},
		{"folder, one package of it", []source{{"guests/text/a.go", ours("protocol/mcp")}}, "guests/text/a.go: guests may not see protocol/mcp"},
		{"folder, other system", []source{{"host/kv/a_windows.go", ours("runtime/store")}}, "host/kv/a_windows.go: host may not see runtime/store"},
		{"cmd and guests", []source{{"cmd/hutch/a.go", ours("guests/sdk")}}, "cmd/hutch/a.go: cmd may not see guests/sdk"},
		{"sibling", []source{{"runtime/sandbox/a.go", ours("runtime/worker")}}, "runtime/sandbox/a.go: runtime/sandbox may not import runtime/worker"},
		{"lower folder, not in the row", []source{{"runtime/reload/a.go", ours("protocol/rawjson")}}, "runtime/reload/a.go: runtime/reload may not import protocol/rawjson"},
		{"package without a row", []source{{"runtime/new/a.go", ours("protocol/tool")}}, "runtime/new/a.go: runtime/new may not import protocol/tool"},
		{"row of a folder", []source{{"guests/text/a.go", ours("guests/hash")}}, "guests/text/a.go: guests/text may not import guests/hash"},
		{"worker binary", []source{{"cmd/hutch-worker/a.go", ours("runtime/registry")}}, "cmd/hutch-worker/a.go: cmd/hutch-worker may not import runtime/registry"},
		{"root", []source{{"embed.go", ours("protocol/tool")}}, "embed.go: . may not see protocol/tool"},
		{"root, standard library", []source{{"embed.go", []string{"os"}}}, `embed.go: . may import embed only, not "os"`},
		{"vocabulary, standard library", []source{{"protocol/tool/a.go", []string{"regexp"}}}, `protocol/tool/a.go: protocol/tool may import encoding/json, errors only, not "regexp"`},
		{"root, not for all", []source{{"runtime/dialect/a.go", ours(".")}}, "runtime/dialect/a.go: runtime may not see ."},
		{"library without owner", []source{{"runtime/llm/a.go", []string{"github.com/x/y"}}}, "runtime/llm/a.go: github.com/x/y has no owner"},
		{"library without owner, test file", []source{{"runtime/llm/a_test.go", []string{"github.com/x/y"}}}, "runtime/llm/a_test.go: github.com/x/y has no owner"},
		{"library of another", []source{{"runtime/dialect/a.go", []string{"github.com/tetratelabs/wazero/api"}}}, "runtime/dialect/a.go: github.com/tetratelabs/wazero/api belongs to runtime/sandbox"},
		{"library, similar name", []source{{"runtime/sandbox/a.go", []string{"github.com/tetratelabs/wazero-two"}}}, "runtime/sandbox/a.go: github.com/tetratelabs/wazero-two has no owner"},
		{"library of tests", []source{{"runtime/worker/a.go", []string{"go.uber.org/goleak"}}}, "runtime/worker/a.go: go.uber.org/goleak belongs to _test.go"},
		{"test package", []source{{"runtime/store/a.go", ours("runtime/session/sessiontest")}}, "runtime/store/a.go: only _test.go files import runtime/session/sessiontest"},
		{"testing", []source{{"runtime/store/a.go", []string{"testing"}}}, `runtime/store/a.go: only …test packages import "testing"`},
		{"testing, below", []source{{"runtime/store/a.go", []string{"testing/fstest"}}}, `runtime/store/a.go: only …test packages import "testing/fstest"`},
		{"test package, not its subject", []source{{"runtime/session/sessiontest/a.go", append(ours("runtime/mailbox"), "testing")}}, "runtime/session/sessiontest/a.go: runtime/session/sessiontest may not import runtime/mailbox"},
		{"engine and net/http", []source{
			{"runtime/router/a.go", ours("runtime/session")},
			{"runtime/session/a.go", ours("protocol/event")},
			{"protocol/event/a.go", ours("protocol/chat")},
			{"protocol/chat/a.go", []string{"net/http"}},
		}, "runtime/router -> runtime/session -> protocol/event -> protocol/chat -> net/http"},
		{"engine and facade", []source{
			{"runtime/mailbox/a.go", ours("protocol/chat")},
			{"protocol/chat/a.go", ours("protocol/a2a")},
		}, "runtime/mailbox -> protocol/chat -> protocol/a2a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := violations(tt.tree); !slices.Contains(got, tt.want) {
				t.Errorf("got %q\nwant among them %q", got, tt.want)
			}
		})
	}
}

// TestLayersAllows holds that the rules let through what they should.
func TestLayersAllows(t *testing.T) {
	tree := []source{
		{"embed.go", []string{"embed"}},
		{"cmd/hutch/wire.go", []string{module, module + "/runtime/worker", module + "/tools-wasm", "net/http"}},
		{"cmd/hutch/a_test.go", []string{"testing", "github.com/rogpeppe/go-internal/testscript"}},
		{"runtime/session/sessiontest/a.go", []string{module + "/runtime/session", module + "/protocol/chat", "testing"}},
		{"runtime/store/a_test.go", []string{module + "/runtime/session/sessiontest", "testing"}},
		{"guests/examples/shout/a.go", []string{module + "/guests/sdk", "github.com/extism/go-pdk"}},
		{"guests/text/a.go", []string{module + "/guests/sdk", "github.com/rivo/uniseg"}},
	}
	if got := violations(tree); got != nil {
		t.Errorf("got %q, want none", got)
	}
}

// TestLayersFindsUnusedRules holds that the map cannot rot.
func TestLayersFindsUnusedRules(t *testing.T) {
	tree := []source{
		{"cmd/hutch/main.go", nil},
		{"protocol/chat/a.go", nil},
		{"protocol/event/a.go", nil},
		{"runtime/sandbox/a.go", nil},
	}
	got := unused(tree)
	for _, want := range []string{
		"no file of cmd imports from runtime: drop the rule",
		"no file of protocol/event imports protocol/chat: drop the rule",
		"no file of runtime/sandbox imports github.com/tetratelabs/wazero: drop the rule",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("got %q\nwant among them %q", got, want)
		}
	}
	for _, v := range got {
		if strings.Contains(v, "protocol/tool") || strings.Contains(v, "runtime/worker") {
			t.Errorf("rule about a package that does not exist yet: %s", v)
		}
	}
}

// source is one Go file: its path from the module's root, with slashes, and
// what it imports.
type source struct {
	path    string
	imports []string
}

func (s source) pkg() string     { return path.Dir(s.path) }
func (s source) isTest() bool    { return strings.HasSuffix(s.path, "_test.go") }
func (s source) suite() bool     { return isSuite(s.pkg()) }
func isSuite(pkg string) bool    { return strings.HasSuffix(pkg, "test") }
func topOf(pkg string) string    { top, _, _ := strings.Cut(pkg, "/"); return top }
func within(pkg, of string) bool { return pkg == of || strings.HasPrefix(pkg, of+"/") }

// local returns the folder of one of our own packages.
func local(imp string) (pkg string, ok bool) {
	if imp == module {
		return ".", true
	}
	return strings.CutPrefix(imp, module+"/")
}

// rowFor finds pkg in a table that may have "x/*" rows.
func rowFor(table map[string][]string, pkg string) (string, []string) {
	for _, key := range []string{pkg, path.Join(path.Dir(pkg), "*")} {
		if row, ok := table[key]; ok {
			return key, row
		}
	}
	return pkg, nil
}

// violations returns every way in which files break the map.
func violations(files []source) (found []string) {
	for _, f := range files {
		report := func(format string, args ...any) {
			found = append(found, f.path+": "+fmt.Sprintf(format, args...))
		}
		if _, ok := folders[topOf(f.pkg())]; !ok {
			report("top folder %s is not on the map", topOf(f.pkg()))
			continue
		}
		for _, imp := range f.imports {
			if pkg, ok := local(imp); ok {
				checkLocal(f, pkg, report)
			} else if strings.Contains(topOf(imp), ".") {
				checkLibrary(f, imp, report)
			} else {
				checkStandard(f, imp, report)
			}
		}
	}
	return append(found, enginePaths(files)...)
}

type reporter func(format string, args ...any)

func checkLocal(f source, pkg string, report reporter) {
	if f.isTest() {
		return // a test may build on whatever it needs
	}
	if isSuite(pkg) {
		report("only _test.go files import %s", pkg)
		return
	}
	from := f.pkg()
	if f.suite() { // a contract suite sees its subject, what that sees, and its own row
		if from = path.Dir(from); from == pkg || slices.Contains(packages[f.pkg()], pkg) {
			return
		}
	}
	if !folderSees(topOf(from), pkg) {
		report("%s may not see %s", topOf(from), pkg)
		return
	}
	if _, row := rowFor(packages, from); !slices.Contains(row, pkg) && !slices.Contains(row, everything) {
		report("%s may not import %s", f.pkg(), pkg)
	}
}

func folderSees(top, pkg string) bool {
	return top == topOf(pkg) && top != "." ||
		slices.ContainsFunc(folders[top], func(seen string) bool { return within(pkg, seen) })
}

func checkLibrary(f source, imp string, report reporter) {
	var owners []string
	for lib, o := range libraries {
		if within(imp, lib) {
			owners = o
		}
	}
	key, _ := rowFor(packages, f.pkg())
	switch {
	case owners == nil:
		report("%s has no owner", imp)
	case f.isTest(): // a test may call a library as a judge, or for its corpus
	case slices.Contains(owners, f.pkg()), slices.Contains(owners, key):
	default:
		report("%s belongs to %s", imp, strings.Join(owners, ", "))
	}
}

func checkStandard(f source, imp string, report reporter) {
	if f.isTest() {
		return
	}
	if within(imp, "testing") && !f.suite() {
		report("only …test packages import %q", imp)
	}
	if allowed, ok := sealed[f.pkg()]; ok && !slices.Contains(allowed, imp) {
		report("%s may import %s only, not %q", f.pkg(), strings.Join(allowed, ", "), imp)
	}
}

// enginePaths returns the shortest path from each package of the engine to
// each thing that it must not reach.
func enginePaths(files []source) (found []string) {
	edges := edgesOf(files)
	for _, start := range engine {
		queue, seen := [][]string{{start}}, map[string]bool{start: true}
		for len(queue) > 0 {
			trail := queue[0]
			queue = queue[1:]
			last := trail[len(trail)-1]
			if last == "net/http" || slices.Contains(facades, last) {
				found = append(found, strings.Join(trail, " -> "))
				continue
			}
			for _, next := range slices.Sorted(maps.Keys(edges[last])) {
				if !seen[next] {
					seen[next] = true
					queue = append(queue, append(slices.Clone(trail), next))
				}
			}
		}
	}
	return found
}

// graph holds what each package's production files import: our own packages by
// folder, the rest by import path.
type graph map[string]map[string]bool

func edgesOf(files []source) graph {
	edges := graph{}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		if edges[f.pkg()] == nil {
			edges[f.pkg()] = map[string]bool{}
		}
		for _, imp := range f.imports {
			if pkg, ok := local(imp); ok {
				imp = pkg
			}
			edges[f.pkg()][imp] = true
		}
	}
	return edges
}

// has reports whether a package of the tree matches.
func (g graph) has(match func(pkg string) bool) bool {
	for pkg := range g {
		if match(pkg) {
			return true
		}
	}
	return false
}

// joins reports whether an edge leads from one match to another.
func (g graph) joins(from, to func(pkg string) bool) bool {
	return g.has(func(pkg string) bool {
		return from(pkg) && slices.ContainsFunc(slices.Collect(maps.Keys(g[pkg])), to)
	})
}

// unused returns the rules that no file needs. Rules about packages that do not
// exist yet are left alone.
func unused(files []source) []string {
	edges := edgesOf(files)
	found := slices.Concat(unusedFolders(edges), unusedPackages(edges), unusedLibraries(files))
	slices.Sort(found)
	return found
}

func unusedFolders(edges graph) (found []string) {
	for top, row := range folders {
		for _, seen := range row {
			from := func(pkg string) bool { return topOf(pkg) == top }
			to := func(pkg string) bool { return within(pkg, seen) }
			if edges.has(from) && edges.has(to) && !edges.joins(from, to) {
				found = append(found, fmt.Sprintf("no file of %s imports from %s: drop the rule", top, seen))
			}
		}
	}
	return found
}

func unusedPackages(edges graph) (found []string) {
	for key, row := range packages {
		for _, seen := range row {
			from := func(pkg string) bool { return inRow(pkg, key) }
			to := func(pkg string) bool { return pkg == seen }
			if edges.has(from) && edges.has(to) && !edges.joins(from, to) {
				found = append(found, fmt.Sprintf("no file of %s imports %s: drop the rule", key, seen))
			}
		}
	}
	return found
}

// unusedLibraries counts tests as users: extism/go-sdk may be there as the
// reference in differential tests alone.
func unusedLibraries(files []source) (found []string) {
	for lib, owners := range libraries {
		for _, owner := range owners {
			exists, used := false, false
			for _, f := range files {
				if inRow(f.pkg(), owner) || f.isTest() && slices.Equal(owners, testsAlone) {
					exists = true
					used = used || slices.ContainsFunc(f.imports, func(imp string) bool { return within(imp, lib) })
				}
			}
			if exists && !used {
				found = append(found, fmt.Sprintf("no file of %s imports %s: drop the rule", owner, lib))
			}
		}
	}
	return found
}

// inRow reports whether the row called key is about pkg.
func inRow(pkg, key string) bool {
	k, _ := rowFor(packages, pkg)
	return pkg == key || k == key
}

// readTree parses the imports of every Go file of the module at root. Nested
// modules, testdata, node_modules and dot folders are other people's business.
func readTree(root string) (files []source, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && skipped(name) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		f, err := readImports(root, name)
		files = append(files, f)
		return err
	})
	return files, err
}

func skipped(dir string) bool {
	base := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".")
}

func readImports(root, name string) (source, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return source{}, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, err
	}
	f := source{path: filepath.ToSlash(rel)}
	for _, spec := range parsed.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		f.imports = append(f.imports, imp)
	}
	return f, nil
}
