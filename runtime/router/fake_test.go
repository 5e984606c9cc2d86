package router_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/router/routertest"
)

const me = "coder"

// desk is a router with a tracker and turns that a test has in its hands. It is used in a
// bubble.
type desk struct {
	*testing.T
	o     router.Options
	r     *router.Router
	store *routertest.Memory
	stop  func() error

	mu       sync.Mutex
	tasks    map[string]*tracker.TaskOut
	down     bool                      // the tracker does not answer
	refuse   map[string]*tracker.Error // by method
	released []string                  // "id: reason"
	comments map[string]string         // by idempotency key
	taken    []string
	listed   map[string]int // by assignee
	// turn, if not nil, is what a turn does.
	turn         func(context.Context, router.Turn) error
	turns        []router.Turn
	atOnce, most int
	trail        []string
	broken       error // the store's
}

func newDesk(t *testing.T, change func(*router.Options)) *desk {
	t.Helper()
	d := &desk{T: t, listed: map[string]int{}, store: &routertest.Memory{}, tasks: map[string]*tracker.TaskOut{}, comments: map[string]string{}, refuse: map[string]*tracker.Error{}}
	d.store.Fail = func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.broken
	}
	d.o = router.Options{Agent: me, Store: d.store, Turns: turns{d}, Tracker: d, Trail: d.note}
	if change != nil {
		change(&d.o)
	}
	d.start()
	return d
}

// start runs a router, as the program does when it begins.
func (d *desk) start() {
	d.Helper()
	r, err := router.New(d.o)
	if err != nil {
		d.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	d.r = r
	stopped := false
	d.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	d.Cleanup(func() { _ = d.stop() })
	synctest.Wait()
}

// task makes a task of the agent.
func (d *desk) task(id string, change func(*tracker.TaskOut)) tracker.TaskOut {
	slug := me
	t := tracker.TaskOut{
		ID: id, Key: strings.ToUpper(id), Title: "title of " + id, Status: tracker.Todo, Type: "task", Priority: "medium", AssigneeSlug: &slug, Version: 1,
	}
	if change != nil {
		change(&t)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks[id] = &t
	return t
}

// edit changes a task, as others do.
func (d *desk) edit(id string, change func(*tracker.TaskOut)) tracker.TaskOut {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tasks[id]
	change(t)
	t.Version++
	return *t
}

func frame(id, name string, data any) tracker.EventFrame {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return tracker.EventFrame{Type: tracker.FrameEvent, ID: id, Event: name, Data: raw, TS: time.Now()}
}

func assigned(id string, t tracker.TaskOut) tracker.EventFrame {
	return frame(id, tracker.EventTaskAssigned, tracker.TaskAssigned{Task: t, Actor: tracker.MemberRef{Slug: "ann"}})
}

// change changes what the desk does from now on.
func (d *desk) change(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn()
}

// breaks has the store fail from now on, or not any more.
func (d *desk) breaks(err error) { d.change(func() { d.broken = err }) }

// wait lets time go by, and what happens then come to an end.
func (d *desk) wait(t time.Duration) {
	time.Sleep(t)
	synctest.Wait()
}

// accept has an event accepted, and waits until nothing more comes of it.
func (d *desk) accept(f tracker.EventFrame) {
	d.Helper()
	if err := d.r.Accept(d.Context(), f); err != nil {
		d.Fatal(err)
	}
	synctest.Wait()
}

// items are the states and reasons of all items, by number.
func (d *desk) items() (all []string) {
	d.Helper()
	items, err := d.store.Items(context.Background(), router.Query{Agent: me})
	if err != nil {
		d.Fatal(err)
	}
	for _, i := range items {
		text := fmt.Sprintf("%s %s %s", i.Kind, i.Task, i.State)
		if i.Why != "" {
			text += ": " + i.Why
		}
		all = append(all, text)
	}
	return all
}

func (d *desk) want(what string, got []string, want ...string) {
	d.Helper()
	if !slices.Equal(got, want) {
		d.Errorf("%s: got\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// ran are the runs there were, by their tasks.
func (d *desk) ran() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.turns {
		all = append(all, t.Task.ID)
	}
	return all
}

func (d *desk) note(n router.Note) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trail = append(d.trail, n.Item.Key+" "+n.Text)
}

func (d *desk) said(part string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.trail, func(s string) bool { return strings.Contains(s, part) })
}

type turns struct{ d *desk }

func (s turns) Run(ctx context.Context, t router.Turn) error {
	d := s.d
	d.mu.Lock()
	d.turns = append(d.turns, t)
	d.atOnce++
	d.most = max(d.most, d.atOnce)
	do := d.turn
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.atOnce--
		d.mu.Unlock()
	}()
	if do == nil {
		return nil
	}
	return do(ctx, t)
}

var errDown = errors.New("the tracker is away")

// asked is the error for a call, the lock being held.
func (d *desk) asked(method, id string) (*tracker.TaskOut, error) {
	if d.down {
		return nil, errDown
	}
	if e := d.refuse[method]; e != nil {
		return nil, e
	}
	t := d.tasks[id]
	if t == nil && id != "" {
		return nil, tracker.Errorf(tracker.CodeNotFound, "no task %s", id)
	}
	return t, nil
}

func (d *desk) GetTask(_ context.Context, id string) (tracker.TaskOut, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.asked("get", id)
	if err != nil {
		return tracker.TaskOut{}, err
	}
	return *t, nil
}

func (d *desk) ListTasks(_ context.Context, q tracker.TaskQuery) (page tracker.Page[tracker.TaskOut], err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.asked("list", ""); err != nil {
		return page, err
	}
	d.listed[q.Assignee]++
	var ids []string
	for id := range d.tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range slices.Backward(ids) { // as a tracker does, the latest first
		t := *d.tasks[id]
		mine := t.AssigneeSlug != nil && *t.AssigneeSlug == me
		if q.Assignee == "me" && mine && slices.Contains(q.Statuses, string(t.Status)) || q.Assignee == "none" && t.AssigneeSlug == nil {
			if q.Cursor != "" && id >= q.Cursor {
				continue
			}
			if len(page.Items) == q.Limit {
				page.NextCursor = page.Items[len(page.Items)-1].ID
				break
			}
			page.Items = append(page.Items, t)
		}
	}
	return page, nil
}

func (d *desk) TakeTask(_ context.Context, id string, _ tracker.TakeTask) (tracker.TaskOut, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.asked("take", id)
	if err != nil {
		return tracker.TaskOut{}, err
	}
	slug := me
	t.AssigneeSlug, t.Status = &slug, tracker.InProgress
	t.Version++
	d.taken = append(d.taken, id)
	return *t, nil
}

func (d *desk) ReleaseTask(_ context.Context, id string, r tracker.ReleaseTask) (tracker.TaskOut, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.asked("release", id)
	if err != nil {
		return tracker.TaskOut{}, err
	}
	t.AssigneeSlug, t.Status = nil, tracker.Todo
	t.Version++
	d.released = append(d.released, id+": "+r.Reason)
	return *t, nil
}

func (d *desk) SendMessage(_ context.Context, m tracker.SendMessage) (tracker.MessageOut, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.asked("send", ""); err != nil {
		return tracker.MessageOut{}, err
	}
	d.comments[m.IdempotencyKey] = m.TaskID + ": " + m.Content
	return tracker.MessageOut{}, nil
}
