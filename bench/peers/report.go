package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is what one run found, and on which machine.
type report struct {
	Date     time.Time         `json:"date"`
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	// Load is the load average before the run and after it.
	Load [2]string `json:"load"`
	// Clock is what was measured: wall or cpu time.
	Clock  string `json:"clock"`
	Quick  bool   `json:"quick"`
	Rounds rounds `json:"rounds"`
	// Baseline is the engine that every ratio is to.
	Baseline string   `json:"baseline"`
	Engines  []string `json:"engines"`
	Rows     []figure `json:"rows"`
	Means    []mean   `json:"geometricMeans"`
	Aims     []aim    `json:"aims"`
	// OK says that no aim was missed.
	OK bool `json:"ok"`
	// Left says what was left out, and why.
	Left []string `json:"leftOut"`

	rows []row
}

type rounds struct {
	Compute int `json:"compute"`
	Fresh   int `json:"freshCalls"`
}

// A figure is one workload of one guest in one engine.
type figure struct {
	Guest    string `json:"guest"`
	Workload string `json:"workload"`
	Engine   string `json:"engine"`
	// Microseconds is what it took.
	Microseconds spread `json:"microseconds"`
	// Ratio is that to the baseline's in the same round; P99 is to the
	// baseline's P99, whenever that was.
	Ratio spread `json:"ratio"`
}

// A mean is one engine beside another over all workloads that both ran, without
// the fresh calls.
type mean struct {
	Engine string  `json:"engine"`
	To     string  `json:"to"`
	Mean   float64 `json:"mean"`
	Worst  float64 `json:"worst"`
	// At is where the worst is.
	At string `json:"at"`
}

func newReport(e effort, isQuick bool) *report {
	return &report{
		Date:     time.Now().UTC().Truncate(time.Second),
		Machine:  fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processor()),
		Versions: versions(),
		Load:     [2]string{loadAverage()},
		Clock:    e.clock.name,
		Quick:    isQuick,
		Rounds:   rounds{e.compute, e.fresh},
		Baseline: baseline,
		Left:     []string{},
	}
}

// leave notes what was left out, once.
func (r *report) leave(why string) {
	for _, known := range r.Left {
		if known == why {
			return
		}
	}
	r.Left = append(r.Left, why)
}

// finish works out what follows from the rows.
func (r *report) finish(all []named) error {
	took := map[string]bool{}
	for _, row := range r.rows {
		if _, ok := row.times.ratio(ours, baseline); !ok {
			return fmt.Errorf("%s, %s: %s and %s did not both run it", row.guest, row.workload, ours, baseline)
		}
		for _, e := range all {
			ratio, ok := row.times.ratio(e.name, baseline)
			if !ok {
				continue
			}
			took[e.name] = true
			f := figure{Guest: row.guest, Workload: row.workload, Engine: e.name, Microseconds: row.times.microseconds(e.name), Ratio: ratio}
			f.Ratio.P99 = f.Microseconds.P99 / row.times.microseconds(baseline).P99
			r.Rows = append(r.Rows, f)
		}
	}
	if len(r.Rows) == 0 {
		return fmt.Errorf("nothing was measured: no guest was built")
	}
	for _, e := range all {
		if !took[e.name] {
			continue
		}
		r.Engines = append(r.Engines, e.name)
		if m, ok := r.mean(e.name, baseline); ok && e.name != baseline {
			r.Means = append(r.Means, m)
		}
	}
	if m, ok := r.mean(ours, wasmtimeFuel); ok {
		r.Means = append(r.Means, m)
	}
	r.Aims = r.aims()
	r.OK = len(r.missed()) == 0
	r.Load[1] = loadAverage()
	return nil
}

// mean compares the medians of an engine with another's.
func (r *report) mean(engine, to string) (mean, bool) {
	m, logs, n := mean{Engine: engine, To: to}, 0.0, 0
	for _, row := range r.rows {
		ratio, ok := row.times.ratio(engine, to)
		if !ok || row.workload == freshCall {
			continue
		}
		logs += math.Log(ratio.P50)
		n++
		if ratio.P50 > m.Worst {
			m.Worst, m.At = ratio.P50, row.guest+", "+row.workload
		}
	}
	if n == 0 {
		return m, false
	}
	m.Mean = math.Exp(logs / float64(n))
	return m, true
}

// find returns a figure, or nil.
func (r *report) find(guest, workload, engine string) *figure {
	for i, f := range r.Rows {
		if f.Guest == guest && f.Workload == workload && f.Engine == engine {
			return &r.Rows[i]
		}
	}
	return nil
}

// others are the engines that have a column.
func (r *report) others() []string {
	return slices.DeleteFunc(slices.Clone(r.Engines), func(name string) bool { return name == r.Baseline })
}

// cells is the table: a head, then lines of the same length.
func (r *report) cells() [][]string {
	table := [][]string{append([]string{"guest", "workload", r.Baseline + " takes"}, r.others()...)}
	for _, f := range r.Rows {
		if f.Engine != r.Baseline {
			continue
		}
		median := []string{f.Guest, f.Workload, duration(f.Microseconds.P50)}
		last := []string{f.Guest, f.Workload + ", p99", duration(f.Microseconds.P99)}
		for _, e := range r.others() {
			other := r.find(f.Guest, f.Workload, e)
			if other == nil {
				median, last = append(median, ""), append(last, "")
				continue
			}
			median = append(median, fmt.Sprintf("%s ±%s", short(other.Ratio.P50), short((other.Ratio.P90-other.Ratio.P10)/2)))
			last = append(last, short(other.Ratio.P99))
		}
		table = append(table, median)
		if f.Workload == freshCall {
			table = append(table, last)
		}
	}
	return append(table, r.meanCells()...)
}

const meanLine = "geometric mean"

// meanCells are the table's last two lines.
func (r *report) meanCells() [][]string {
	means, worst := []string{"all but fresh calls", meanLine, ""}, []string{"", "worst", ""}
	for _, e := range r.others() {
		i := slices.IndexFunc(r.Means, func(m mean) bool { return m.Engine == e && m.To == r.Baseline })
		if i < 0 {
			means, worst = append(means, ""), append(worst, "")
			continue
		}
		means, worst = append(means, short(r.Means[i].Mean)), append(worst, short(r.Means[i].Worst))
	}
	return [][]string{means, worst}
}

// print writes r for people.
func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "Ratios of %s time to %s's in the same round: median, ± half of what lies between p10 and p90.\n%s\n\n", r.Clock, r.Baseline, r.about())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, line := range r.cells() {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, why := range r.Left {
		fmt.Fprintln(out, why)
	}
	_, err := fmt.Fprintln(out, r.summary())
	return err
}

// about says what was measured, where and when.
func (r *report) about() string {
	var v []string
	for _, name := range []string{"hutch", "go", "wazero", "extism/go-sdk", "wasmtime-go"} {
		if r.Versions[name] != "" {
			v = append(v, name+" "+r.Versions[name])
		}
	}
	return fmt.Sprintf("%s; %s; load %s before and %s after; %s; %s time, %d rounds, %d of fresh calls",
		strings.Join(v, ", "), r.Machine, r.Load[0], r.Load[1], r.Date.Format(time.DateOnly), r.Clock, r.Rounds.Compute, r.Rounds.Fresh)
}

// readReport reads what writeJSON wrote.
func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(r.Rows) == 0 || len(r.Engines) == 0 {
		return nil, fmt.Errorf("%s has no figures of other engines", path)
	}
	return r, nil
}

func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
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
	case v < 0.1 && v >= 0.0005:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// duration prints microseconds as what they are read best.
func duration(microseconds float64) string {
	if microseconds >= 1000 {
		return short(microseconds/1000) + " ms"
	}
	return short(microseconds) + " us"
}

// version is hutch's, set by the linker.
var version = "dev"

// versions are those of what was measured, as they were built into this program.
func versions() map[string]string {
	found := map[string]string{"hutch": version, "go": strings.TrimPrefix(runtime.Version(), "go")}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return found
	}
	names := map[string]string{
		"github.com/tetratelabs/wazero":               "wazero",
		"github.com/extism/go-sdk":                    "extism/go-sdk",
		"github.com/bytecodealliance/wasmtime-go/v37": "wasmtime-go",
	}
	for _, d := range info.Deps {
		if name := names[d.Path]; name != "" {
			found[name] = d.Version
		}
	}
	return found
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

// loadAverage is the load average of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
