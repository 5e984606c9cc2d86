package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// wall runs the Go benchmarks of the process boundary and of loading a guest, and
// keeps the lowest of three runs: what the machine does when it is left alone.
func wall(ctx context.Context, r *report, s setup) error {
	found, err := goBenchmarks(ctx, s.worker, "RoundTrip|Mirror|LargeCall|Spawn|Load|Jail", "./runtime/worker", "./runtime/dialect")
	if err != nil {
		return err
	}
	get := found.get
	r.add(
		figure{Name: "parent to worker and back, 1 KiB, p50", Program: "hutch-worker", Value: get("RoundTrip/pipe", "p50-us"), Unit: "us", AtMost: 30}.
			beside("a process that only sends it back", get("Mirror", "p50-us")),
		figure{Name: "the same, and a fresh instance runs", Program: "hutch-worker", Value: get("RoundTrip/guest", "p50-us"), Unit: "us"},
		figure{Name: "1 MB to a worker's guest and back, p50", Program: "hutch-worker", Value: get("LargeCall/guest", "p50-us") / 1e3, Unit: "ms"},
		figure{Name: "start a worker, to its hello, p50", Program: "hutch-worker", Value: get("Spawn/hello", "p50-us") / 1e3, Unit: "ms"}.
			beside("with a small module described", get("Spawn/described", "p50-us")/1e3),
		figure{Name: "what the jail adds to that, from the cache, p50", Program: "hutch-worker", Value: (get("Jail/with", "p50-us") - get("Jail/without", "p50-us")) / 1e3, Unit: "ms", AtMost: 5}.
			beside("the whole without it", get("Jail/without", "p50-us")/1e3),
		figure{Name: "compile a Go guest", Program: "sandbox in process", Value: get("Load/compile", "sec/op") * 1e3, Unit: "ms"}.
			beside("from the cache", get("Load/cached", "sec/op")*1e3),
	)
	return found.missing()
}

// A lowest holds the lowest value of each benchmark and unit, under "Name/sub
// unit" without the number of cores.
type lowest struct {
	values map[string]float64
	all    map[string][]float64 // of each run, the lowest first
	lacks  []string             // what was asked for and is not there
}

func (l *lowest) get(name, unit string) float64 {
	value, ok := l.values[name+" "+unit]
	if !ok {
		l.lacks = append(l.lacks, name+" in "+unit)
	}
	return value
}

// middle is the median of all runs. The lowest of ratios would be no more right than the
// highest.
func (l *lowest) middle(name, unit string) float64 {
	all := l.all[name+" "+unit]
	if len(all) == 0 {
		return l.get(name, unit)
	}
	return all[len(all)/2]
}

// missing returns an error that names what get did not find.
func (l *lowest) missing() error {
	if len(l.lacks) == 0 {
		return nil
	}
	return fmt.Errorf("no benchmark gave %s", strings.Join(l.lacks, ", "))
}

// goBenchmarks runs benchmarks of packages with that worker.
func goBenchmarks(ctx context.Context, worker, pattern string, packages ...string) (*lowest, error) {
	args := append([]string{"test", "-run", "^$", "-bench", pattern, "-count", "3"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	var out bytes.Buffer
	cmd.Env = append(os.Environ(), "HUTCH_TEST_WORKER="+worker)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	all := map[string][]float64{}
	for reader := benchfmt.NewReader(&out, "go test"); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line of another kind
		}
		name, _, _ := strings.Cut(result.Name.String(), "-")
		for _, v := range result.Values {
			key := name + " " + v.Unit
			all[key] = append(all[key], v.Value)
		}
	}
	values := map[string]float64{}
	for key, of := range all {
		slices.Sort(of)
		values[key] = of[0]
	}
	return &lowest{values: values, all: all}, nil
}
