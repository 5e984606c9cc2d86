package session

import (
	"context"
	"errors"
	"slices"

	"github.com/hutch-run/hutch/protocol/event"
)

// debts are runs of which the store may hold something, and not their end: the next run
// that begins in the thread keeps that first.
type debts struct {
	owed  map[Ref][]debt
	owing int // debts in all
}

// A debt is a run of which the store does not know that it has ended.
type debt struct {
	run string
	// first is the number of its first event, 0 if it had not begun; end is the event that
	// whoever listened then was told instead of the last one.
	first int64
	end   event.Event
}

// mostDebts is how many debts are remembered. What is over, while a store fails for long,
// is ended when the store is opened the next time, as what a crash leaves behind is.
const mostDebts = 1000

func (k *Keeper) owe(ref Ref, d debt) {
	k.cmu.Lock()
	defer k.cmu.Unlock()
	if known := slices.ContainsFunc(k.owed[ref], func(o debt) bool { return o.run == d.run }); known || k.owing >= mostDebts {
		return
	}
	k.owed[ref] = append(k.owed[ref], d)
	k.owing++
}

// oweUnlessRefused owes the end of a run that could not begin or be recorded, unless the
// store refused to keep anything of it. Of what failed otherwise nobody knows whether it
// was kept.
func (k *Keeper) oweUnlessRefused(ref Ref, run string, err error) {
	if err == nil || errors.Is(err, ErrConflict) || errors.Is(err, ErrDuplicateRun) || errors.Is(err, ErrInvalid) {
		return
	}
	k.owe(ref, debt{run: run})
}

// owes returns the debts of a thread. They are the caller's.
func (k *Keeper) owes(ref Ref) []debt {
	k.cmu.Lock()
	defer k.cmu.Unlock()
	return slices.Clone(k.owed[ref])
}

// untold are the ends of runs that the thread owes, of that run or of all: those that
// began behind a number.
func (k *Keeper) untold(ref Ref, run string, behind int64) (ends []Item) {
	for _, d := range k.owes(ref) {
		if d.end != nil && d.first > behind && (run == "" || run == d.run) {
			ends = append(ends, Item{RunID: d.run, Event: d.end})
		}
	}
	return ends
}

// settle forgets debts that were paid, and those alone: others may have come since.
func (k *Keeper) settle(ref Ref, paid []debt) {
	k.cmu.Lock()
	defer k.cmu.Unlock()
	left := slices.DeleteFunc(k.owed[ref], func(d debt) bool {
		return slices.ContainsFunc(paid, func(p debt) bool { return p.run == d.run })
	})
	k.owing -= len(k.owed[ref]) - len(left)
	if k.owed[ref] = left; len(left) == 0 {
		delete(k.owed, ref)
	}
}

// paying is what ends the runs that the thread owes, the jobs of that, and which debts that
// pays.
func (r *Run) paying(ctx context.Context) (c Change, jobs []event.Job, paid []debt, err error) {
	head := r.th.head()
	paid = r.k.owes(r.th.ref)
	for _, d := range paid {
		found, err := r.k.store.ThreadRuns(ctx, r.th.ref, d.run, 1)
		if err != nil {
			return c, nil, nil, err
		}
		if len(found) == 0 || found[0].Status.Ended() {
			continue
		}
		if d.run == r.in.RunID { // it was recorded after all, and is about to begin
			r.th.mu.Lock()
			r.recorded = true
			r.th.mu.Unlock()
			continue
		}
		one, err := r.k.failing(Unfinished{r.th.ref, head, found[0]}, CodeStore, lostEnd)
		if err != nil {
			return c, nil, nil, err
		}
		head += int64(len(one.Events))
		c.Runs, c.Events = append(c.Runs, one.Runs...), append(c.Events, one.Events...)
		jobs = append(jobs, r.k.o.Jobs(r.th.ref, one.Runs[0])...)
	}
	return c, jobs, paid, nil
}
