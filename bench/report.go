package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// A figure is one thing measured, beside what it is compared with in the same
// run. Only the ratio says much on a machine that others use too.
type figure struct {
	Name string `json:"name"`
	// Program says what ran.
	Program string  `json:"program"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	// AtMost is the value we aim to stay under, in Unit; zero if there is none.
	AtMost float64 `json:"atMost,omitempty"`
	// Beside says what Other measures; empty if nothing stands beside it.
	Beside string  `json:"beside,omitempty"`
	Other  float64 `json:"other,omitempty"`
	// Ratio is Value to Other.
	Ratio float64 `json:"ratio,omitempty"`
	// About is the part of hutch that it is of, where a document has a table of that.
	About string `json:"about,omitempty"`
}

// missed reports whether f is over its aim.
func (f figure) missed() bool { return f.AtMost > 0 && f.Value > f.AtMost }

func (f figure) beside(what string, other float64) figure {
	f.Beside, f.Other = what, other
	if other > 0 {
		f.Ratio = f.Value / other
	}
	return f
}

// A report is what one run found, and on which machine.
type report struct {
	Date    time.Time `json:"date"`
	Go      string    `json:"go"`
	Machine string    `json:"machine"`
	Load    string    `json:"load"`
	// Hutch and Worker are the programs measured, as they were named.
	Hutch  string `json:"hutch"`
	Worker string `json:"worker"`
	// Version is that of the source that the bench was built from.
	Version string `json:"version,omitempty"`
	// OK says that no aim was missed.
	OK      bool     `json:"ok"`
	Figures []figure `json:"figures"`
}

func newReport(s setup) *report {
	return &report{
		Hutch: s.hutch, Worker: s.worker, Version: "hutch " + version, OK: true,
		Date:    time.Now().UTC().Truncate(time.Second),
		Go:      runtime.Version(),
		Machine: fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor()),
		Load:    load(),
	}
}

func (r *report) add(figures ...figure) {
	for _, f := range figures {
		r.OK = r.OK && !f.missed()
		r.Figures = append(r.Figures, f)
	}
}

// table writes r for people.
func (r *report) table(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%s with workers of %s\n%s, %s, load %s, %s\n\n", r.Hutch, r.Worker,
		r.Go, r.Machine, r.Load, r.Date.Format(time.DateOnly)); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tprogram\tmeasured\tat most\tratio\tbeside")
	for _, f := range r.Figures {
		aim, ratio, beside := "", "", ""
		if f.AtMost > 0 {
			aim = fmt.Sprintf("%s %s", short(f.AtMost), f.Unit)
			if f.missed() {
				aim += "  MISSED"
			}
		}
		if f.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", f.Ratio)
			beside = fmt.Sprintf("%s: %s %s", f.Beside, short(f.Other), f.Unit)
		}
		fmt.Fprintf(w, "%s\t%s\t%s %s\t%s\t%s\t%s\n", f.Name, f.Program, short(f.Value), f.Unit, aim, ratio, beside)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", r.summary())
	return err
}

// summary says in one line whether the aims were met.
func (r *report) summary() string {
	aims, missed := 0, []string{}
	for _, f := range r.Figures {
		if f.AtMost > 0 {
			aims++
		}
		if f.missed() {
			missed = append(missed, fmt.Sprintf("%s: %s %s, at most %s", f.Name, short(f.Value), f.Unit, short(f.AtMost)))
		}
	}
	if len(missed) == 0 {
		return fmt.Sprintf("all %d aims are met", aims)
	}
	return fmt.Sprintf("MISSED %d of %d aims: %s", len(missed), aims, strings.Join(missed, "; "))
}

func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// short prints three significant digits, without an exponent.
func short(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// processor is the model's name on Linux, else nothing.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": \t")
		}
	}
	return ""
}

// load is the load average before the run.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
