package router

import (
	"context"
	"fmt"
)

// Retry has an item that failed or was dropped begun again, and returns it. Its task is
// taken first if it is nobody's. A router that runs elsewhere finds it within a minute.
func Retry(ctx context.Context, s Store, agent, id string) (Item, error) {
	all, err := s.Items(ctx, Query{Agent: agent, IDs: []string{id}})
	switch {
	case err != nil:
		return Item{}, err
	case len(all) == 0:
		return Item{}, fmt.Errorf("%q: %w", oneLine(id, maxEventID), ErrNotFound)
	}
	i := all[0]
	if i.State != Failed && i.State != Dropped || i.Task == "" {
		return i, fmt.Errorf("the item %s is %s: only one that failed or was dropped, and is about a task, can be tried again", i.ID, i.State)
	}
	i.Take, i.Crashes, i.Owed, i.Interrupted = true, 0, "", false
	if all, err = s.SetItems(ctx, []Item{to(i, Accepted, "it is to be tried again")}); err != nil {
		return i, err
	}
	return all[0], nil
}

// Retry is [Retry] for an item of the router's agent, at once.
func (r *Router) Retry(ctx context.Context, id string) (Item, error) {
	i, err := Retry(ctx, r.o.Store, r.o.Agent, id)
	if err == nil {
		r.say(i, "%s", string(i.State)+because(i.Why))
		r.live.add([]Item{i})
	}
	return i, err
}

// Items finds items of the router's agent.
func (r *Router) Items(ctx context.Context, q Query) ([]Item, error) {
	q.Agent = r.o.Agent
	return r.o.Store.Items(ctx, q)
}
