package router

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// live is what is open, by task. Nobody waits for anything while holding its lock.
type live struct {
	mu    sync.Mutex
	lanes map[string]*lane
	known map[string]bool // ids of the items in all lanes
	ready []*lane         // those whose first item may begin, in their order
	busy  int             // lanes that are worked on
	owed  map[string]bool // ids of items of which the tracker has still to be told
	// until is when to go on after something failed, and failed how often in a row it has.
	until  time.Time
	failed int
	// wake has one value while there may be something to begin.
	wake chan struct{}
}

// A lane has the open items of one task, in their order. It is gone when it is empty.
type lane struct {
	task  string
	items []Item
	// One of these at most; a lane that is none of them waits for what its item says.
	ready, busy bool
	key         string // of the task, while it is busy
}

func (l *live) init() {
	l.lanes, l.known, l.owed, l.wake = map[string]*lane{}, map[string]bool{}, map[string]bool{}, make(chan struct{}, 1)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// room refuses more items than may be open.
func (l *live) room(more, most int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := len(l.known); open+more > most {
		return fmt.Errorf("%w: %d items are open, at most %d may be: it comes again", ErrFull, open, most)
	}
	return nil
}

// add puts items that are accepted into their lanes.
func (l *live) add(items []Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range items {
		if i.State != Accepted || i.Task == "" || l.known[i.ID] {
			continue
		}
		a := l.lanes[i.Task]
		if a == nil {
			a = &lane{task: i.Task}
			l.lanes[i.Task] = a
		}
		l.known[i.ID] = true
		a.items = append(a.items, i)
		l.prepare(a)
	}
}

// prepare makes a lane ready, the lock being held. A lane that waits looks at its task again.
func (l *live) prepare(a *lane) {
	if a.busy || a.ready || len(a.items) == 0 {
		return
	}
	a.ready = true
	l.ready = append(l.ready, a)
	poke(l.wake)
}

// next takes a lane whose turn it is, unless so many are worked on. Without any it says how
// long nothing begins; 0 is until it is woken.
func (l *live) next(most int) (*lane, Item, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy >= most || len(l.ready) == 0 {
		return nil, Item{}, 0
	}
	if pause := time.Until(l.until); pause > 0 {
		return nil, Item{}, pause
	}
	a := l.ready[0]
	l.ready = l.ready[1:]
	a.ready, a.busy = false, true
	l.busy++
	return a, a.items[0], 0
}

// The pauses after something failed that will do later, such as a tracker that is away: they
// double.
const (
	firstPause = time.Second
	mostPause  = time.Minute
)

// yield ends the work on a lane, in one of three ways: its first item is as given and may
// begin later, or waits, or has ended (nil).
func (l *live) yield(a *lane, first *Item, how outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.busy, a.key = false, ""
	l.busy--
	switch how {
	case ended:
		l.failed = 0
		l.remove(a, a.items[0].ID)
	case waits:
		l.failed = 0
		a.items[0] = *first
	case again:
		a.items[0] = *first
		l.failed++
		l.until = time.Now().Add(min(firstPause<<min(l.failed-1, 10), mostPause))
	}
	if how != waits {
		l.prepare(a)
	}
	poke(l.wake)
}

// remove takes an item out of its lane, the lock being held.
func (l *live) remove(a *lane, ids ...string) {
	a.items = slices.DeleteFunc(a.items, func(i Item) bool { return slices.Contains(ids, i.ID) })
	for _, id := range ids {
		delete(l.known, id)
	}
	if len(a.items) == 0 && !a.busy {
		delete(l.lanes, a.task)
	}
}

// behind are the items that follow the first of a lane.
func (l *live) behind(a *lane) []Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(a.items[1:])
}

// began notes that a lane's first item runs, and that others have ended with that.
func (l *live) began(a *lane, key string, covered []Item) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.key = key
	for _, i := range covered {
		l.remove(a, i.ID)
	}
}

// look has the lane of a task look at it again, or with "" all that wait.
func (l *live) look(task string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if task != "" {
		if a := l.lanes[task]; a != nil {
			l.prepare(a)
		}
		return
	}
	for _, a := range l.lanes {
		l.prepare(a)
	}
}

// runs reports whether a task is worked on, and with which item.
func (l *live) runs(task string) (Item, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lanes[task]
	if a == nil || a.key == "" {
		return Item{}, false
	}
	return a.items[0], true
}

// has reports whether there is an open item about a task.
func (l *live) has(task string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lanes[task] != nil
}

// others reports whether there is an open item about the task of one besides that.
func (l *live) others(i Item) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.lanes[i.Task]
	return a != nil && slices.ContainsFunc(a.items, func(o Item) bool { return o.ID != i.ID })
}

// idle reports whether nothing is worked on, and nothing could be.
func (l *live) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy == 0 && len(l.ready) == 0
}

// current are the keys of the tasks that are worked on, sorted.
func (l *live) current() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := []string{}
	for _, a := range l.lanes {
		if a.key != "" {
			keys = append(keys, a.key)
		}
	}
	slices.Sort(keys)
	return keys
}

// owe notes that the tracker has to be told of an item; owes are those.
func (l *live) owe(id string, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is {
		l.owed[id] = true
	} else {
		delete(l.owed, id)
	}
}

func (l *live) owes() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.owed {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
