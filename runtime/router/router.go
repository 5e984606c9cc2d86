package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// ErrNotBegun is what [Turns] return for a turn of which nothing has happened, because there
// was no room for it: it is asked for again, under the same run id.
var ErrNotBegun = errors.New("the turn was not begun")

// ErrFull is what [Router.Accept] returns while more is open than an inbox holds. The event
// stays with the tracker.
var ErrFull = errors.New("the inbox is full")

// A Turn is what is run for an item.
type Turn struct {
	// Thread is the conversation, and Title what a new one is called.
	Thread, Title string
	// RunID is of no other attempt of any item.
	RunID string
	// Text is the prompt.
	Text string
	// Item is what it is for, and Task the task as it was a moment ago.
	Item Item
	Task tracker.TaskOut
}

// Turns run turns.
type Turns interface {
	// Run returns when the run has ended: nil if it ended with an answer, [ErrNotBegun] if
	// nothing of it happened. Any other error says in one line, fit for everybody who sees
	// the task, why it failed. It ends the run when ctx ends. It is called for several turns
	// at once, of different threads.
	Run(ctx context.Context, t Turn) error
}

// Tracker is what is asked of a tracker in the agent's name.
type Tracker interface {
	GetTask(ctx context.Context, task string) (tracker.TaskOut, error)
	ListTasks(context.Context, tracker.TaskQuery) (tracker.Page[tracker.TaskOut], error)
	TakeTask(ctx context.Context, task string, t tracker.TakeTask) (tracker.TaskOut, error)
	ReleaseTask(ctx context.Context, task string, r tracker.ReleaseTask) (tracker.TaskOut, error)
	SendMessage(context.Context, tracker.SendMessage) (tracker.MessageOut, error)
}

// A Tool is one that the agent has, for its prompt.
type Tool struct{ Name, Description string }

// A Note is for a person who watches an agent.
type Note struct {
	At   time.Time
	Item Item // the zero value if it is about none
	Text string
}

// Options are what a router works with. Agent, Store, Turns and Tracker are required.
type Options struct {
	// Agent is its slug.
	Agent   string
	Store   Store
	Turns   Turns
	Tracker Tracker
	// Tools, if not nil, says which tools the agent has now.
	Tools func() []Tool
	// Lang is that of prompts and comments, en or ru; default en.
	Lang string
	// TaskListen is what tasks the agent works on; default [Assigned].
	TaskListen Listen
	// ChatListen is which messages are for it; default [Mentions].
	ChatListen Listen
	// Capabilities are what the agent can do. With [All] it takes free tasks whose type or
	// one of whose labels is among them; without any it takes every free task.
	Capabilities []string
	// Parallel is how many tasks are worked on at once; default 2.
	Parallel int
	// MaxOpen is how many items may be open; default 20,000. An event over that is not accepted.
	MaxOpen int
	// Keep is how many items that have ended are kept, default 10,000, and KeepFor how long,
	// default 30 days.
	Keep    int
	KeepFor time.Duration
	// Logger is told what goes wrong; nil is nobody.
	Logger *slog.Logger
	// Trail, if not nil, is told what happens to items, from several goroutines. It must not
	// block.
	Trail func(Note)
}

func (o Options) withDefaults() Options {
	o.Lang = cmp.Or(o.Lang, "en")
	o.TaskListen = cmp.Or(o.TaskListen, Assigned)
	o.ChatListen = cmp.Or(o.ChatListen, Mentions)
	o.Parallel = cmp.Or(o.Parallel, 2)
	o.MaxOpen = cmp.Or(o.MaxOpen, 20_000)
	o.Keep = cmp.Or(o.Keep, 10_000)
	o.KeepFor = cmp.Or(o.KeepFor, 30*24*time.Hour)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Trail == nil {
		o.Trail = func(Note) {}
	}
	if o.Tools == nil {
		o.Tools = func() []Tool { return nil }
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Agent == "" || o.Store == nil || o.Turns == nil || o.Tracker == nil:
		return errors.New("a router needs an agent, a store, turns and a tracker")
	case o.Parallel < 0 || o.MaxOpen < 0 || o.Keep < 0 || o.KeepFor < 0:
		return errors.New("a router's limits are not negative")
	}
	if err := oneOf("tasks", o.TaskListen, Assigned, All, None); err != nil {
		return err
	}
	if err := oneOf("chat", o.ChatListen, Mentions, All, None); err != nil {
		return err
	}
	return checkLang(o.Lang)
}

func oneOf[T ~string](what string, got T, all ...T) error {
	for _, one := range all {
		if got == one {
			return nil
		}
	}
	return fmt.Errorf("%s: %q, allowed are %v", what, got, all)
}

// A Router is the inbox of one agent, and what works it off.
type Router struct {
	o      Options
	text   texts
	live   live
	wishes wishes
	free   pool
	// check wakes the goroutine that compares the inbox with the tracker.
	check chan struct{}
}

// New returns a router, which does nothing before it runs.
func New(o Options) (*Router, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &Router{o: o, text: textsOf(o.Lang), check: make(chan struct{}, 1)}
	r.live.init()
	return r, nil
}

// Accept decides what becomes of an event. With nil it may be acknowledged: what is to come
// of it is durable, and an event that was accepted before changes nothing.
func (r *Router) Accept(ctx context.Context, f tracker.EventFrame) error {
	if err := checkFrame(f); err != nil {
		return err
	}
	n := read(f, r.o.Agent)
	n.about.Tasks, n.about.Chat = r.o.TaskListen, r.o.ChatListen
	items := r.itemsOf(f, n)
	if len(items) > 0 {
		if err := r.keep(ctx, items); err != nil {
			r.wishes.ask(wish{lost: true, waiting: true}) // a tracker gives it up when it was refused too often
			return err
		}
	}
	r.learn(ctx, f, n)
	return nil
}

// itemsOf are the items that an event leads to.
func (r *Router) itemsOf(f tracker.EventFrame, n news) (items []Item) {
	use := Decide(n.about)
	i := Item{Event: f.ID, Kind: n.about.Event, At: moment(f.TS), Task: n.task.ID, Key: n.task.Key, Title: n.task.Title, Version: n.task.Version, Chat: n.chat}
	switch {
	case n.fault != nil && use != Ignore:
		i.State, i.Why = Dropped, "its data cannot be read: "+oneLine(n.fault.Error(), maxWhy)
		return append(items, r.item(i))
	case n.took && use == Work && r.live.has(i.Task):
		return nil // it was taken for an item
	case n.took && use == Work:
		i.State, i.Why = Dropped, "the agent took it in a turn, which works on it"
		return append(items, r.item(i))
	case use == Work:
		i.State = Accepted
		return append(items, r.item(i))
	case use == Hear:
		i.State, i.Data = Heard, f.Data
		if len(i.Data) > maxHeard {
			i.Data, i.Why = nil, "it is too long to be kept: it can be read in the tracker"
		}
		return append(items, r.item(i))
	}
	about := n.about
	about.Event, about.Mine = KindUnblocked, true
	if Decide(about) != Work {
		return nil
	}
	for _, u := range n.unblocked {
		items = append(items, r.item(Item{
			Event: f.ID + "/" + u.ID, Kind: KindUnblocked, At: moment(f.TS), State: Accepted, Task: u.ID, Key: u.Key, Title: u.Title,
		}))
	}
	return items
}

// item is a new one of the agent.
func (r *Router) item(i Item) Item {
	i.Agent, i.ID = r.o.Agent, itemID(r.o.Agent, i.Event)
	i.Created = moment(time.Now())
	i.Changed = i.Created
	return i
}

// moment is a time as stores keep it.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// keep makes new items durable, and has what is to be done for them done.
func (r *Router) keep(ctx context.Context, items []Item) error {
	if err := r.live.room(len(items), r.o.MaxOpen); err != nil {
		return r.unlessKnown(ctx, items, err)
	}
	added, err := r.o.Store.AddItems(ctx, items)
	if err != nil {
		return err
	}
	for _, i := range added {
		r.say(i, "%s", string(i.State)+because(i.Why))
	}
	r.live.add(added)
	return nil
}

// unlessKnown is the error for items that there is no room for, or nil if they are there.
func (r *Router) unlessKnown(ctx context.Context, items []Item, full error) error {
	q := Query{Agent: r.o.Agent}
	for _, i := range items {
		q.IDs = append(q.IDs, i.ID)
	}
	known, err := r.o.Store.Items(ctx, q)
	if err == nil && len(known) == len(items) {
		return nil
	}
	return full
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// say tells a person who watches.
func (r *Router) say(i Item, format string, args ...any) {
	r.o.Trail(Note{At: time.Now(), Item: i, Text: fmt.Sprintf(format, args...)})
}

// State is what the agent does.
func (r *Router) State() tracker.Heartbeat {
	h := tracker.Heartbeat{Type: tracker.FrameHeartbeat, Status: tracker.Idle, CurrentTasks: r.live.current()}
	if len(h.CurrentTasks) > 0 {
		h.Status = tracker.Busy
	}
	h.CurrentTasks = h.CurrentTasks[:min(len(h.CurrentTasks), tracker.MaxCurrent)]
	return h
}
