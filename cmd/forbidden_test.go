package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// forbidden names are used nowhere but in tests, each for a reason that
// RATIONALE.md has.
var forbidden = []string{
	"WithCloseOnContextDone", // a guest is stopped by the fuel it counts
}

// What measures other programs is a module of its own, and may use whatever those do.
func TestForbiddenNamesAreUsedNowhere(t *testing.T) {
	found, read, err := forbiddenUses("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range found {
		t.Errorf("%s: see RATIONALE.md", use)
	}
	if !slices.Contains(read, "runtime/sandbox/sandbox.go") {
		t.Error("runtime/sandbox/sandbox.go was not read: not the module's root?")
	}
}

// TestForbiddenNamesAreFound plants uses of one.
func TestForbiddenNamesAreFound(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"called.go":       "package p\n\nfunc f() { g().WithCloseOnContextDone(true) }\n",
		"called_linux.go": "package p\n\nvar v = wazero.RuntimeConfig.WithCloseOnContextDone\n",
		"called_test.go":  "package p\n\nfunc h() { g().WithCloseOnContextDone(true) }\n",
		"said.go":         "package p\n\n// WithCloseOnContextDone stays off.\nvar w = \"WithCloseOnContextDone\"\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, _, err := forbiddenUses(root)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"called.go:3: WithCloseOnContextDone", "called_linux.go:3: WithCloseOnContextDone"}
	if !slices.Equal(found, want) {
		t.Errorf("got %q, want %q", found, want)
	}
}

// forbiddenUses parses the production files of the module at root, and says which
// those are.
func forbiddenUses(root string) (found, read []string, err error) {
	files, err := readTree(root)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		read = append(read, f.path)
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, filepath.Join(root, f.path), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && slices.Contains(forbidden, id.Name) {
				found = append(found, fmt.Sprintf("%s:%d: %s", f.path, set.Position(id.Pos()).Line, id.Name))
			}
			return true
		})
	}
	return found, read, nil
}
