package event

import (
	"context"
	"errors"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Codes of a [RunError] that more than one package uses.
const (
	CodeInternal    = "internal"
	CodeCancelled   = "cancelled"
	CodeTimeout     = "timeout"
	CodeLimit       = "limit"
	CodeBusy        = "busy"
	CodeUnavailable = "unavailable"
	CodeShutdown    = "shutdown"
	CodeForbidden   = "forbidden"     // who asks may see the thread, and no more
	CodeInvalid     = "invalid_input" // it does not fit the thread
)

// What can be wrong with what a client asks of threads and runs, for every face.
var (
	// ErrNotFound: there is no such thread or run, or none of the principal that asks.
	ErrNotFound = errors.New("not found")
	// ErrNotRunning: no run of the thread is in progress.
	ErrNotRunning = errors.New("not running")
)

// A Failure is an error that a peer may read, for a run to end with.
type Failure struct {
	Code    string // of the [RunError]
	Message string
	// Cause is for the log alone; it may be nil.
	Cause error
}

func (f *Failure) Error() string {
	if f.Cause == nil || f.Cause.Error() == f.Message {
		return f.Message
	}
	return f.Message + ": " + f.Cause.Error()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// ErrorOf returns the event that tells a peer of an error: what a [Failure] says, or
// a sentence for the kind of error, and nothing else of its text.
func ErrorOf(err error) RunError {
	var f *Failure
	if errors.As(err, &f) && f.Code != "" {
		return RunError{Code: f.Code, Message: f.Message}
	}
	for _, known := range []struct {
		is            error
		code, message string
	}{
		{tool.ErrCancelled, CodeCancelled, "the run was cancelled"},
		{context.Canceled, CodeCancelled, "the run was cancelled"},
		{tool.ErrTimeout, CodeTimeout, "the run took longer than it may"},
		{context.DeadlineExceeded, CodeTimeout, "the run took longer than it may"},
		{tool.ErrLimit, CodeLimit, "the run hit a limit"},
		{tool.ErrBusy, CodeBusy, "too much is going on already: try again later"},
		{tool.ErrUnavailable, CodeUnavailable, "something that the run needs is not available: try again later"},
	} {
		if errors.Is(err, known.is) {
			return RunError{Code: known.code, Message: known.message}
		}
	}
	return RunError{Code: CodeInternal, Message: "the run failed inside hutch: its log says why"}
}
