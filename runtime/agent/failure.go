package agent

import (
	"context"
	"errors"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
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
