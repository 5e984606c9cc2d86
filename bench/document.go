package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// The lines of a document between which a table stands, so that no figure in it was
// typed by hand.
const (
	tableBegins = "<!-- make bench-engine writes what follows -->\n"
	tableEnds   = "<!-- end of what make bench-engine writes -->\n"
)

// document writes the figures about something into a file.
func (r *report) document(file, about string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(old, []byte(tableBegins))
	_, after, ended := bytes.Cut(rest, []byte(tableEnds))
	if !found || !ended {
		return fmt.Errorf("%s: no table: wanted are the lines %q and %q", file, tableBegins, tableEnds)
	}
	text := bytes.Join([][]byte{before, []byte(tableBegins), []byte(r.about(about).markdown()), []byte(tableEnds), after}, nil)
	return os.WriteFile(file, text, 0o644)
}

// about is the part of r that is about something.
func (r *report) about(what string) *report {
	some := *r
	some.Figures = nil
	for _, f := range r.Figures {
		if f.About == what {
			some.Figures = append(some.Figures, f)
		}
	}
	return &some
}

// markdown is a table for documents. Its lines about the machine are short ones.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, %s,\n%s; load %s before; %s.\n\n", r.Version, r.Go, r.Machine, r.Load, r.Date.Format(time.DateOnly))
	b.WriteString("| what | where | measured | at most | beside it |\n|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		aim, beside := "", ""
		if f.AtMost > 0 {
			aim = short(f.AtMost) + " " + f.Unit
			if f.missed() {
				aim += ", MISSED"
			}
		}
		if f.Ratio > 0 {
			beside = fmt.Sprintf("%s: %s %s", f.Beside, short(f.Other), f.Unit)
		}
		fmt.Fprintf(&b, "| %s | %s | %s %s | %s | %s |\n", f.Name, f.Program, short(f.Value), f.Unit, aim, beside)
	}
	b.WriteByte('\n')
	return b.String()
}
