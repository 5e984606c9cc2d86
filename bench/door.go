package main

import "context"

// door runs the Go benchmarks of the way out of the sandbox: what a gated operation
// costs in the process that serves it, beyond the pipe. Of a request to a server
// the part that decides is ours to keep small; the whole stands beside the same
// request by net/http alone, over the same connection to nobody.
func door(ctx context.Context, r *report, s setup) error {
	found, err := goBenchmarks(ctx, s.worker, "Gate|Mirror", "./host/gate")
	if err != nil {
		return err
	}
	us := func(name string) float64 { return found.get(name, "sec/op") * 1e6 }
	r.add(
		figure{Name: "a gated operation: a value of its own storage", Program: "host/gate in process", Value: us("Gate/kv"), Unit: "us", AtMost: 3}.
			beside("one that is refused", us("Gate/refused")),
		figure{Name: "decide about a request: its URL read, rules matched", Program: "host/gate in process", Value: us("GateDecide"), Unit: "us", AtMost: 3},
		figure{Name: "a gated request with a secret put in, no network", Program: "host/gate in process", Value: us("Gate/http"), Unit: "us"}.
			beside("net/http alone", us("Mirror")),
		// Both run on the same machine within the same minute, so the bound is on their ratio.
		figure{Name: "a gated request with a secret put in, to net/http alone", Program: "host/gate in process", Value: us("Gate/http") / us("Mirror"),
			Unit: "times", AtMost: 5},
	)
	return found.missing()
}
