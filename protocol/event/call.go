package event

import (
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/chat"
)

// ToolCallStart begins a call of a tool.
type ToolCallStart struct {
	ToolCallID   string `json:"toolCallId" is:"id"`
	ToolCallName string `json:"toolCallName" is:"id"`
	// ParentMessageID is the assistant's message that the call stands in. AG-UI lets it
	// be left out; [Guard] does not, or a client would make up a message of its own.
	ParentMessageID string `json:"parentMessageId,omitempty"`
	Owned
}

// ToolCallArgs continues the text of a call's arguments.
type ToolCallArgs struct {
	ToolCallID string `json:"toolCallId" is:"id"`
	Delta      string `json:"delta" is:"required"`
	Owned
}

// ToolCallEnd says that a call's arguments are whole.
type ToolCallEnd struct {
	ToolCallID string `json:"toolCallId" is:"id"`
	Owned
}

// ToolCallChunk begins and continues a call; the first one has an id and a name.
// [Guard] turns it into the three events above.
type ToolCallChunk struct {
	ToolCallID      string `json:"toolCallId,omitempty"`
	ToolCallName    string `json:"toolCallName,omitempty"`
	ParentMessageID string `json:"parentMessageId,omitempty"`
	Delta           string `json:"delta,omitempty"`
	Owned
}

// ToolCallResult is what a tool answered, as a message.
type ToolCallResult struct {
	MessageID  string       `json:"messageId" is:"id"`
	ToolCallID string       `json:"toolCallId" is:"id"`
	Content    chat.Content `json:"content" is:"required"`
	Role       chat.Role    `json:"role,omitempty" is:"one=tool"`
	Owned
}

// SubagentStarted begins what another agent does for this one.
type SubagentStarted struct {
	SubagentRunID       string `json:"subagentRunId" is:"id"`
	Name                string `json:"name" is:"required"`
	Description         string `json:"description,omitempty"`
	ParentSubagentRunID string `json:"parentSubagentRunId,omitempty"`
	ParentToolCallID    string `json:"parentToolCallId,omitempty"`
	ParentMessageID     string `json:"parentMessageId,omitempty"`
	Base
}

// SubagentFinished ends it.
type SubagentFinished struct {
	SubagentRunID string           `json:"subagentRunId" is:"id"`
	Result        json.RawMessage  `json:"result,omitempty"`
	Outcome       *SubagentOutcome `json:"outcome,omitempty"` // nil is success
	Base
}

// Suspended is the outcome of a subagent that waits for answers to interrupts.
const Suspended OutcomeType = "suspended"

// SubagentOutcome says how a subagent ended.
type SubagentOutcome struct {
	Type         OutcomeType `json:"type" is:"required,one=success|suspended"`
	InterruptIDs []string    `json:"interruptIds,omitempty"`
}

func (o SubagentOutcome) fault() *FieldError {
	if o.Type == Success && len(o.InterruptIDs) > 0 {
		return &FieldError{Field: "interruptIds", Found: "some in an outcome success", Allowed: "none"}
	}
	return nil
}

// SubagentError ends a subagent that failed; its run may go on.
type SubagentError struct {
	SubagentRunID string `json:"subagentRunId" is:"id"`
	Message       string `json:"message" is:"required"`
	Code          string `json:"code,omitempty"`
	Base
}

// Type is TOOL_CALL_START.
func (ToolCallStart) Type() Type { return TypeToolCallStart }

// Type is TOOL_CALL_ARGS.
func (ToolCallArgs) Type() Type { return TypeToolCallArgs }

// Type is TOOL_CALL_END.
func (ToolCallEnd) Type() Type { return TypeToolCallEnd }

// Type is TOOL_CALL_CHUNK.
func (ToolCallChunk) Type() Type { return TypeToolCallChunk }

// Type is TOOL_CALL_RESULT.
func (ToolCallResult) Type() Type { return TypeToolCallResult }

// Type is SUBAGENT_STARTED.
func (SubagentStarted) Type() Type { return TypeSubagentStarted }

// Type is SUBAGENT_FINISHED.
func (SubagentFinished) Type() Type { return TypeSubagentFinished }

// Type is SUBAGENT_ERROR.
func (SubagentError) Type() Type { return TypeSubagentError }
