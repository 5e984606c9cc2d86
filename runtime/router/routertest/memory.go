// Package routertest has what every store of an inbox must do, and one in memory.
package routertest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hutch-run/hutch/runtime/router"
)

// Memory is a store in memory. Its zero value is empty.
type Memory struct {
	// Fail, if not nil, is asked before each change; what it returns fails it.
	Fail func() error

	mu    sync.Mutex
	items map[string]router.Item
	tasks map[string][]string // ids of the items about a task, and maybe of some that were
	last  int64
}

var _ router.Store = (*Memory)(nil)

// change runs fn on all items, which replace those there are if it returns nil.
func (m *Memory) change(ctx context.Context, fn func(map[string]router.Item) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.Fail != nil {
		if err := m.Fail(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items, m.tasks = map[string]router.Item{}, map[string][]string{}
	}
	return fn(m.items)
}

// AddItems implements [router.Store], as the methods below do.
func (m *Memory) AddItems(ctx context.Context, items []router.Item) (added []router.Item, err error) {
	err = m.change(ctx, func(all map[string]router.Item) error {
		for _, i := range items {
			if _, ok := all[i.ID]; ok {
				continue
			}
			m.last++
			i.Number, i.Revision = m.last, 1
			all[i.ID] = clone(i)
			m.tasks[i.Task] = append(m.tasks[i.Task], i.ID)
			added = append(added, clone(i))
		}
		return nil
	})
	return added, err
}

// SetItems replaces items.
func (m *Memory) SetItems(ctx context.Context, items []router.Item) (set []router.Item, err error) {
	err = m.change(ctx, func(all map[string]router.Item) error {
		for _, i := range items {
			switch was, ok := all[i.ID]; {
			case !ok:
				return router.ErrNotFound
			case was.Revision != i.Revision:
				return router.ErrChanged
			}
		}
		for _, i := range items {
			was := all[i.ID]
			i.Agent, i.Event, i.Number, i.Created = was.Agent, was.Event, was.Number, was.Created
			i.Revision++
			all[i.ID] = clone(i)
			if i.Task != was.Task {
				m.tasks[i.Task] = append(m.tasks[i.Task], i.ID)
			}
			set = append(set, clone(i))
		}
		return nil
	})
	return set, err
}

// Items finds items.
func (m *Memory) Items(ctx context.Context, q router.Query) (found []router.Item, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range m.candidates(q) {
		if i, ok := m.items[id]; ok && fits(i, q) {
			found = append(found, clone(i))
		}
	}
	slices.SortFunc(found, func(a, b router.Item) int {
		if q.Latest {
			a, b = b, a
		}
		return cmp.Compare(a.Number, b.Number)
	})
	if q.Limit > 0 && len(found) > q.Limit {
		found = found[:q.Limit]
	}
	return found, nil
}

// candidates are the ids of all that a query may find, the lock being held.
func (m *Memory) candidates(q router.Query) []string {
	switch {
	case q.IDs != nil:
		return slices.Compact(slices.Sorted(slices.Values(q.IDs)))
	case q.Task != "":
		return slices.Compact(slices.Sorted(slices.Values(m.tasks[q.Task])))
	}
	return slices.Collect(maps.Keys(m.items))
}

func fits(i router.Item, q router.Query) bool {
	return i.Agent == q.Agent && i.Number > q.After && (q.IDs == nil || slices.Contains(q.IDs, i.ID)) &&
		(q.States == nil || slices.Contains(q.States, i.State)) && (!q.Open || i.Open()) && (q.Task == "" || i.Task == q.Task)
}

// PruneItems removes items.
func (m *Memory) PruneItems(ctx context.Context, agent string, before time.Time, keep, most int) (n int, err error) {
	all, err := m.Items(ctx, router.Query{Agent: agent, Latest: true})
	if err != nil {
		return 0, err
	}
	all = slices.DeleteFunc(all, router.Item.Open)
	var old, rest []router.Item
	for _, i := range all {
		if i.Changed.Before(before) {
			old = append(old, i)
		} else {
			rest = append(rest, i)
		}
	}
	slices.SortStableFunc(old, func(a, b router.Item) int { return a.Changed.Compare(b.Changed) })
	gone := append(old, rest[min(keep, len(rest)):]...)
	gone = gone[:min(most, len(gone))]
	err = m.change(ctx, func(items map[string]router.Item) error {
		for _, i := range gone {
			delete(items, i.ID)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(gone), nil
}

func clone(i router.Item) router.Item {
	i.Data = slices.Clone(i.Data)
	return i
}
