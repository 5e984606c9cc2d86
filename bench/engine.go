package main

import "context"

// aboutEngine is what figures of the engine are about.
const aboutEngine = "the engine"

// engine runs the Go benchmarks of what people at agents wait for: turns of a model that
// plays a script, so that all of the time is ours, in this process and over SSE, and what
// streams and runs take while nothing happens. What a turn waits for the disk is left out
// where it says so, since that is the disk's.
func engine(ctx context.Context, r *report, s setup) error {
	found, err := goBenchmarks(ctx, s.worker, "^Benchmark(Engine|LongThread|IdleStreams|RunsAtOnce)$", "./cmd/hutch")
	if err != nil {
		return err
	}
	ms := func(name string) float64 { return found.get("Engine", name+"-us") / 1e3 }
	kib := func(name, unit string) float64 { return found.get(name, unit) / 1024 }
	const here, sse = "hutch in process", "hutch over SSE"
	figures := []figure{
		{Name: "a text turn without its commits, p50", Program: here, Value: ms("text-p50"), Unit: "ms", AtMost: 1},
		figure{Name: "the same over SSE, to the end of the stream, p50", Program: sse, Value: ms("sse-p50"), Unit: "ms", AtMost: 2}.
			beside("net/http with the same frames", ms("bare-p50")),
		{Name: "the same, p99", Program: sse, Value: ms("sse-p99"), Unit: "ms"},
		{Name: "its commits", Program: here, Value: found.get("Engine", "commits/text"), Unit: "commits", AtMost: 2},
		{Name: "how long it waits for them, p50", Program: here, Value: ms("commits-p50"), Unit: "ms"},
		{Name: "from the request to its first event, with a commit, p50", Program: sse, Value: ms("first-p50"), Unit: "ms", AtMost: 10},
		{Name: "from the request to its first event, with a commit, p99", Program: sse, Value: ms("first-p99"), Unit: "ms", AtMost: 10},
		{Name: "a turn with a tool in a worker, without its commits, p50", Program: here, Value: ms("tool-p50"), Unit: "ms"},
		{Name: "the same over SSE, p50", Program: sse, Value: ms("sse-tool-p50"), Unit: "ms"},
		{Name: "its commits, of a tool that only reads", Program: here, Value: found.get("Engine", "commits/tool"), Unit: "commits", AtMost: 3},
	}
	for _, t := range []struct{ name, of string }{{"turn 10,000 of a thread", "LongThread/warm"}, {"turn 10,000 after a start", "LongThread/cold"}} {
		figures = append(figures,
			figure{Name: t.name + ", to turn 10", Program: here, Value: found.middle(t.of, "whole-ratio"), Unit: "times", AtMost: 1.5},
			figure{Name: t.name + ", without its commits, to turn 10", Program: here, Value: found.middle(t.of, "own-ratio"), Unit: "times"},
			figure{Name: t.name + ", p50", Program: here, Value: found.middle(t.of, "turn10000-us") / 1e3, Unit: "ms"}.
				beside("turn 10", found.middle(t.of, "turn10-us")/1e3))
	}
	figures = append(figures,
		figure{Name: "each of 1,000 idle streams, beyond a bare server's", Program: sse, Value: kib("IdleStreams", "B/more"), Unit: "KiB", AtMost: 64}.
			beside("the bare server's, of net/http", kib("IdleStreams", "B/bare")),
		figure{Name: "100 turns asked for at once, until all have ended, p50", Program: sse, Value: found.get("RunsAtOnce", "100runs-p50-ms"), Unit: "ms"},
		figure{Name: "each of 100 runs that wait, with its client", Program: sse, Value: kib("RunsAtOnce", "B/run"), Unit: "KiB"},
		figure{Name: "goroutines of each, with its client's", Program: sse, Value: found.get("RunsAtOnce", "goroutines/run"), Unit: "goroutines"},
	)
	for i := range figures {
		figures[i].About = aboutEngine
	}
	r.add(figures...)
	return found.missing()
}
