package router

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// An outcome is what became of the first item of a lane.
type outcome int

const (
	ended outcome = iota
	waits         // for something that the tracker tells of
	again         // after a pause
)

// maxWhy is how long a reason may be, in bytes.
const maxWhy = 500

// settleMost is how long the last words about an item may take when the program ends.
const settleMost = 5 * time.Second

// Run works the inbox off until ctx ends, which it returns the error of. Turns that run then
// are ended, and run again the next time. It is called once.
func (r *Router) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.begin(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { r.keepUp(ctx) })
	for {
		a, i, pause := r.live.next(r.o.Parallel)
		if a != nil {
			all.Go(func() { r.work(ctx, a, i) })
			continue
		}
		if !r.rest(ctx, pause) {
			return ctx.Err()
		}
	}
}

// rest waits until something may begin: for so long, or if that is 0 until it is woken. It
// reports whether ctx goes on.
func (r *Router) rest(ctx context.Context, pause time.Duration) bool {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-r.live.wake:
	case <-over:
	}
	return true
}

// begin takes up what is open in the store, however long that takes. What was running then
// was interrupted.
func (r *Router) begin(ctx context.Context) error {
	for tries := 0; ; tries++ {
		err := r.takeUp(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		r.o.Logger.WarnContext(ctx, "the inbox cannot be read", "agent", r.o.Agent, "err", err)
		if !sleep(ctx, min(firstPause<<min(tries, 10), mostPause)) {
			return ctx.Err()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (r *Router) takeUp(ctx context.Context) error {
	open, err := r.o.Store.Items(ctx, Query{Agent: r.o.Agent, Open: true})
	if err != nil {
		return err
	}
	for at, i := range open {
		if i.State == Running {
			if open[at], err = r.interrupted(ctx, i); err != nil {
				return err
			}
		}
		if open[at].Owed != "" {
			r.live.owe(i.ID, true)
		}
	}
	r.live.add(open)
	return nil
}

// interrupted has an item that was running when the program died run once more, or fail.
func (r *Router) interrupted(ctx context.Context, i Item) (Item, error) {
	i.Crashes++
	i.Interrupted = true
	if i.Crashes > 1 {
		return r.fail(ctx, i, r.text.twice)
	}
	return r.set(ctx, i, Accepted, "it was interrupted, and is begun again")
}

// set changes an item in the store, and tells who watches.
func (r *Router) set(ctx context.Context, i Item, s State, why string) (Item, error) {
	all, err := r.setAll(ctx, []Item{to(i, s, why)})
	if err != nil {
		return i, err
	}
	return all[0], nil
}

func to(i Item, s State, why string) Item {
	i.State, i.Why, i.Changed = s, oneLine(why, maxWhy), moment(time.Now())
	return i
}

func (r *Router) setAll(ctx context.Context, items []Item) ([]Item, error) {
	all, err := r.o.Store.SetItems(ctx, items)
	for _, i := range all {
		r.say(i, "%s", string(i.State)+because(i.Why))
	}
	return all, err
}

// fail ends an item, and notes that the task has to be given back.
func (r *Router) fail(ctx context.Context, i Item, why string) (Item, error) {
	i.Owed = oneLine(why, maxWhy)
	i, err := r.set(ctx, i, Failed, why)
	if err == nil {
		r.live.owe(i.ID, true)
		poke(r.check)
	}
	return i, err
}

// work does what is to be done for the first item of a lane.
func (r *Router) work(ctx context.Context, a *lane, i Item) {
	first, how, err := i, again, error(nil)
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.ErrorContext(ctx, "work on an item panicked", "agent", r.o.Agent, "item", i.ID, "panic", p, "stack", string(debug.Stack()))
		}
		r.live.yield(a, &first, how)
		if !r.live.idle() {
			return
		}
		if how == ended {
			r.wishes.ask(wish{}) // a turn may have given the agent more to do, which nobody tells it
		}
		if how == ended || r.o.TaskListen == All {
			poke(r.check)
		}
	}()
	first, how, err = r.attempt(ctx, a, i)
	if errors.Is(err, ErrChanged) || errors.Is(err, ErrNotFound) {
		first, how, err = r.reread(ctx, i)
	}
	if err != nil && ctx.Err() == nil {
		r.o.Logger.WarnContext(ctx, "an item is tried again later", "agent", r.o.Agent, "item", i.ID, "err", err)
		r.say(first, "tried again later: %s", oneLine(err.Error(), maxWhy))
	}
}

// reread is for an item that somebody else has changed.
func (r *Router) reread(ctx context.Context, i Item) (Item, outcome, error) {
	all, err := r.o.Store.Items(ctx, Query{Agent: r.o.Agent, IDs: []string{i.ID}})
	switch {
	case err != nil:
		return i, again, err
	case len(all) == 0 || all[0].State != Accepted:
		return i, ended, nil
	}
	return all[0], again, nil
}

// attempt looks at the task of an item, and has a turn if it is time.
func (r *Router) attempt(ctx context.Context, a *lane, i Item) (Item, outcome, error) {
	now := moment(time.Now())
	t, v, err := r.look(ctx, i)
	if err != nil {
		return i, again, err
	}
	switch v.what {
	case drop, over:
		if i, err = r.set(ctx, i, v.state(), v.why); err != nil {
			return i, again, err
		}
		return i, ended, nil
	case wait:
		if i.Why != v.why {
			if i, err = r.set(ctx, i, Accepted, v.why); err != nil {
				return i, again, err
			}
		}
		return i, waits, nil
	}
	i.Began = now
	if i, err = r.start(ctx, a, i, t); err != nil {
		return i, again, err
	}
	return r.conclude(ctx, i, r.turn(ctx, i, t))
}

// start makes it durable that an item runs. What else waits for the task is done with that.
func (r *Router) start(ctx context.Context, a *lane, i Item, t tracker.TaskOut) (Item, error) {
	was := i
	covered := r.live.behind(a)
	i.Attempt++
	i.RunID = runID(i.ID, i.Attempt)
	i.Task, i.Version, i.Key, i.Title, i.Take = t.ID, t.Version, t.Key, oneLine(t.Title, tracker.MaxTitle), false
	items := []Item{to(i, Running, "")}
	for _, c := range covered {
		items = append(items, to(c, Dropped, "the turn for another item of the task serves it: "+i.ID))
	}
	all, err := r.setAll(ctx, items)
	if err != nil {
		return was, err
	}
	r.live.began(a, cmp.Or(t.Key, t.ID), covered)
	return all[0], nil
}

// turn has the turn for an item.
func (r *Router) turn(ctx context.Context, i Item, t tracker.TaskOut) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.ErrorContext(ctx, "a turn panicked", "agent", r.o.Agent, "item", i.ID, "panic", p, "stack", string(debug.Stack()))
			err = errors.New(r.text.broke)
		}
	}()
	return r.o.Turns.Run(ctx, Turn{
		Thread: ThreadOf(t.ID), Title: t.Key + " " + oneLine(t.Title, tracker.MaxTitle), RunID: i.RunID,
		Text: r.prompt(i, t), Item: i, Task: t,
	})
}

// conclude notes how a turn ended.
func (r *Router) conclude(ctx context.Context, i Item, failure error) (Item, outcome, error) {
	switch {
	case failure == nil:
		i = r.seen(ctx, i)
		i.Interrupted = false
		return r.settle(ctx, to(i, Done, ""), ended, nil)
	case errors.Is(failure, ErrNotBegun):
		i.Attempt--
		return r.settle(ctx, to(i, Accepted, failure.Error()), again, failure)
	case ctx.Err() != nil:
		i.Interrupted = true
		return r.settle(ctx, to(i, Accepted, "it was interrupted, and is begun again"), again, nil)
	}
	i = to(i, Failed, failure.Error())
	i.Owed = i.Why
	i, how, err := r.settle(ctx, i, ended, nil)
	if err == nil {
		r.live.owe(i.ID, true)
		poke(r.check)
	}
	return i, how, err
}

// settle keeps what became of an item that ran, until the store takes it or ctx ends. If it
// never does, the item is found running the next time.
func (r *Router) settle(ctx context.Context, i Item, how outcome, why error) (Item, outcome, error) {
	for tries := 0; ; tries++ {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleMost)
		all, err := r.setAll(short, []Item{i})
		cancel()
		switch {
		case err == nil:
			return all[0], how, why
		case errors.Is(err, ErrChanged), errors.Is(err, ErrNotFound):
			return i, ended, err
		}
		r.o.Logger.WarnContext(ctx, "what became of an item cannot be kept", "agent", r.o.Agent, "item", i.ID, "err", err)
		if !sleep(ctx, min(firstPause<<min(tries, 10), mostPause)) {
			return i, again, err
		}
	}
}

// seen is an item with its task as the turn left it.
func (r *Router) seen(ctx context.Context, i Item) Item {
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleMost)
	defer cancel()
	t, err := r.o.Tracker.GetTask(short, i.Task)
	if err != nil {
		return i
	}
	if holder := holderOf(t); holder != "" && holder != r.o.Agent {
		r.say(i, "the task was given to %s while it was worked on", holder)
	}
	i.Version = max(i.Version, t.Version)
	return i
}
