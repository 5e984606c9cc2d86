package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"
)

// How often things are done. A round is one run in every engine, one after the
// other.
type effort struct {
	compute, fresh int // rounds that count
	warmUp         int // rounds before them that do not
	clock          *clock
}

var (
	thorough = effort{compute: 40, fresh: 500, warmUp: 5}
	quick    = effort{compute: 2, fresh: 3, warmUp: 1}
)

// samples has the time of each round, for every engine that took part.
type samples map[string][]time.Duration

// A row is one workload of one guest.
type row struct {
	guest, workload string
	times           samples
}

// freshCall is the workload of a new state and the trivial call in it.
const freshCall = "fresh call"

// A lineUp is a guest in the engines that run it.
type lineUp struct {
	guest    *guest
	engines  []named
	programs []program
}

// load loads a guest into every engine. One that the guest is not for, or that
// this machine lacks, is left out and noted, and of those it lacks nothing is
// left out if require says so.
func load(ctx context.Context, g *guest, all []named, note func(string)) (l lineUp, err error) {
	l.guest = g
	for _, e := range all {
		p, err := e.Load(ctx, g)
		switch {
		case errors.As(err, new(notForError)) && e.name != ours && e.name != baseline:
			if err.Error() != "" {
				note(fmt.Sprintf("%s has no figures for the %s guest: %s", e.name, g.name, err))
			}
			continue
		case errors.Is(err, errMissing) && os.Getenv("HUTCH_REQUIRE") != "all":
			note(fmt.Sprintf("%s is left out: %s", e.name, err))
			continue
		case err != nil:
			return l, errors.Join(fmt.Errorf("%s: %s: %w", g.name, e.name, err), l.close(ctx))
		}
		l.engines, l.programs = append(l.engines, e), append(l.programs, p)
	}
	return l, nil
}

func (l lineUp) close(ctx context.Context) error {
	var errs []error
	for _, p := range l.programs {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}

// measure returns the rows of one guest.
func (l lineUp) measure(ctx context.Context, e effort) ([]row, error) {
	var rows []row
	computed, err := l.compute(ctx, e)
	if err != nil {
		return nil, err
	}
	rows = append(rows, computed...)
	fresh, err := l.fresh(ctx, e)
	return append(rows, fresh), err
}

// compute runs the workloads, each engine in one warm instance.
func (l lineUp) compute(ctx context.Context, e effort) (rows []row, err error) {
	type living struct {
		in     instance
		handle uint64
	}
	var alive []living
	defer func() {
		for _, a := range alive {
			err = errors.Join(err, a.in.Close(ctx))
		}
	}()
	for i, p := range l.programs {
		in, handle, err := p.Fresh(ctx)
		if err != nil {
			return nil, l.failed(i, "instantiate", err)
		}
		alive = append(alive, living{in, handle})
	}
	for _, workload := range l.guest.workloads {
		turns := make([]turn, len(alive))
		for i, a := range alive {
			turns[i] = turn{l.engines[i].name, func() error {
				return l.failed(i, workload, l.guest.run(ctx, a.in, a.handle, workload))
			}, 0}
		}
		times, err := inTurn(ctx, e, e.compute, turns)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{l.guest.name, workload, times})
	}
	return rows, nil
}

// fresh makes a state, makes the trivial call in it, and gives it up.
func (l lineUp) fresh(ctx context.Context, e effort) (row, error) {
	var turns []turn
	for i, p := range l.programs {
		if l.engines[i].native {
			continue
		}
		turns = append(turns, turn{l.engines[i].name, func() error {
			in, handle, err := p.Fresh(ctx)
			if err != nil {
				return l.failed(i, freshCall, err)
			}
			err = l.guest.run(ctx, in, handle, echo)
			return l.failed(i, freshCall, errors.Join(err, in.Close(ctx)))
		}, freshBefore})
	}
	times, err := inTurn(ctx, e, e.fresh, turns)
	return row{l.guest.name, freshCall, times}, err
}

// failed says where err happened, if there is one.
func (l lineUp) failed(i int, did string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s guest: %s: %s: %w", l.guest.name, l.engines[i].name, did, err)
}

// A turn is what one engine does in a round.
type turn struct {
	engine string
	run    func() error
	before int // how often it is done before it is timed
}

// freshBefore is how many fresh calls are made before one that is timed. The engines
// before have left nothing of this one in the caches of the processor, and what takes
// a few microseconds takes ten times as long to fill them again.
const freshBefore = 2

// inTurn times every engine in every round. The order is another one each time, the
// same in every run, so that nobody always comes after the same neighbour. Garbage of
// one may be collected in the next one's turn; medians over many rounds bear that.
func inTurn(ctx context.Context, e effort, rounds int, turns []turn) (samples, error) {
	runtime.GC()
	times, order := samples{}, rand.New(rand.NewPCG(1, 2))
	for round := range rounds + e.warmUp {
		for _, i := range order.Perm(len(turns)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took, err := turns[i].timed(e.clock)
			if err != nil {
				return nil, err
			}
			if round >= e.warmUp {
				times[turns[i].engine] = append(times[turns[i].engine], took)
			}
		}
	}
	return times, nil
}

// timed does what the turn is for, and says how long the last time took.
func (t turn) timed(c *clock) (time.Duration, error) {
	for range t.before {
		if err := t.run(); err != nil {
			return 0, err
		}
	}
	began := c.now()
	err := t.run()
	return c.now() - began, err
}

// A spread is where values lie.
type spread struct {
	P10 float64 `json:"p10"`
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)] }
	return spread{at(0.10), at(0.50), at(0.90), at(0.99)}
}

// microseconds is the spread of an engine's times.
func (s samples) microseconds(engine string) spread {
	values := make([]float64, len(s[engine]))
	for i, d := range s[engine] {
		values[i] = float64(d.Nanoseconds()) / 1e3
	}
	return spreadOf(values)
}

// ratio is the spread of what an engine took to what another took in the same
// round. It is false unless both took part.
func (s samples) ratio(engine, to string) (spread, bool) {
	a, b := s[engine], s[to]
	if len(a) == 0 || len(a) != len(b) {
		return spread{}, false
	}
	values := make([]float64, len(a))
	for i := range a {
		values[i] = float64(max(a[i], 1)) / float64(max(b[i], 1))
	}
	return spreadOf(values), true
}
