package main

import (
	"context"
	"errors"
)

// state runs the Go benchmarks of what lasts: how soon a changed policy is in
// force, and what it takes to keep changes durably.
func state(ctx context.Context, r *report, s setup) error {
	policy, err := goBenchmarks(ctx, s.worker, "Reload", "./cmd/hutch")
	if err != nil {
		return err
	}
	store, err := goBenchmarks(ctx, s.worker, "GroupCommit", "./runtime/store")
	if err != nil {
		return err
	}
	r.add(
		figure{Name: "a changed policy of 1,000 modules, until it is in force, p50", Program: "the parent in process",
			Value: policy.get("Reload", "p50-ms"), Unit: "ms", AtMost: 300},
		// Both meet the same disk in turns, so the ratio is theirs; of three runs the lowest.
		figure{Name: "16 writers' durable changes, to one after the other", Program: "the store in process",
			Value: 1 / store.get("GroupCommit", "ratio"), Unit: "of the time", AtMost: 1.0 / 3},
	)
	return errors.Join(policy.missing(), store.missing())
}
