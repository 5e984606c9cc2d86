package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// A document keeps its table between these lines, so that no figure in it was
// typed by hand.
const (
	tableBegins = "<!-- make bench-documents writes what follows -->\n"
	tableEnds   = "<!-- end of what make bench-documents writes -->\n"
)

// document writes the table into each of the files.
func (r *report) document(files string) error {
	for _, file := range strings.Split(files, ",") {
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := between(old, r.markdown())
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// between returns text with what stands between its marks replaced.
func between(text []byte, table string) ([]byte, error) {
	before, rest, found := bytes.Cut(text, []byte(tableBegins))
	_, after, ended := bytes.Cut(rest, []byte(tableEnds))
	if !found || !ended {
		return nil, errors.New("the marks of the table are missing, see tableBegins")
	}
	return bytes.Join([][]byte{before, []byte(tableBegins), []byte(table), []byte(tableEnds), after}, nil), nil
}

// markdown is the table as a document has it.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s.\n\n", r.about())
	for i, line := range r.cells() {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(line)) + "\n")
		}
	}
	b.WriteString("\n")
	for _, why := range r.Left {
		fmt.Fprintf(&b, "- %s\n", why)
	}
	fmt.Fprintf(&b, "- %s\n\n", r.summary())
	return b.String()
}
