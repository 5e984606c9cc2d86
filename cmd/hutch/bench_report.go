package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// benchReport is what "hutch bench --json" prints.
type benchReport struct {
	Date      time.Time `json:"date"`
	Build     buildInfo `json:"build"`
	Cores     int       `json:"cores"`
	Module    string    `json:"module"`
	Digest    string    `json:"digest"`
	Size      int64     `json:"size"` // bytes
	Tool      string    `json:"tool"`
	Arguments int       `json:"argumentBytes"`
	// ColdStart is from nothing to the first answer: check, compile, describe, call.
	ColdStart benchTimes `json:"coldStart"`
	// CachedStart is the same in a new worker, with the compiled code in the cache.
	CachedStart benchTimes `json:"cachedStart"`
	// FreshCall is one call after the other, each from a clean state.
	FreshCall benchTimes `json:"freshCall"`
	// Concurrent is what calls take while Callers call at once.
	Concurrent benchTimes `json:"concurrent"`
	Callers    int        `json:"callers"`
	PerSecond  float64    `json:"callsPerSecond"`
	// Fuel is what the last of the calls one after the other burned.
	Fuel int64 `json:"fuel"`
	// WorkerBytes is the worker's resident memory after all that.
	WorkerBytes int64 `json:"workerBytes,omitempty"`
}

// benchTimes are microseconds.
type benchTimes struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50Us"`
	P99   float64 `json:"p99Us"`
	Worst float64 `json:"worstUs"`
}

// timesOf sorts took; without any, all is zero.
func timesOf(took []time.Duration) benchTimes {
	n := len(took)
	if n == 0 {
		return benchTimes{}
	}
	slices.Sort(took)
	at := func(i int) float64 { return float64(took[i].Nanoseconds()) / 1e3 }
	return benchTimes{Count: n, P50: at(n / 2), P99: at(n * 99 / 100), Worst: at(n - 1)}
}

func (b benchRun) newReport() benchReport {
	return benchReport{
		Date: time.Now().UTC().Truncate(time.Second), Build: readBuildInfo(), Cores: runtime.NumCPU(),
		Module: b.module, Digest: digestOf(b.body), Size: int64(len(b.body)),
		Tool: b.tool, Arguments: len(b.arguments), Callers: b.callers,
	}
}

func (r benchReport) print(out io.Writer) error {
	fmt.Fprintf(out, "%s (%s), tool %s, %s of arguments\nhutch %s, %s/%s, %s, %s\n\n",
		oneLine(r.Module), formatSize(r.Size), oneLine(r.Tool), plural(r.Arguments, "byte", "bytes"),
		r.Build.Version, r.Build.OS, r.Build.Arch, plural(r.Cores, "core", "cores"), r.Date.Format(time.DateOnly))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tp50\tp99\tworst\tmeasured")
	for _, line := range []struct {
		what  string
		times benchTimes
	}{
		{"cold start to the first answer", r.ColdStart},
		{"the same from the cache", r.CachedStart},
		{"call, one after the other", r.FreshCall},
		{"call, " + plural(r.Callers, "caller", "callers"), r.Concurrent},
	} {
		fmt.Fprintf(w, "%s\t%s\n", line.what, line.times)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	memory := "not measured on this system"
	if r.WorkerBytes > 0 {
		memory = formatSize(r.WorkerBytes)
	}
	_, err := fmt.Fprintf(out, "\ncalls a second: %.0f with %s\nfuel of a call: %d\nmemory of the worker: %s\n",
		r.PerSecond, plural(r.Callers, "caller", "callers"), r.Fuel, memory)
	return err
}

// String is the row of a table. Of less than a hundred, nobody knows a p99.
func (t benchTimes) String() string {
	p99 := "-"
	if t.Count >= 100 {
		p99 = shortTime(t.P99)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d", shortTime(t.P50), p99, shortTime(t.Worst), t.Count)
}

// shortTime writes microseconds with three digits and the unit they are read in.
func shortTime(microseconds float64) string {
	value, unit := microseconds, "us"
	switch {
	case value >= 1e6:
		value, unit = value/1e6, "s"
	case value >= 1e3:
		value, unit = value/1e3, "ms"
	}
	decimals := 2
	if value >= 100 {
		decimals = 0
	} else if value >= 10 {
		decimals = 1
	}
	return fmt.Sprintf("%.*f %s", decimals, value, unit)
}
