package cmd_test

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What stands at the top of the repository (M-04), and what may stand beside it.
var (
	topLevel = []string{"cmd", "runtime", "host", "guests", "tools-wasm", "protocol", "go.mod", "go.sum", "Makefile", "README.md"}
	besides  = []string{
		"RATIONALE.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "CHANGELOG.md",
		".golangci.yml", ".gitignore", ".npmrc", ".ci", "embed.go", "testdata", "bench", "docs", "deploy", "examples",
	}
)

// TestTopLevel holds the top of the repository to these lists. What git does not
// keep, such as what was built, does not count.
func TestTopLevel(t *testing.T) {
	list := exec.CommandContext(t.Context(), "git", "ls-files")
	list.Dir = ".."
	kept, err := list.Output()
	if err != nil {
		skipUnlessRequired(t, "this is no clone: "+err.Error())
	}
	if _, err := os.ReadDir(".."); err != nil { // a new file there is news to go test's cache
		t.Fatal(err)
	}
	for _, fault := range topLevelFaults(strings.Split(strings.TrimSpace(string(kept)), "\n")) {
		t.Error(fault)
	}
}

func TestTopLevelFindsFaults(t *testing.T) {
	tree := append(slices.Clone(topLevel[1:]), "embed.go", "pkg/x.go", "notes.md", "docs/a/b.md")
	want := []string{"cmd is missing", "notes.md may not stand at the top", "pkg may not stand at the top"}
	if got := topLevelFaults(tree); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func topLevelFaults(files []string) (faults []string) {
	found := map[string]bool{}
	for _, file := range files {
		found[topOf(file)] = true
	}
	for _, name := range topLevel {
		if !found[name] {
			faults = append(faults, name+" is missing")
		}
		delete(found, name)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(besides, name) {
			faults = append(faults, name+" may not stand at the top")
		}
	}
	return faults
}
