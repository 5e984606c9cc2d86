package store

import (
	"context"

	"github.com/hutch-run/hutch/protocol/event"
	threads "github.com/hutch-run/hutch/runtime/session"
)

// Thread is [Tx.Thread] in a view of its own.
func (d *DB) Thread(ctx context.Context, ref threads.Ref) (t threads.Thread, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		t, err = tx.Thread(ref)
		return err
	})
	return t, err
}

// Threads is [Tx.Threads] in a view of its own.
func (d *DB) Threads(ctx context.Context, q threads.ThreadQuery) (all []threads.Thread, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.Threads(q)
		return err
	})
	return all, err
}

// ThreadMessages is [Tx.ThreadMessages] in a view of its own.
func (d *DB) ThreadMessages(ctx context.Context, ref threads.Ref, q threads.MessageQuery) (all []threads.Stored, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.ThreadMessages(ref, q)
		return err
	})
	return all, err
}

// ThreadKnows is [Tx.ThreadKnows] in a view of its own.
func (d *DB) ThreadKnows(ctx context.Context, ref threads.Ref, ids []string) (known map[string]int64, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		known, err = tx.ThreadKnows(ref, ids)
		return err
	})
	return known, err
}

// ThreadEvents is [Tx.ThreadEvents] in a view of its own.
func (d *DB) ThreadEvents(ctx context.Context, ref threads.Ref, q threads.EventQuery) (all []threads.Kept, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.ThreadEvents(ref, q)
		return err
	})
	return all, err
}

// ThreadRuns is [Tx.ThreadRuns] in a view of its own.
func (d *DB) ThreadRuns(ctx context.Context, ref threads.Ref, id string, limit int) (all []threads.Record, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.ThreadRuns(ref, id, limit)
		return err
	})
	return all, err
}

// UnfinishedRuns is [Tx.UnfinishedRuns] in a view of its own.
func (d *DB) UnfinishedRuns(ctx context.Context, limit int) (all []threads.Unfinished, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.UnfinishedRuns(limit)
		return err
	})
	return all, err
}

// CommitThread is [Tx.CommitThread] in a change of its own.
func (d *DB) CommitThread(ctx context.Context, c threads.Change, jobs ...event.Job) (done threads.Committed, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		done, err = tx.CommitThread(c, jobs...)
		return err
	})
	return done, err
}

// DeleteThread is [Tx.DeleteThread] in a change of its own.
func (d *DB) DeleteThread(ctx context.Context, ref threads.Ref, jobs ...event.Job) error {
	return d.Update(ctx, func(tx Tx) error { return tx.DeleteThread(ref, jobs...) })
}

// SweepThreads is [Tx.SweepThreads] in a change of its own.
func (d *DB) SweepThreads(ctx context.Context, before threads.Ages, limit int) (removed int64, gone []threads.Ref, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		removed, gone, err = tx.SweepThreads(before, limit)
		return err
	})
	return removed, gone, err
}
