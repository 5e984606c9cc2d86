package session

import (
	"errors"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/history"
	"github.com/hutch-run/hutch/runtime/tail"
)

// What can be wrong with what is asked of a [Keeper] or a [Store].
var (
	// ErrNotFound: there is no such thread or run, or none that the principal may know
	// of.
	ErrNotFound = event.ErrNotFound
	// ErrReadOnly: the principal may read the thread, and no more.
	ErrReadOnly = errors.New("the thread belongs to somebody else and may only be read")
	// ErrInvalid: the input is none that can be run.
	ErrInvalid = history.ErrInvalid
	// ErrDuplicateRun: there was a run of that id with another input.
	ErrDuplicateRun = errors.New("the thread has had a run of this id with another input: use a new id")
	// ErrBusy: too much waits already.
	ErrBusy = errors.New("busy")
	// ErrConflict: the thread is not as whoever changes it last saw it. Nothing was
	// changed.
	ErrConflict = errors.New("the thread has changed")
	// ErrLimit: more than may be kept.
	ErrLimit = tail.ErrLimit
	// ErrSlow: a stream was cut off because its reader did not keep up.
	ErrSlow = errors.New("the stream was cut off because it was read too slowly: attach again from the last number")
	// ErrOrder: an event that cannot follow those before it.
	ErrOrder = tail.ErrOrder
	// ErrClosed: the keeper was closed.
	ErrClosed = errors.New("no more runs are taken: the program ends")
)

// The codes of runs that failed, besides those of [event.ErrorOf] and those of runners.
const (
	CodeInterrupted  = "interrupted"      // the process ended in the middle
	CodeStore        = "store"            // it could not be kept
	CodeInvalid      = "invalid_input"    // its input did not fit the thread when its turn came
	CodeDuplicateRun = "duplicate_run_id" // what a face calls [ErrDuplicateRun]
)
