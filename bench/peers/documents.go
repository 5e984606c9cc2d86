package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// A mark is the line of a document behind which one of our tables stands, up to
// tableEnds, so that no figure in it was typed by hand.
type mark struct {
	begins string
	table  func(*report) string
}

var marks = []mark{
	{"<!-- make bench-documents writes what follows -->\n", (*report).markdown},
	{"<!-- make bench-documents writes the summary that follows -->\n", (*report).brief},
}

const tableEnds = "<!-- end of what make bench-documents writes -->\n"

// document writes a table into each of the files.
func (r *report) document(files string) error {
	for _, file := range strings.Split(files, ",") {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := r.between(old)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// between returns text with what stands behind its mark replaced.
func (r *report) between(text []byte) ([]byte, error) {
	for _, m := range marks {
		before, rest, found := bytes.Cut(text, []byte(m.begins))
		_, after, ended := bytes.Cut(rest, []byte(tableEnds))
		if found && ended {
			return bytes.Join([][]byte{before, []byte(m.begins), []byte(m.table(r)), []byte(tableEnds), after}, nil), nil
		}
	}
	return nil, fmt.Errorf("no table: wanted are the lines %q and %q", marks[0].begins, tableEnds)
}

// markdown is the whole table, and what is said under it.
func (r *report) markdown() string {
	var b strings.Builder
	r.writeTable(&b, r.cells())
	for _, why := range r.Left {
		fmt.Fprintf(&b, "- %s\n", folded(why, "  "))
	}
	fmt.Fprintf(&b, "- %s\n\n", folded(r.summary(), "  "))
	return b.String()
}

// brief has the fresh calls, and of the rest the geometric mean.
func (r *report) brief() string {
	var b strings.Builder
	all := r.cells()
	short := all[:1:1]
	for _, line := range all[1:] {
		if line[1] == freshCall || line[1] == meanLine {
			short = append(short, line)
		}
	}
	r.writeTable(&b, short)
	return b.String()
}

func (r *report) writeTable(b *strings.Builder, lines [][]string) {
	fmt.Fprintf(b, "\n%s.\n\n", folded(r.about(), ""))
	for i, line := range lines {
		fmt.Fprintf(b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(line)) + "\n")
		}
	}
	b.WriteString("\n")
}

// lineBytes is how long lines of text in a document are, at most.
const lineBytes = 88

// folded breaks a text into lines, of which all but the first are indented.
func folded(text, indent string) string {
	var b strings.Builder
	column := len(indent)
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > lineBytes:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
