package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// wall runs the Go benchmarks of the process boundary and of the guest ABIs, and
// keeps the lowest of three runs: what the machine does when it is left alone.
func wall(ctx context.Context, r *report, _, _ string) error {
	lowest, err := goBenchmarks(ctx, "RoundTrip|LargeCall|Spawn|Megabyte|FreshInstance", "./runtime/worker", "./runtime/dialect")
	if err != nil {
		return err
	}
	get := func(name, unit string) float64 { return lowest[name+" "+unit] }
	r.add(
		figure{Name: "parent to worker and back, 1 KiB, p50", Value: get("RoundTrip/pipe", "p50-us"), Unit: "us", AtMost: 30}.
			beside("and a fresh instance runs", get("RoundTrip/guest", "p50-us")),
		figure{Name: "1 MB in and out of a Go guest, hutch:host", Value: get("Megabyte/hutch", "sec/op") * 1e3, Unit: "ms", AtMost: 5}.
			beside("extism:host/env", get("Megabyte/v1", "sec/op")*1e3),
		figure{Name: "1 MB to a worker's guest and back, p50", Value: get("LargeCall/guest", "p50-us") / 1e3, Unit: "ms"},
		figure{Name: "start a worker, to its hello, p50", Value: get("Spawn/hello", "p50-us") / 1e3, Unit: "ms"}.
			beside("with a small module described", get("Spawn/described", "p50-us")/1e3),
		figure{Name: "fresh instance of a Go guest and one call", Value: get("FreshInstance/hutch", "sec/op") * 1e3, Unit: "ms"}.
			beside("the same with go-pdk", get("FreshInstance/v1", "sec/op")*1e3),
	)
	return nil
}

// goBenchmarks returns the lowest value of each benchmark and unit, under
// "Name/sub unit" without the number of cores.
func goBenchmarks(ctx context.Context, pattern string, packages ...string) (map[string]float64, error) {
	args := append([]string{"test", "-run", "^$", "-bench", pattern, "-count", "3"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	lowest := map[string]float64{}
	for reader := benchfmt.NewReader(&out, "go test"); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue // a line of another kind
		}
		name, _, _ := strings.Cut(result.Name.String(), "-")
		for _, v := range result.Values {
			key := name + " " + v.Unit
			if old, ok := lowest[key]; !ok || v.Value < old {
				lowest[key] = v.Value
			}
		}
	}
	return lowest, nil
}
