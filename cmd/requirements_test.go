package cmd_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const requirements = "docs/requirements.md"

var (
	// proof is a test by its folder and name, or a script by its path.
	proof = regexp.MustCompile("`([a-z0-9/-]+)\\.((?:Test|Fuzz|Example)\\w*|txtar)`")
	// threatID is what a test that shows a row of the threats begins with.
	threatID = regexp.MustCompile(`^[DEFHPSC]\d\d$`)
	// rowID is what a row of any table begins with.
	rowID = regexp.MustCompile(`^\| ([A-Z]\d?-|[A-Z])(\d+) \|`)
)

// idGroups are the first parts of ids, in the order of the page.
const idGroups = "M- S0- S1- S2- S3- C- H- E0- E1- E3- D E S F P H C"

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
	for _, fault := range rowsWithoutProof(string(page)) {
		t.Errorf("%s: %s", requirements, fault)
	}
	for _, fault := range rowsOutOfOrder(string(page)) {
		t.Errorf("%s: %s", requirements, fault)
	}
	for _, full := range slices.Sorted(maps.Keys(tests)) {
		for _, id := range threatsOf(full) {
			if !strings.Contains(rows[id], "`"+full+"`") {
				t.Errorf("%s: the row of %s lacks `%s`", requirements, id, full)
			}
		}
	}
}

// A row that stands there twice shows half of what it could, and one out of order
// is looked for in vain.
func TestRequirementsFindsRowsOutOfOrder(t *testing.T) {
	const page = "| M-01 | x |\n| S1-003 | x |\n| S1-052 | x |\n| D01 | x |\n| S05 | x |\n| S03 | x |\n| F01 | x |\n| F01 | x |\n| E01 | x |\n| X01 | x |\n"
	want := []string{"S03 stands behind S05", "F01 stands there twice", "E01 stands behind F01", "X01 is of no group: " + idGroups}
	if got := rowsOutOfOrder(page); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What the tracker and the engine are to do was written down in three documents, of which no
// row is left out.
const lastOfS0, lastOfS1, lastOfS3 = 64, 84, 56

// A row says what shows it, or why nothing does.
func TestRequirementsFindsRowsWithoutProof(t *testing.T) {
	page := "| S3-001 | x | `cmd.TestLayers` |\n| S3-002 | x | n/a: not yet |\n| S3-003 | x | n/a |\n| S3-004 | x | TestLayers |\n"
	for n := 6; n <= lastOfS3; n++ {
		page += fmt.Sprintf("| S3-%03d | x | `a/b.txtar` |\n", n)
	}
	for n := 1; n <= lastOfS0; n++ {
		page += fmt.Sprintf("| S0-%03d | x | `a/b.txtar` |\n", n)
	}
	for n := 1; n < lastOfS1; n++ {
		page += fmt.Sprintf("| S1-%03d | x | `a/b.txtar` |\n", n)
	}
	want := []string{"S3-003 says neither what shows it nor why nothing does", "S3-004 says neither what shows it nor why nothing does", "S1-084 is missing", "S3-005 is missing"}
	if got := rowsWithoutProof(page); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// rowsWithoutProof returns which rows show nothing, and which of the documents are not there.
func rowsWithoutProof(page string) (faults []string) {
	known := map[string]bool{}
	for line := range strings.Lines(page) {
		m := rowID.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id := m[1] + m[2]
		known[id] = true
		if !proof.MatchString(line) && !strings.Contains(line, "| n/a: ") {
			faults = append(faults, id+" says neither what shows it nor why nothing does")
		}
	}
	for _, document := range []struct {
		name string
		last int
	}{{"S0", lastOfS0}, {"S1", lastOfS1}, {"S3", lastOfS3}} {
		for n := 1; n <= document.last; n++ {
			if id := fmt.Sprintf("%s-%03d", document.name, n); !known[id] {
				faults = append(faults, id+" is missing")
			}
		}
	}
	return faults
}

// rowsOutOfOrder returns what is wrong with the order of a page's rows. Each is
// measured by the last that stood right.
func rowsOutOfOrder(page string) (faults []string) {
	groups := strings.Fields(idGroups)
	last, place, number := "", -1, 0
	for line := range strings.Lines(page) {
		m := rowID.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id := strings.TrimSuffix(strings.TrimPrefix(m[0], "| "), " |")
		at := slices.Index(groups, m[1])
		n, err := strconv.Atoi(m[2])
		switch {
		case at < 0 || err != nil:
			faults = append(faults, id+" is of no group: "+idGroups)
		case id == last:
			faults = append(faults, id+" stands there twice")
		case at < place || at == place && n <= number:
			faults = append(faults, id+" stands behind "+last)
		default:
			last, place, number = id, at, n
		}
	}
	return faults
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
