package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
)

// maxFailureText bounds what a failing tool can say.
const maxFailureText = 4 << 10

// A callError is one of the tool package's errors with a text of its own.
type callError struct {
	kind  error
	text  string
	limit abi.LimitName // empty if it is about none
	usage tool.Usage
}

// Limit is what tool.LimitOf reads.
func (e *callError) Limit() string { return string(e.limit) }

// Usage is what tool.UsageOf reads.
func (e *callError) Usage() tool.Usage { return e.usage }

func (e *callError) Error() string { return e.text }
func (e *callError) Unwrap() error { return e.kind }

// failures maps what a worker reports to what callers are told; searched in
// order. next says what can be done about it.
var failures = []struct {
	cause error
	kind  error
	next  string
}{
	{&abi.Failure{Class: abi.ClassTimeout}, tool.ErrTimeout, "ask for less, or try again"},
	{&abi.Failure{Class: abi.ClassCancelled}, tool.ErrCancelled, ""},
	{&abi.Failure{Class: abi.ClassLimit}, tool.ErrLimit, "ask for less"},
	{&abi.Failure{Class: abi.ClassBusy}, tool.ErrBusy, ""},
	{&abi.Failure{Class: abi.ClassTrap}, tool.ErrFailed, "this tool cannot do it, use another"},
	{&abi.Failure{Class: abi.ClassModule}, tool.ErrFailed, "this tool cannot run, use another"},
	{&abi.Failure{Class: abi.ClassWorkerLost}, tool.ErrUnavailable, "try again"},
	{&abi.Failure{Class: abi.ClassInternal}, tool.ErrUnavailable, "try again later"},
	{context.Canceled, tool.ErrCancelled, ""},
	{context.DeadlineExceeded, tool.ErrTimeout, "ask for less, or try again"},
}

// failed turns a worker's error into what the caller gets. What the tool itself
// reports is an answer, for the model to read; everything else is an error.
func (r *Registry) failed(ctx context.Context, name string, err error) (tool.Result, error) {
	var already *callError
	var f *abi.Failure
	switch {
	case errors.As(err, &already):
		return tool.Result{}, already
	case errors.As(err, &f) && f.Class == abi.ClassGuest:
		return tool.Failed(abi.OneLine(r.redacted(f.Text), maxFailureText)), nil
	}
	for _, row := range failures {
		if !errors.Is(err, row.cause) {
			continue
		}
		what, limit := row.kind.Error(), abi.LimitName("")
		if f != nil {
			what, limit = abi.OneLine(r.redacted(f.Text), maxFailureText), f.Limit
		}
		text := fmt.Sprintf("tool %q: %s", name, what)
		// What a tool leaves with may be about these arguments alone: no advice.
		if row.next != "" && !strings.HasPrefix(what, "left with exit code") {
			text += ": " + row.next
		}
		return tool.Result{}, &callError{kind: row.kind, text: text, limit: limit}
	}
	r.o.Logger.ErrorContext(ctx, "a tool could not be run", "tool", name, "error", err)
	return tool.Result{}, &callError{kind: tool.ErrUnavailable,
		text: fmt.Sprintf("tool %q: could not be run: try again later", name)}
}
