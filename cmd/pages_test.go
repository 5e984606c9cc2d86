package cmd_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longestLine is how wide text may be in a page, in bytes. Rows of tables and
// what stands in a fence cannot be broken.
const longestLine = 100

// TestPages holds what people read to a form that renders as it was meant.
func TestPages(t *testing.T) {
	pages := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "node_modules", "bin"}, d.Name())):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages++
		for _, fault := range pageFaults(string(body)) {
			t.Errorf("%s:%s", strings.TrimPrefix(filepath.ToSlash(path), "../"), fault)
		}
		return nil
	})
	if err != nil || pages < 8 {
		t.Errorf("%d pages were read: %v", pages, err)
	}
}

func TestPagesFindsFaults(t *testing.T) {
	for _, c := range []struct{ name, page, want string }{
		{"fine", "# A\n\n| a | b |\n|---|---|\n| `x\\|y` | z |\n\n```sh\n# A\nmake\n```\n\n## B\n", ""},
		{"a blank line before the end of a fence", "```\nmake\n\n```\n", "4: a blank line stands before the end of this block"},
		{"a fence in a list", "- x\n\n  ```go\n  f()\n\n  ```\n", "6: a blank line stands before the end of this block"},
		{"no end of a fence", "# A\n```sh\nmake\n", "2: this block has no end"},
		{"an end that is none", "```sh\nmake\n``` x\n", "1: this block has no end"},
		{"a heading twice", "# A\n## B\ntext\n## B\n", "4: a heading that stands there twice: B"},
		{"a cell too many", "| a | b |\n|---|---|\n| c | d | e |\n", "3: 3 cells in a table of 2"},
		{"a cell too few", "| a | b |\n|---|---|\n| c |\n", "3: 1 cells in a table of 2"},
		{"a table without its line", "| a | b |\n| c | d |\n", "2: a table has a line of dashes below its head"},
		{"a row that stands alone", "text\n\n| a | b |\n", "3: a table has a line of dashes below its head"},
		{"a long line", strings.Repeat("x", longestLine) + "\nand " + strings.Repeat("x ", 50) + "\n", "2: 104 bytes, at most 100"},
	} {
		if got := strings.Join(pageFaults(c.page), "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// pageReader goes through a page line by line.
type pageReader struct {
	faults   []string
	headings map[string]bool
	fence    int // line at which a block began, 0 outside
	cells    int // of the table's head, 0 outside
	row      int // of the table
	before   string
}

// pageFaults returns what is wrong with a page, each with its line.
func pageFaults(page string) []string {
	r := &pageReader{headings: map[string]bool{}}
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	for i, line := range lines {
		r.line(i+1, line)
		r.before = line
	}
	r.endTable(len(lines) + 1)
	if r.fence > 0 {
		r.bad(r.fence, "this block has no end")
	}
	return r.faults
}

func (r *pageReader) bad(line int, format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf("%d: ", line)+fmt.Sprintf(format, args...))
}

var (
	dashes  = regexp.MustCompile(`^\|(?:\s*:?-+:?\s*\|)+$`)
	heading = regexp.MustCompile(`^#{1,6} +(.*)`)
)

func (r *pageReader) line(at int, line string) {
	text := strings.TrimSpace(line)
	if strings.HasPrefix(text, "```") && (r.fence == 0 || text == "```") {
		r.edge(at)
		return
	}
	if r.fence > 0 {
		return
	}
	if !strings.HasPrefix(text, "|") {
		r.endTable(at)
		r.prose(at, line)
		return
	}
	r.tableRow(at, text)
}

// edge is where a block begins or ends.
func (r *pageReader) edge(at int) {
	if r.fence == 0 {
		r.endTable(at)
		r.fence = at
		return
	}
	if strings.TrimSpace(r.before) == "" {
		r.bad(at, "a blank line stands before the end of this block")
	}
	r.fence = 0
}

func (r *pageReader) prose(at int, line string) {
	if m := heading.FindStringSubmatch(line); m != nil {
		if r.headings[m[1]] {
			r.bad(at, "a heading that stands there twice: %s", m[1])
		}
		r.headings[m[1]] = true
	}
	if len(line) > longestLine {
		r.bad(at, "%d bytes, at most %d", len(line), longestLine)
	}
}

// tableRow counts cells as GitHub does: by bars that no backslash stands before.
func (r *pageReader) tableRow(at int, text string) {
	r.row++
	cells := strings.Count(strings.ReplaceAll(text, `\|`, ""), "|") - 1
	switch {
	case r.row == 1:
		r.cells = cells
	case r.row == 2 && !dashes.MatchString(text):
		r.bad(at, "a table has a line of dashes below its head")
	case cells != r.cells:
		r.bad(at, "%d cells in a table of %d", cells, r.cells)
	}
}

func (r *pageReader) endTable(at int) {
	if r.row == 1 {
		r.bad(at-1, "a table has a line of dashes below its head")
	}
	r.row, r.cells = 0, 0
}
