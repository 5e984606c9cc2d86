package chat

import (
	"errors"
	"fmt"
)

// What can go wrong with a turn of a model, for whoever runs one. What wraps one of
// them is one line that says what to do next, and holds no key, address or text of the
// conversation.
var (
	// ErrOverflow: the request is larger than the model takes. Trying again is of no
	// use; a shorter conversation may be. It is an [*OverflowError].
	ErrOverflow = errors.New("too large for the model")
	// ErrRefused: the provider does not take the request, for its key or its content.
	ErrRefused = errors.New("refused by the provider")
	// ErrUnavailable: the provider could not be reached or did not work, also when it
	// was tried again.
	ErrUnavailable = errors.New("the provider is unavailable")
	// ErrTimeout: the model took longer than it may, in all or between two pieces.
	ErrTimeout = errors.New("the model took too long")
	// ErrLimit: the answer is larger than is allowed here.
	ErrLimit = errors.New("the answer is too large")
	// ErrCut: the answer ended in the middle.
	ErrCut = errors.New("the answer was cut off")
	// ErrMalformed: what the provider sent is no answer.
	ErrMalformed = errors.New("not an answer")
)

// Overflow names a limit of a model.
type Overflow string

// The limits that a request can be over.
const (
	// OverflowContext: tokens of the conversation and the answer together.
	OverflowContext Overflow = "context"
	// OverflowAnswer: tokens that may be asked for as an answer.
	OverflowAnswer Overflow = "answer"
	// OverflowRequest: the size of one request.
	OverflowRequest Overflow = "request"
)

// OverflowError says which limit of the model a request is over. It is an
// [ErrOverflow].
type OverflowError struct {
	Which Overflow
	// Most and Found are in tokens; 0 is not known.
	Most, Found int64
}

func (e *OverflowError) Error() string {
	var does string
	switch e.Which {
	case OverflowAnswer:
		does = "asks for a longer answer than the model gives: lower the most tokens of an answer"
	case OverflowRequest:
		does = "is larger than the provider takes at once: shorten the conversation or its parts"
	default:
		does = "does not fit the model's context: shorten the conversation, or choose a model with a larger one"
	}
	switch {
	case e.Most > 0 && e.Found > 0:
		return fmt.Sprintf("%v: %d tokens, at most %d: the request %s", ErrOverflow, e.Found, e.Most, does)
	case e.Most > 0:
		return fmt.Sprintf("%v: at most %d tokens: the request %s", ErrOverflow, e.Most, does)
	}
	return fmt.Sprintf("%v: the request %s", ErrOverflow, does)
}

// Unwrap returns [ErrOverflow].
func (e *OverflowError) Unwrap() error { return ErrOverflow }

// Limit is the name of the limit, as a configuration could spell it.
func (e *OverflowError) Limit() string { return string(e.Which) }
