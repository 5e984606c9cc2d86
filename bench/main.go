// Command bench measures hutch beside what it is compared with, all in one run,
// and prints a table and JSON. It runs at the root of the repository after the
// programs were built; `make bench` does both.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	hutch := flag.String("hutch", "bin/hutch", "the program to measure")
	out := flag.String("json", "bench.out", "file that gets the figures as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *hutch, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, hutch, out string) error {
	hutch, err := filepath.Abs(hutch)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hutch-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	r := newReport()
	for _, section := range []struct {
		name    string
		measure func(context.Context, *report, string, string) error
	}{
		{"twenty modules", twenty},
		{"the wall", wall},
		{"extism/go-sdk", peer},
	} {
		fmt.Fprintln(os.Stderr, "bench: measuring", section.name)
		if err := section.measure(ctx, r, hutch, scratch); err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
	}
	if err := r.table(os.Stdout); err != nil {
		return err
	}
	return r.writeJSON(out)
}
