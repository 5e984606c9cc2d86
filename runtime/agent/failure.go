package agent

import (
	"context"
	"errors"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
)

// The codes of runs that failed here, besides those of package event; some are those of
// warnings, and of results that a model reads, too.
const (
	CodeToolRounds       = "max_tool_rounds"
	CodeTokenLimit       = "token_limit"
	CodeCostLimit        = "cost_limit"
	CodeEmptyAnswer      = "empty_answer"
	CodeAnswerCut        = "answer_cut"
	CodeContentFilter    = "content_filter"
	CodeContextOverflow  = "context_overflow"
	CodeModelRefused     = "model_refused"
	CodeModelUnavailable = "model_unavailable"
	CodeModelTimeout     = "model_timeout"
	CodeModelMalformed   = "model_malformed"
	CodeAnswerTooLarge   = "answer_too_large"
)

func failure(code, message string) error { return &event.Failure{Code: code, Message: message} }

// modelFailures says what a run ends with whose model failed; searched in order. The
// texts of package chat's errors are for peers too.
var modelFailures = []struct {
	is   error
	code string
}{
	{chat.ErrOverflow, CodeContextOverflow},
	{chat.ErrRefused, CodeModelRefused},
	{chat.ErrUnavailable, CodeModelUnavailable},
	{chat.ErrTimeout, CodeModelTimeout},
	{chat.ErrLimit, CodeAnswerTooLarge},
	{chat.ErrCut, CodeAnswerCut},
	{chat.ErrMalformed, CodeModelMalformed},
}

// modelFailed is what a run ends with whose model failed while the run went on.
func modelFailed(err error) error {
	for _, known := range modelFailures {
		if errors.Is(err, known.is) {
			return &event.Failure{Code: known.code, Message: err.Error()}
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &event.Failure{Code: CodeModelUnavailable, Message: "the model gave up: try again later", Cause: err}
	}
	return &event.Failure{Code: event.CodeInternal, Message: "the model failed inside hutch: its log says why", Cause: err}
}

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

// toolFailed is what a model reads of an error of a call; ok is false if that ends the
// run.
func toolFailed(err error) (text string, ok bool) {
	for _, known := range toolFailures {
		if errors.Is(err, known.is) {
			return tool.ErrorText(known.code, short(err.Error(), mostErrorText), known.hint), true
		}
	}
	return "", false
}

// notRun is what a model reads of a call that was not carried out.
func notRun(code, why, hint string) string {
	return tool.ErrorText(code, "not carried out: "+why, hint)
}
