package main

import (
	"context"
	"errors"
	"time"
)

// neighbour shows how much others notice of a module that does what it can to
// disturb them: the same work beside it and alone, in one process.
func neighbour(ctx context.Context, r *report, s setup) error {
	pool, err := goBenchmarks(ctx, s.worker, "Neighbour", "./runtime/worker")
	if err != nil {
		return err
	}
	served, err := goBenchmarks(ctx, s.worker, "Neighbour", "./cmd/hutch")
	if err != nil {
		return err
	}
	// Aims are for liveness: ten times what two idle cores took at worst, and far
	// below the half second for which each hostile call goes on.
	compare := func(from *lowest, what, hostile, unit string, atMost time.Duration) {
		r.add(figure{Name: what + " beside " + hostile, Program: "hutch-worker", Value: from.get("Neighbour/"+hostile, unit),
			Unit: "us", AtMost: float64(atMost.Microseconds())}.
			beside("alone", from.get("Neighbour/alone", unit)))
	}
	for _, hostile := range []string{"spinner", "recursion", "tables", "memory", "log_flood", "output", "calls_host"} {
		compare(pool, "good call, p50,", hostile, "call-p50-us", 0)
		compare(pool, "good call, p99,", hostile, "call-p99-us", 40*time.Millisecond)
		compare(pool, "the parent's collection, p50,", hostile, "gc-p50-us", 30*time.Millisecond)
	}
	compare(served, "good call over MCP, p50,", "spinner", "call-p50-us", 0)
	compare(served, "good call over MCP, p99,", "spinner", "call-p99-us", 70*time.Millisecond)
	compare(served, "/healthz, p50,", "spinner", "health-p50-us", 0)
	compare(served, "/healthz, p99,", "spinner", "health-p99-us", 10*time.Millisecond)
	return errors.Join(pool.missing(), served.missing())
}
