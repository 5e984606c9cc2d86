package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

const (
	// checkEvery is how often free tasks are looked for, and items that others retry;
	// lookEvery is how often the tasks of items that wait are looked at without an event.
	checkEvery = time.Minute
	lookEvery  = 10 * time.Minute
	pruneEvery = time.Hour
	pruneMost  = 500 // items in one change
	// listMost is how many tasks one check reads. The next one reads the others.
	listMost = 10_000
)

// A wish is that the agent's tasks are listed. lost says that events were, and waiting that
// the tasks of items that wait are looked at too.
type wish struct{ tasks, lost, waiting bool }

// wishes are what is asked of the goroutine that compares, since it last did.
type wishes struct {
	mu sync.Mutex
	w  wish
}

func (w *wishes) ask(more wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.w = wish{tasks: true, lost: w.w.lost || more.lost, waiting: w.w.waiting || more.waiting}
}

func (w *wishes) take() wish {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.w
	w.w = wish{}
	return got
}

// Connected has the inbox compared with the tracker's tasks: events are a hint, and some may
// never come.
func (r *Router) Connected(context.Context, tracker.AuthOK) {
	r.wishes.ask(wish{waiting: true})
	poke(r.check)
}

// learn changes what is known by an event.
func (r *Router) learn(ctx context.Context, f tracker.EventFrame, n news) {
	switch n.about.Event {
	case tracker.EventResync:
		r.wishes.ask(wish{lost: true, waiting: true})
		poke(r.check)
		return
	case tracker.EventTaskAssigned, tracker.EventTaskTaken, tracker.EventTaskStatus, tracker.EventTaskRejected:
	default:
		return
	}
	if n.fault != nil {
		r.o.Logger.WarnContext(ctx, "an event cannot be read", "agent", r.o.Agent, "event", f.ID, "err", n.fault)
		r.wishes.ask(wish{lost: true, waiting: true})
		poke(r.check)
		return
	}
	r.tellOfRunning(n)
	r.free.forget(n.task.ID)
	r.live.look(n.task.ID)
	for _, u := range n.unblocked {
		r.live.look(u.ID)
	}
}

// tellOfRunning says what happens to a task that is worked on. The turn goes on: only who
// works on it knows what is half done.
func (r *Router) tellOfRunning(n news) {
	i, ok := r.live.runs(n.task.ID)
	switch {
	case !ok:
	case n.about.Event == tracker.EventTaskAssigned && !n.about.Mine:
		r.say(i, "the task was given to %s while it is worked on: the turn goes on", oneLine(cmp.Or(n.task.owner(), "nobody"), tracker.MaxSlug))
	case n.about.Event == tracker.EventTaskStatus && n.task.To.Closed() && !n.about.Own:
		r.say(i, "the task is %s while it is worked on: the turn goes on", n.task.To)
	}
}

// keepUp compares the inbox with the tracker when that is asked for, and from time to time.
func (r *Router) keepUp(ctx context.Context) {
	next, failed := time.Duration(0), 0
	looked, pruned := time.Now(), time.Time{}
	for {
		timer, tick := time.NewTimer(next), false
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			tick = true
		case <-r.check:
			timer.Stop()
		}
		if time.Since(looked) >= lookEvery {
			looked = time.Now()
			r.live.look("")
		}
		next = checkEvery
		if err := r.checkAll(ctx, tick, time.Since(pruned) >= pruneEvery); err != nil {
			next = min(firstPause<<min(failed, 10), mostPause)
			failed++
			r.o.Logger.WarnContext(ctx, "the inbox is compared with the tracker later", "agent", r.o.Agent, "err", err)
			continue
		}
		if time.Since(pruned) >= pruneEvery {
			pruned = time.Now()
		}
		failed = 0
	}
}

// checkAll does what there is to do; what fails does not keep the rest from being done.
func (r *Router) checkAll(ctx context.Context, reload, prune bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.ErrorContext(ctx, "the check of an inbox panicked", "agent", r.o.Agent, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	w := r.wishes.take()
	err = r.reconcile(ctx, w)
	if err != nil && w.tasks {
		r.wishes.ask(w)
	}
	err = errors.Join(err, r.payAll(ctx), r.takeFree(ctx))
	if reload {
		err = errors.Join(err, r.reload(ctx))
	}
	if prune {
		err = errors.Join(err, r.prune(ctx))
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// reload finds items that others have put into the store, such as one that is retried.
func (r *Router) reload(ctx context.Context) error {
	open, err := r.o.Store.Items(ctx, Query{Agent: r.o.Agent, States: []State{Accepted}})
	r.live.add(open)
	return err
}

func (r *Router) prune(ctx context.Context) error {
	for {
		n, err := r.o.Store.PruneItems(ctx, r.o.Agent, time.Now().Add(-r.o.KeepFor), r.o.Keep, pruneMost)
		if err != nil || n < pruneMost {
			return err
		}
	}
}

// reconcile makes items of those open tasks of the agent that no item is about.
func (r *Router) reconcile(ctx context.Context, w wish) error {
	if !w.tasks || r.o.TaskListen == None {
		return nil
	}
	q := tracker.TaskQuery{
		Assignee: "me", Statuses: []string{string(tracker.Todo), string(tracker.InProgress)}, Paging: tracker.Paging{Limit: tracker.MaxPage},
	}
	var all []tracker.TaskOut
	for len(all) < listMost {
		page, err := r.o.Tracker.ListTasks(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if q.Cursor = page.NextCursor; q.Cursor == "" || len(page.Items) == 0 {
			break
		}
	}
	for _, t := range slices.Backward(all) { // the oldest first, as their events come
		if err := r.found(ctx, t, w); err != nil {
			return err
		}
	}
	if w.waiting {
		r.live.look("")
	}
	return nil
}

// found makes an item of a task if none is about it. If events were lost, a task that is to
// be done and has changed since its last turn may have been assigned anew.
func (r *Router) found(ctx context.Context, t tracker.TaskOut, w wish) error {
	if t.Blocked || holderOf(t) != r.o.Agent || !isRef(t.ID) || r.live.has(t.ID) {
		return nil
	}
	before, err := r.o.Store.Items(ctx, Query{
		Agent: r.o.Agent, Task: t.ID, States: []State{Accepted, Running, Done, Failed, Dropped}, Latest: true, Limit: 1,
	})
	if err != nil {
		return err
	}
	if len(before) > 0 && (!w.lost || before[0].Open() || t.Status != tracker.Todo || t.Version <= before[0].Version) {
		return nil
	}
	return r.keep(ctx, []Item{r.itemOf(KindFound, t)})
}

// itemOf is an item about a task that no event was about.
func (r *Router) itemOf(kind string, t tracker.TaskOut) Item {
	return r.item(Item{
		Event: kind + "/" + t.ID + "/" + strconv.FormatInt(t.Version, 10), Kind: kind, State: Accepted, Take: kind == KindFree,
		Task: t.ID, Key: oneLine(t.Key, tracker.MaxRef), Title: oneLine(t.Title, tracker.MaxTitle), Version: t.Version,
	})
}

// payAll tells the tracker of turns that failed.
func (r *Router) payAll(ctx context.Context) (err error) {
	for _, id := range r.live.owes() {
		all, err2 := r.o.Store.Items(ctx, Query{Agent: r.o.Agent, IDs: []string{id}})
		if err2 == nil && len(all) > 0 && all[0].Owed != "" {
			err2 = r.pay(ctx, all[0])
		}
		if err2 != nil {
			err = errors.Join(err, err2)
			continue
		}
		r.live.owe(id, false)
	}
	return err
}

// pay gives the task of an item that failed back, so that it is not held by nobody's work,
// and leaves a comment for people. Both may be done twice. A task that another item is about
// is the agent's for that one.
func (r *Router) pay(ctx context.Context, i Item) error {
	t, err := r.o.Tracker.GetTask(ctx, i.Task)
	if _, gone := refused(err); gone {
		return r.paid(ctx, i)
	}
	if err != nil {
		return err
	}
	if holderOf(t) == r.o.Agent && (t.Status == tracker.Todo || t.Status == tracker.InProgress) && !r.live.others(i) {
		if t, err = r.release(ctx, i, t); err != nil {
			return err
		}
		i.Version = max(i.Version, t.Version)
	}
	_, err = r.o.Tracker.SendMessage(ctx, tracker.SendMessage{
		TaskID: t.ID, Content: r.text.comment(i, holderOf(t) == ""), Mentions: []string{}, IdempotencyKey: i.RunID + "-failed",
	})
	if why, no := refused(err); no {
		r.say(i, "the task has no comment about it: %s", why)
	} else if err != nil {
		return err
	}
	return r.paid(ctx, i)
}

// release gives a task back, unless the tracker says that it cannot be.
func (r *Router) release(ctx context.Context, i Item, t tracker.TaskOut) (tracker.TaskOut, error) {
	out, err := r.o.Tracker.ReleaseTask(ctx, t.ID, tracker.ReleaseTask{Reason: i.Owed})
	if why, no := refused(err); no {
		r.say(i, "the task was not given back: %s", why)
		return t, nil
	}
	return out, err
}

func (r *Router) paid(ctx context.Context, i Item) error {
	i.Owed = ""
	_, err := r.setAll(ctx, []Item{to(i, i.State, i.Why)})
	if errors.Is(err, ErrChanged) || errors.Is(err, ErrNotFound) {
		return nil // it is somebody else's to know
	}
	return err
}
