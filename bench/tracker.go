package main

import (
	"context"
	"errors"
)

// aboutTracker is what figures of the tracker are about.
const aboutTracker = "the tracker"

// trackers runs the Go benchmarks of what a tracker is for: many agents that are connected
// and told of something, lists of many tasks, and changes by the tools. Times are on the
// wall, but where processor time is named.
func trackers(ctx context.Context, r *report, s setup) error {
	hub, err := goBenchmarks(ctx, s.worker, "^Benchmark(IdleAgents|FanOut)$", "./protocol/trackerhub")
	if err != nil {
		return err
	}
	lists, err := goBenchmarks(ctx, s.worker, "^BenchmarkFilteredTasks$", "./runtime/store")
	if err != nil {
		return err
	}
	write, err := goBenchmarks(ctx, s.worker, "^BenchmarkTrackerWrite$", "./cmd/hutch")
	if err != nil {
		return err
	}
	kib := func(unit string) float64 { return hub.get("IdleAgents", unit) / 1024 }
	const process, board, tool = "a tracker's process", "the board in process", "hutch in process"
	figures := []figure{
		{Name: "each of 1,000 idle agents, resident", Program: process, Value: kib("resident-B/agent"), Unit: "KiB", AtMost: 60},
		{Name: "the same, heap and stacks", Program: process, Value: kib("B/agent"), Unit: "KiB", AtMost: 60},
		figure{Name: "one message to 1,000 agents, p99", Program: process, Value: hub.get("FanOut", "p99-ms"), Unit: "ms", AtMost: 250}.
			beside("p50", hub.get("FanOut", "p50-ms")),
		{Name: "the same with 1,000 acknowledgements, processor time", Program: process, Value: hub.get("FanOut", "server-cpu-ms"), Unit: "ms"},
	}
	for _, on := range []struct {
		engine string
		most   float64
	}{{"SQLite", 20}, {"PostgreSQL", 0}} {
		of := "FilteredTasks/" + on.engine
		figures = append(figures,
			figure{Name: "list_tasks with filters, of 100,000, " + on.engine + ", p99", Program: board, Value: lists.get(of, "p99-ms"), Unit: "ms", AtMost: on.most}.
				beside("p50", lists.get(of, "p50-ms")),
			figure{Name: "the question that takes longest, " + on.engine + ", p50", Program: board, Value: lists.get(of, "worst-ms"), Unit: "ms"})
	}
	us := func(what string) float64 { return write.get("TrackerWrite", what+"-p50-us") }
	figures = append(figures,
		figure{Name: "a durable change by a tool, to the same over REST and a fresh call", Program: tool, Value: write.middle("TrackerWrite", "ratio"), Unit: "times", AtMost: 1.1},
		figure{Name: "a durable change by a tool, p50", Program: tool, Value: us("tool") / 1e3, Unit: "ms"}.beside("over REST", us("rest")/1e3),
		figure{Name: "a fresh call of that tool that asks for nothing, p50", Program: tool, Value: us("fresh") / 1e3, Unit: "ms"})
	for i := range figures {
		figures[i].About = aboutTracker
	}
	r.add(figures...)
	return errors.Join(hub.missing(), lists.missing(), write.missing())
}
