package cmd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const requirements = "docs/requirements.md"

var (
	// proof is a test by its folder and name, or a script by its path.
	proof = regexp.MustCompile("`([a-z0-9/-]+)\\.((?:Test|Fuzz|Example)\\w*|txtar)`")
	// threatID is what a test that shows a row of the threats begins with.
	threatID = regexp.MustCompile(`^[DEFHPSC]\d\d$`)
)

// TestRequirements holds docs/requirements.md to the tree.
func TestRequirements(t *testing.T) {
	page, err := os.ReadFile("../" + requirements)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := testsIn("..")
	if err != nil {
		t.Fatal(err)
	}
	named, rows := 0, map[string]string{}
	for line := range strings.Lines(string(page)) {
		if id, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok {
			rows[id] = line
		}
		for _, m := range proof.FindAllStringSubmatch(line, -1) {
			named++
			if !provable(m[1], m[2], tests) {
				t.Errorf("%s: no such test: %s.%s", requirements, m[1], m[2])
			}
		}
	}
	if named == 0 {
		t.Errorf("%s names no test", requirements)
	}
	for _, full := range slices.Sorted(maps.Keys(tests)) {
		for _, id := range threatsOf(full) {
			if !strings.Contains(rows[id], "`"+full+"`") {
				t.Errorf("%s: the row of %s lacks `%s`", requirements, id, full)
			}
		}
	}
}

func provable(folder, name string, tests map[string]bool) bool {
	if name == "txtar" {
		_, err := os.Stat("../" + folder + ".txtar")
		return err == nil
	}
	return tests[folder+"."+name]
}

// threatsOf returns the ids that the name of a test begins with.
func threatsOf(full string) (ids []string) {
	_, name, _ := strings.Cut(full, ".Test")
	for word := range strings.SplitSeq(name, "_") {
		if !threatID.MatchString(word) {
			break
		}
		ids = append(ids, word)
	}
	return ids
}

// testsIn returns the test functions below root, as folder.Name.
func testsIn(root string) (map[string]bool, error) {
	files, err := readTree(root)
	if err != nil {
		return nil, err
	}
	tests := map[string]bool{}
	for _, f := range files {
		if !f.isTest() {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path.Join(root, f.path), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[f.pkg()+"."+fn.Name.Name] = true
			}
		}
	}
	return tests, nil
}
