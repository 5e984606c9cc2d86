package session

import (
	"context"
	"fmt"

	"github.com/hutch-run/hutch/protocol/event"
)

// nowhere is the store of a keeper that keeps nothing.
type nowhere struct{}

var _ Store = nowhere{}

func (nowhere) Thread(_ context.Context, ref Ref) (Thread, error) {
	return Thread{}, fmt.Errorf("thread %s: %w", quoted(ref.ID), ErrNotFound)
}
func (nowhere) Threads(context.Context, ThreadQuery) ([]Thread, error) { return nil, nil }
func (nowhere) ThreadMessages(context.Context, Ref, MessageQuery) ([]Stored, error) {
	return nil, nil
}
func (nowhere) ThreadKnows(context.Context, Ref, []string) (map[string]int64, error) { return nil, nil }
func (nowhere) ThreadEvents(context.Context, Ref, EventQuery) ([]Kept, error)        { return nil, nil }
func (nowhere) ThreadRuns(context.Context, Ref, string, int) ([]Record, error)       { return nil, nil }
func (nowhere) UnfinishedRuns(context.Context, int) ([]Unfinished, error)            { return nil, nil }
func (nowhere) DeleteThread(_ context.Context, r Ref, _ ...event.Job) error          { return ErrNotFound }
func (nowhere) SweepThreads(context.Context, Ages, int) (int64, []Ref, error)        { return 0, nil, nil }
func (nowhere) CommitThread(_ context.Context, c Change, _ ...event.Job) (Committed, error) {
	t := Thread{Ref: c.Ref, Head: c.NextHead(), State: c.State}
	if c.Waiting != nil {
		t.Waiting = *c.Waiting
	}
	return Committed{Thread: t, Numbers: make([]int64, len(c.Messages))}, nil
}
