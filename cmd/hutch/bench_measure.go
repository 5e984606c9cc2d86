package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// How often a start is measured, and which calls before the measured ones warm up
// what a first call does.
const (
	coldStarts   = 3
	cachedStarts = 5
	warmUpCalls  = 20
)

// measure does all that is measured, in a state folder that is gone afterwards.
func (b benchRun) measure(ctx context.Context, say *voice) (r benchReport, err error) {
	r = b.newReport()
	scratch, err := os.MkdirTemp("", "hutch-bench-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	state := func(i int) string { return filepath.Join(scratch, strconv.Itoa(i)) }

	stop := say.slowly("starting " + b.module + " without a cache")
	r.ColdStart, err = repeat(coldStarts, func(i int) error { return b.start(ctx, state(i)) })
	stop()
	if err != nil {
		return r, err
	}
	stop = say.slowly("starting " + b.module + " with one")
	r.CachedStart, err = repeat(cachedStarts, func(int) error { return b.start(ctx, state(0)) })
	stop()
	if err != nil {
		return r, err
	}
	defer say.slowly("calling " + b.tool)()
	return r, b.measureCalls(ctx, state(0), &r)
}

// start is from nothing to the first answer, and the end of the worker.
func (b benchRun) start(ctx context.Context, state string) error {
	o, err := b.open(ctx, state)
	if err != nil {
		return err
	}
	_, err = b.call(ctx, o)
	return errors.Join(err, o.Close())
}

func (b benchRun) measureCalls(ctx context.Context, state string, r *benchReport) (err error) {
	o, err := b.open(ctx, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	call := func(int) (err error) {
		r.Fuel, err = b.call(ctx, o)
		return err
	}
	if _, err = repeat(warmUpCalls, call); err != nil {
		return err
	}
	if r.FreshCall, err = repeat(b.calls, call); err != nil {
		return err
	}
	if r.Concurrent, r.PerSecond, err = b.together(ctx, o); err != nil {
		return err
	}
	r.WorkerBytes = resident(ctx, o)
	return nil
}

// together has all callers call for a while, each its next call as soon as it has
// an answer.
func (b benchRun) together(ctx context.Context, o openedBench) (benchTimes, float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	end := began.Add(b.span)
	took := make([][]time.Duration, b.callers)
	var callers []chan error
	for i := range b.callers {
		callers = append(callers, launch(func() error {
			for time.Now().Before(end) {
				at := time.Now()
				if _, err := b.call(ctx, o); err != nil {
					cancel()
					return err
				}
				took[i] = append(took[i], time.Since(at))
			}
			return nil
		}))
	}
	var first error
	for _, done := range callers {
		if err := <-done; err != nil && (first == nil || errors.Is(first, context.Canceled) || errors.Is(first, tool.ErrCancelled)) {
			first = err
		}
	}
	if first != nil {
		return benchTimes{}, 0, first
	}
	all := slices.Concat(took...)
	return timesOf(all), float64(len(all)) / time.Since(began).Seconds(), nil
}

// resident is the memory of the worker, which its pool measures every second; 0
// where the system does not say.
func resident(ctx context.Context, o openedBench) int64 {
	wait := time.NewTimer(3 * time.Second)
	defer wait.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if bytes := o.pool.Stats().RSS; bytes > 0 {
			return bytes
		}
		select {
		case <-look.C:
		case <-wait.C:
			return 0
		case <-ctx.Done():
			return 0
		}
	}
}

// repeat times each of n runs.
func repeat(n int, run func(i int) error) (benchTimes, error) {
	took := make([]time.Duration, 0, n)
	for i := range n {
		began := time.Now()
		if err := run(i); err != nil {
			return benchTimes{}, err
		}
		took = append(took, time.Since(began))
	}
	return timesOf(took), nil
}
