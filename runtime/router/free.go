package router

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// A pool is what there is to take: the free tasks that suit the agent, the best first, as
// they were listed a moment ago, without those that events tell are free no more.
type pool struct {
	mu     sync.Mutex
	tasks  []tracker.TaskOut
	listed time.Time
}

func (p *pool) set(tasks []tracker.TaskOut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks, p.listed = tasks, time.Now()
}

// stale reports whether the tasks are to be listed again.
func (p *pool) stale() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.listed) >= checkEvery
}

// forget takes a task away, by its id or key.
func (p *pool) forget(ref string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = slices.DeleteFunc(p.tasks, func(t tracker.TaskOut) bool { return t.ID == ref || t.Key == ref })
}

// next takes the best task out.
func (p *pool) next() (t tracker.TaskOut, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tasks) == 0 {
		return t, false
	}
	t, p.tasks = p.tasks[0], p.tasks[1:]
	return t, true
}

// takeFree makes an item of a free task if the agent takes such and has nothing to do.
func (r *Router) takeFree(ctx context.Context) error {
	if r.o.TaskListen != All || !r.live.idle() {
		return nil
	}
	if r.free.stale() {
		if err := r.listFree(ctx); err != nil {
			return err
		}
	}
	for {
		t, ok := r.free.next()
		if !ok {
			return nil
		}
		had, err := r.o.Store.Items(ctx, Query{Agent: r.o.Agent, Task: t.ID, States: []State{Accepted, Running, Done, Failed, Dropped}, Limit: 1})
		if err != nil {
			return err
		}
		if len(had) == 0 {
			return r.keep(ctx, []Item{r.itemOf(KindFree, t)})
		}
	}
}

// listFree fills the pool.
func (r *Router) listFree(ctx context.Context) error {
	page, err := r.o.Tracker.ListTasks(ctx, tracker.TaskQuery{Assignee: "none", Ready: true, Paging: tracker.Paging{Limit: tracker.MaxPage}})
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(page.Items, func(t tracker.TaskOut) bool { return !r.suits(t) })
	slices.SortStableFunc(all, func(a, b tracker.TaskOut) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	r.free.set(all)
	return nil
}

// suits reports whether a free task is one for the agent: not one that it rejected.
func (r *Router) suits(t tracker.TaskOut) bool {
	if !isRef(t.ID) || holderOf(t) != "" || t.Blocked || t.Status != tracker.Todo || slices.Contains(t.RejectedBy, r.o.Agent) {
		return false
	}
	return len(r.o.Capabilities) == 0 || slices.ContainsFunc(append(slices.Clone(t.Labels), t.Type), func(is string) bool {
		return slices.Contains(r.o.Capabilities, is)
	})
}

// rank is how urgent a task is.
func rank(t tracker.TaskOut) int {
	return slices.Index([]string{"low", "medium", "high", "urgent"}, t.Priority)
}
