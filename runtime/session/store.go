package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// Store (SessionStore) keeps threads. What it returned it does not change; a change is
// durable when CommitThread returns nil. It is one process's own.
type Store interface {
	// Thread returns a thread, or [ErrNotFound].
	Thread(context.Context, Ref) (Thread, error)
	// Threads returns threads without their states, those used last first.
	Threads(context.Context, ThreadQuery) ([]Thread, error)
	// ThreadMessages returns messages in their order, none of a thread that is not there.
	ThreadMessages(context.Context, Ref, MessageQuery) ([]Stored, error)
	// ThreadKnows returns the numbers of those messages of the thread that have one of the
	// ids.
	ThreadKnows(context.Context, Ref, []string) (map[string]int64, error)
	// ThreadEvents returns events in their order.
	ThreadEvents(context.Context, Ref, EventQuery) ([]Kept, error)
	// ThreadRuns returns runs, those submitted last first: the one of that id, or, if it is
	// "", at most limit.
	ThreadRuns(ctx context.Context, ref Ref, id string, limit int) ([]Record, error)
	// UnfinishedRuns returns runs that have not ended, in the order of their submission.
	UnfinishedRuns(ctx context.Context, limit int) ([]Unfinished, error)
	// CommitThread makes a change and keeps the jobs that it causes with it. It returns
	// [ErrConflict], [ErrDuplicateRun], or [ErrInvalid] for a message whose id is there.
	CommitThread(context.Context, Change, ...event.Job) (Committed, error)
	// DeleteThread removes a thread, or returns [ErrNotFound].
	DeleteThread(context.Context, Ref, ...event.Job) error
	// SweepThreads removes some of what is older than the times say, at most limit rows,
	// and returns how many it removed and which threads went.
	SweepThreads(ctx context.Context, before Ages, limit int) (removed int64, gone []Ref, err error)
}

// ThreadQuery asks for threads.
type ThreadQuery struct {
	Owner string // "" is everybody
	ID    string // "" is any
	// Before asks for those used before a thread that was returned.
	Before Thread
	Limit  int
}

// MessageQuery asks for messages.
type MessageQuery struct {
	// Last asks for the last messages before the one with the number Before (0: for the
	// very last), as many as Limit and MaxBytes let there be and at least one; otherwise it is for the first ones behind the number After.
	Last          bool
	Before, After int64
	Limit         int
	MaxBytes      int64 // of Last; 0 is no bound
}

// A Stored message has a place in its thread: numbers grow, and are the thread's own.
type Stored struct {
	Number int64
	// Bytes is what it takes.
	Bytes int64
	chat.Message
}

// Read takes over a message that a store kept as JSON.
func (s *Stored) Read(body []byte) (err error) {
	s.Message, err = chat.Decode(body)
	return err
}

// EventQuery asks for events with numbers above After and up to UpTo (0: all).
type EventQuery struct {
	After, UpTo int64
	Limit       int
}

// Kept is an event that is kept, encoded.
type Kept struct {
	Number int64
	Run    string
	Body   json.RawMessage
}

// Unfinished is a run that has not ended.
type Unfinished struct {
	Ref
	Head int64 // of its thread
	Record
}

// A Change is what happens to a thread at once.
type Change struct {
	Ref
	// Head is what the thread's must be; 0: there must be no such thread, and it is made.
	Head int64
	At   time.Time
	// Agent and Title are of a thread that is made. MostThreads is how many its owner
	// may have then, 0 for as many as they like: others, in which no run waits or runs,
	// go for it.
	Agent, Title string
	MostThreads  int
	// State replaces the thread's unless it is nil, and Waiting likewise.
	State   json.RawMessage
	Waiting *Waiting
	// DropFrom removes the messages from that number on, before others are added; 0
	// removes none. TrimTo removes the messages before that number, and TrimEventsTo events.
	DropFrom, TrimTo, TrimEventsTo int64
	Messages                       []chat.Message
	// New are runs that must not be there, and Runs those that are.
	New, Runs []Record
	// Events get the numbers behind Head. Their own is not looked at.
	Events []Kept
}

// Advances reports whether the head grows: by one for each event, at least by one.
// What only speaks of runs or removes old things leaves it, but of a new thread.
func (c Change) Advances() bool {
	return c.Head == 0 || len(c.Events) > 0 || len(c.Messages) > 0 || c.State != nil || c.DropFrom > 0
}

// NextHead is the head of the thread after the change.
func (c Change) NextHead() int64 {
	if !c.Advances() {
		return c.Head
	}
	return c.Head + max(1, int64(len(c.Events)))
}

// Committed is what came of a change.
type Committed struct {
	Thread Thread
	// Numbers are those of its messages.
	Numbers []int64
	// Gone are threads that had to make room.
	Gone []Ref
}

// Ages say what is too old; zero times are never.
type Ages struct {
	Threads time.Time // threads not used since, and records of runs that ended before
	Events  time.Time // events of runs that ended before
}

// ItemOverhead is what a message or an event counts besides its bytes, so that many
// tiny ones are not free.
const ItemOverhead = 64
