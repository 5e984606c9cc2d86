// Command peers runs the same guests in hutch and in what it is compared with, in
// one process and one round after the other, and prints a table of ratios. It runs
// at the root of the repository; `make bench` does that.
//
// A wrong result, or an engine or guest that breaks, is an error. What this machine
// has no compiler for is left out, and said; with HUTCH_REQUIRE=all that is an
// error too. An aim that is missed is said under the table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	var o options
	flag.StringVar(&o.source, "source", "bench/peers", "folder of this program's sources, with the guests")
	flag.StringVar(&o.json, "json", "build/bench.json", "file that gets the figures as JSON")
	flag.StringVar(&o.from, "from", "", "show the figures of this JSON file, and measure nothing")
	flag.StringVar(&o.documents, "documents", "", "comma-separated Markdown files that get the table, between their marks")
	flag.StringVar(&o.clock, "clock", wallClock, "what is measured: wall time, or the cpu time of this process, for a machine that others use")
	flag.BoolVar(&o.quick, "quick", false, "a few rounds, which show that all of it runs and no more")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

type options struct {
	source, json, from, documents, clock string
	quick                                bool
}

func run(ctx context.Context, o options) (err error) {
	if o.source, err = filepath.Abs(o.source); err != nil {
		return err
	}
	r, err := o.report(ctx)
	if err != nil {
		return err
	}
	if err := r.print(os.Stdout); err != nil || o.documents == "" {
		return err
	}
	if r.Quick {
		return errors.New("-documents: a few rounds have no figures for them")
	}
	return r.document(o.documents)
}

// report measures, or reads what was measured.
func (o options) report(ctx context.Context) (*report, error) {
	if o.from != "" {
		return readReport(o.from)
	}
	r, err := measure(ctx, o)
	if err == nil {
		err = r.writeJSON(o.json)
	}
	return r, err
}

// measure makes the guests and runs them in every engine.
func measure(ctx context.Context, o options) (_ *report, err error) {
	scratch, err := os.MkdirTemp("", "hutch-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	work := thorough
	if o.quick {
		work = quick
	}
	if work.clock, err = clockNamed(o.clock); err != nil {
		return nil, err
	}
	r, all := newReport(work, o.quick), engines(scratch, work.clock)
	for _, g := range guests(o.source) {
		fmt.Fprintf(os.Stderr, "bench: the %s guest\n", g.name)
		switch err := g.make(ctx, scratch); {
		case errors.Is(err, errMissing) && os.Getenv("HUTCH_REQUIRE") != "all":
			r.leave(fmt.Sprintf("the %s guest is left out: %s", g.name, err))
			continue
		case err != nil:
			return nil, fmt.Errorf("the %s guest: %w", g.name, err)
		}
		if err := r.guest(ctx, g, all, work); err != nil {
			return nil, err
		}
	}
	return r, r.finish(all)
}

// guest adds one guest's rows.
func (r *report) guest(ctx context.Context, g *guest, all []named, work effort) error {
	l, err := load(ctx, g, all, r.leave)
	if err != nil {
		return err
	}
	rows, err := l.measure(ctx, work)
	if err := errors.Join(err, l.close(ctx)); err != nil {
		return err
	}
	r.rows = append(r.rows, rows...)
	return nil
}
