package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"
)

// A table of a document stands between two lines that say which command writes it, so that
// no figure in it was typed by hand.
type table struct{ about, target string }

// tables are all that a document has.
func tables() []table { return []table{{aboutEngine, "bench-engine"}, {aboutTracker, "bench-tracker"}} }

func (t table) begins() string { return "<!-- make " + t.target + " writes what follows -->\n" }
func (t table) ends() string   { return "<!-- end of what make " + t.target + " writes -->\n" }

// document writes the figures that there are into the tables of a file.
func (r *report) document(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, t := range tables() {
		some := r.about(t.about)
		if len(some.Figures) == 0 {
			continue
		}
		before, rest, found := bytes.Cut(text, []byte(t.begins()))
		_, after, ended := bytes.Cut(rest, []byte(t.ends()))
		if !found || !ended {
			return fmt.Errorf("%s: no table: wanted are the lines %q and %q", file, t.begins(), t.ends())
		}
		text = bytes.Join([][]byte{before, []byte(t.begins()), []byte(some.markdown()), []byte(t.ends()), after}, nil)
	}
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
