package tool

import (
	"encoding/json"
	"errors"
)

// What can go wrong with a call, for every layer and face. Faces map them to
// their own codes in one ordered table each. The text of an error that wraps
// one of these may be shown to a model and says what to do next.
var (
	// ErrNotFound: no such tool, or none that this caller may see. The text is
	// "Tool not found: <name>" (requirement S1-052).
	ErrNotFound = errors.New("tool not found")
	// ErrInvalid: the arguments do not fit the tool's schema.
	ErrInvalid = errors.New("invalid arguments")
	// ErrDenied: policy says no.
	ErrDenied = errors.New("denied")
	// ErrHeld: the module waits for a decision.
	ErrHeld = errors.New("held")
	// ErrTimeout: the call took longer than it may.
	ErrTimeout = errors.New("timeout")
	// ErrCancelled: the caller left.
	ErrCancelled = errors.New("cancelled")
	// ErrLimit: a limit other than time was hit.
	ErrLimit = errors.New("limit")
	// ErrBusy: too many calls of the tool's module wait already, or came in the
	// last second. Nothing was started; the text says when to try again.
	ErrBusy = errors.New("busy")
	// ErrFailed: the tool broke: it trapped, or answered what it may not.
	ErrFailed = errors.New("tool failed")
	// ErrUnavailable: hutch could not run the tool now; trying again may help.
	ErrUnavailable = errors.New("unavailable")
	// ErrRejected: the module cannot be used as it is.
	ErrRejected = errors.New("rejected")
)

// An AskError says that a call waits for a person, as the policy wants for its tool.
// Nothing was started. Who can ask a person does, and makes the same call with
// [Call].Approved; for everybody else it is an [ErrDenied].
type AskError struct {
	// Tool is the published name.
	Tool string
	// Question is what the person reads, in one line; empty is whether the tool may be
	// called with these arguments.
	Question string
	// Arguments are those that the tool would be called with, other spellings resolved; nil
	// is as they came.
	Arguments json.RawMessage
}

func (e *AskError) Error() string {
	return "tool " + e.Tool + " waits for a person before each call, and nobody can be asked here: use another tool, or ask the operator to allow it"
}

// Unwrap returns ErrDenied.
func (e *AskError) Unwrap() error { return ErrDenied }

// NotFound returns the error for a name that no tool has.
func NotFound(name string) error { return &notFoundError{name} }

type notFoundError struct{ name string }

func (e *notFoundError) Error() string { return "Tool not found: " + e.name }
func (e *notFoundError) Unwrap() error { return ErrNotFound }

// LimitOf returns the name of the limit that err is about, as a configuration
// spells it below "limits", or "" if it is about none.
func LimitOf(err error) string {
	var limited interface{ Limit() string }
	if errors.As(err, &limited) {
		return limited.Limit()
	}
	return ""
}
