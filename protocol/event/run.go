package event

import (
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/chat"
)

// RunStarted is the first event of a run.
type RunStarted struct {
	ThreadID        string `json:"threadId" is:"id"`
	RunID           string `json:"runId" is:"id"`
	ProtocolVersion string `json:"protocolVersion,omitempty"`
	// ParentRunID is the run that asked for this one.
	ParentRunID string `json:"parentRunId,omitempty"`
	Input       *Input `json:"input,omitempty"`
	Base
}

// RunFinished is the last event of a run that did not fail.
type RunFinished struct {
	ThreadID string          `json:"threadId" is:"id"`
	RunID    string          `json:"runId" is:"id"`
	Result   json.RawMessage `json:"result,omitempty"`
	Outcome  *Outcome        `json:"outcome,omitempty"` // nil is success
	Usage    []chat.Usage    `json:"usage,omitempty"`
	Base
}

// OutcomeType is how a run ended that did not fail.
type OutcomeType string

// The outcomes.
const (
	Success     OutcomeType = "success"
	Interrupted OutcomeType = "interrupt" // it waits for answers to its interrupts
	Cancelled   OutcomeType = "cancelled" // someone stopped it
)

// Outcome says how a run ended.
type Outcome struct {
	Type OutcomeType `json:"type" is:"required,one=success|interrupt|cancelled"`
	// PendingToolCallIDs, of a success, are the calls that the client is to answer,
	// in the order in which they were made.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	// Interrupts, of an interrupted run, are at least one.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

func (o Outcome) fault() *FieldError {
	switch {
	case o.Type == Interrupted && len(o.Interrupts) == 0:
		return &FieldError{Field: "interrupts", Found: "none", Allowed: "at least one"}
	case o.Type != Interrupted && len(o.Interrupts) > 0:
		return &FieldError{Field: "interrupts", Found: "some in an outcome " + string(o.Type), Allowed: "none"}
	case o.Type != Success && len(o.PendingToolCallIDs) > 0:
		return &FieldError{Field: "pendingToolCallIds", Found: "some in an outcome " + string(o.Type), Allowed: "none"}
	}
	return nil
}

// Interrupt is what a run needs to know before it can go on.
type Interrupt struct {
	ID     string `json:"id" is:"id"`
	Reason string `json:"reason" is:"required"`
	// Message is what a person reads.
	Message string `json:"message,omitempty"`
	// ToolCallID is the call that waits for it.
	ToolCallID string `json:"toolCallId,omitempty"`
	// ResponseSchema is a JSON Schema of the answer's payload.
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty" is:"object"`
	ExpiresAt      string          `json:"expiresAt,omitempty"` // RFC 3339
	Metadata       json.RawMessage `json:"metadata,omitempty" is:"object"`
	SubagentRunID  string          `json:"subagentRunId,omitempty"`
}

// RunError is the last event of a run that failed.
type RunError struct {
	Message string       `json:"message" is:"required"`
	Code    string       `json:"code,omitempty"`
	Usage   []chat.Usage `json:"usage,omitempty"`
	Base
}

// StepStarted begins a step of a run.
type StepStarted struct {
	StepName string `json:"stepName" is:"id"`
	Owned
}

// StepFinished ends a step.
type StepFinished struct {
	StepName string `json:"stepName" is:"id"`
	Owned
}

// Type is RUN_STARTED.
func (RunStarted) Type() Type { return TypeRunStarted }

// Type is RUN_FINISHED.
func (RunFinished) Type() Type { return TypeRunFinished }

// Type is RUN_ERROR.
func (RunError) Type() Type { return TypeRunError }

// Type is STEP_STARTED.
func (StepStarted) Type() Type { return TypeStepStarted }

// Type is STEP_FINISHED.
func (StepFinished) Type() Type { return TypeStepFinished }
