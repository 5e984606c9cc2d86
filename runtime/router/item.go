package router

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// A State is where an item is.
type State string

// The states. Accepted and running items are open, all others have ended; a failed one may be
// retried.
const (
	Accepted State = "accepted" // waits for its turn
	Running  State = "running"
	Done     State = "done"
	Failed   State = "failed"
	Dropped  State = "dropped" // had no turn, for the reason that it has
	Heard    State = "heard"   // is for a prompt, and has no turn yet: comments and messages
)

// States returns all of them.
func States() []State { return []State{Accepted, Running, Done, Failed, Dropped, Heard} }

// What an item may come from besides events of the tracker.
const (
	// KindUnblocked is a task of the agent that waits for no other any more.
	KindUnblocked = "task.unblocked"
	// KindFound is an open task of the agent that no event was about.
	KindFound = "task.found"
	// KindFree is a free task that the agent takes by itself.
	KindFree = "task.free"
)

// An Item is one thing in the inbox of an agent.
type Item struct {
	// ID is made of the agent and the event, so it is the same each time.
	ID    string `json:"id"`
	Agent string `json:"agent"` // its slug
	// Event is the id of the event, or what stands for one. An agent has one item of each.
	Event string `json:"event"`
	// Kind is the canonical name of the event, or one of the kinds above.
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// Why is the reason of a state: why it failed, was dropped, or what it waits for.
	Why string `json:"why,omitempty"`
	// Task is the id of the task, Key and Title what it was called then.
	Task  string `json:"task,omitempty"`
	Key   string `json:"key,omitempty"`
	Title string `json:"title,omitempty"`
	// Version is that of the task when it was last looked at; 0 is not known.
	Version int64 `json:"version,omitempty"`
	// At is when the tracker says that it happened; the zero time is not known. Began is when
	// the task was looked at for the last turn.
	At    time.Time `json:"at,omitzero"`
	Began time.Time `json:"began,omitzero"`
	// Chat is the id of the chat.
	Chat string `json:"chat,omitempty"`
	// Data is that of an event that is heard.
	Data json.RawMessage `json:"data,omitempty"`
	// Attempt counts the turns it has had, RunID is the run of the last.
	Attempt int    `json:"attempt,omitempty"`
	RunID   string `json:"run_id,omitempty"`
	// Interrupted: the last turn was, and the next one is to be told. Crashes counts how
	// often the program died with it.
	Interrupted bool `json:"interrupted,omitempty"`
	Crashes     int  `json:"crashes,omitempty"`
	// Take: the task is to be taken first, because it may be nobody's.
	Take bool `json:"take,omitempty"`
	// Owed is the reason with which the task has still to be given back to the tracker.
	Owed string `json:"owed,omitempty"`
	// Number is its place in the store, where those that come later have greater ones, and
	// Revision changes with each change; both are the store's.
	Number   int64     `json:"number"`
	Revision int64     `json:"revision"`
	Created  time.Time `json:"created"`
	Changed  time.Time `json:"changed"`
}

// Open reports whether something is still to be done for the item.
func (i Item) Open() bool { return i.State == Accepted || i.State == Running || i.Owed != "" }

// itemID is the id of the item of an agent and an event.
func itemID(agent, event string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(agent)) + ":" + agent + event))
	return hex.EncodeToString(sum[:16])
}

// runID is that of an attempt. An attempt that is made twice has one run.
func runID(id string, attempt int) string { return "item-" + id + "-" + strconv.Itoa(attempt) }

// ThreadOf is the thread of the turns about a task.
func ThreadOf(task string) string { return "task:" + task }

// What a [Store] refuses with.
var (
	// ErrChanged: an item is not as it was read.
	ErrChanged = errors.New("the item has changed: read it again")
	// ErrNotFound: there is no such item.
	ErrNotFound = errors.New("no such item: list the inbox")
)

// A Query asks for items, those with the smallest numbers first. What is given must all hold.
type Query struct {
	Agent  string
	IDs    []string // if not nil, these
	States []State  // if not nil, any of these
	Open   bool     // those that are
	Task   string
	After  int64 // a number
	Latest bool  // those with the greatest numbers first
	Limit  int   // 0 is as many as there are
}

// A Store keeps the inboxes of agents. It knows none of the rules: it keeps what it is given,
// and finds it again. Times are kept to the millisecond, in UTC. What it returns is the
// caller's to change. A nil error means that it is durable.
type Store interface {
	// AddItems keeps those of the items of whose agent and event there is none, all or
	// nothing, and returns them with their numbers and revisions.
	AddItems(ctx context.Context, items []Item) (added []Item, err error)
	// SetItems replaces items by their ids, all or nothing, and returns them with their new
	// revisions. It returns [ErrChanged] if one has another revision, [ErrNotFound] if one is
	// not there. Agent, event and number of an item never change.
	SetItems(ctx context.Context, items []Item) ([]Item, error)
	// Items finds items.
	Items(ctx context.Context, q Query) ([]Item, error)
	// PruneItems removes items of an agent that have ended: those that changed before a time,
	// and of the others all but the latest keep; at most most of them. It returns how many.
	PruneItems(ctx context.Context, agent string, before time.Time, keep, most int) (int, error)
}
