package prompt

import (
	"context"
	"errors"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
)

// toolFailures says how a model reads that a call failed; searched in order. What is
// not here ends the run: nobody knows what it means.
var toolFailures = []struct {
	is         error
	code, hint string
}{
	{tool.ErrNotFound, "not_found", "call only tools that you were offered, by their exact names"},
	{tool.ErrInvalid, "invalid_arguments", "call it again with arguments that fit its schema"},
	{tool.ErrHeld, "held", "use another tool, or tell the person"},
	{tool.ErrDenied, "denied", "do not try again; use another tool, or tell the person"},
	{tool.ErrTimeout, "timeout", "ask for less, or try again once"},
	{tool.ErrLimit, "limit", "ask for less"},
	{tool.ErrBusy, "busy", "try again later"},
	{tool.ErrFailed, "tool_failed", "use another tool, or other arguments"},
	{tool.ErrRejected, "rejected", "use another tool"},
	{tool.ErrUnavailable, event.CodeUnavailable, "try again once"},
	{tool.ErrCancelled, "cancelled", "it may have been carried out or not: find out before you try again"},
	{context.DeadlineExceeded, "timeout", "ask for less, or try again once"},
	{context.Canceled, "cancelled", "it may have been carried out or not: find out before you try again"},
}

// mostErrorText bounds what an error of a tool tells a model.
const mostErrorText = 4 << 10

// ToolFailed is what a model reads of an error of a call; ok is false if that ends the
// run.
func ToolFailed(err error) (text string, ok bool) {
	for _, known := range toolFailures {
		if errors.Is(err, known.is) {
			return tool.ErrorText(known.code, Short(err.Error(), mostErrorText), known.hint), true
		}
	}
	return "", false
}

// NotRun is what a model reads of a call that was not carried out.
func NotRun(code, why, hint string) string {
	return tool.ErrorText(code, "not carried out: "+why, hint)
}
