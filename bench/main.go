// Command bench measures hutch beside what it is compared with, all in one run,
// and prints a table and JSON. It runs at the root of the repository after the
// programs were built; `make bench` does both.
//
// An aim that is missed does not fail it, since the machine may be busy; it is
// said under the table, and "ok" in the JSON is false. What could not be measured
// does fail it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// version is set when the bench is built.
var version = "dev"

func main() {
	var s setup
	flag.StringVar(&s.hutch, "hutch", "bin/hutch", "the program to measure")
	flag.StringVar(&s.worker, "worker", "bin/hutch-worker", "the program of its workers")
	out := flag.String("json", "bench.out", "file that gets the figures as JSON")
	flag.StringVar(&s.only, "only", "", "measure only the sections whose names hold this")
	document := flag.String("document", "", "file that gets the tables of the engine's and of the tracker's figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, *out, *document); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

// A setup is what there is to measure.
type setup struct {
	hutch, worker string // programs
	scratch       string // a folder that is removed at the end
	only          string // part of the names of the sections to measure; empty: all
}

func run(ctx context.Context, s setup, out, document string) (err error) {
	r := newReport(s)
	for _, program := range []*string{&s.hutch, &s.worker} {
		if *program, err = filepath.Abs(*program); err != nil {
			return err
		}
	}
	if s.scratch, err = os.MkdirTemp("", "hutch-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.scratch)

	for _, section := range []struct {
		name    string
		measure func(context.Context, *report, setup) error
	}{
		{"twenty modules", twenty},
		{"a thousand modules", thousand},
		{"a reload", reload},
		{"the pre-check", precheck},
		{"the wall", wall},
		{"the way into a worker", crossing},
		{"the door", door},
		{"a megabyte", megabyte},
		{"hostile neighbours", neighbour},
		{"endless guests", late},
		{"policy and store", state},
		{"the engine", engine},
		{"the tracker", trackers},
		{"extism/go-sdk", peer},
		{"ways to stop a guest", stop},
	} {
		if !strings.Contains(section.name, s.only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "bench: measuring", section.name)
		if err := section.measure(ctx, r, s); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
	}
	if err := r.table(os.Stdout); err != nil {
		return err
	}
	if document != "" {
		if err := r.document(document); err != nil {
			return err
		}
	}
	return r.writeJSON(out)
}
