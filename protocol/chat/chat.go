// Package chat says what stands in a conversation: messages, roles, and tool calls
// as a model wrote them.
//
// It does no I/O. On the wire and in the store its messages have the shape of AG-UI
// 1.0 (specification, "Messages"), so that an id, once streamed, is the stored one.
package chat

import (
	"encoding/json"
	"strings"
)

// Role says who speaks.
type Role string

// The roles of a conversation that is kept.
const (
	Developer Role = "developer" // instructions, from whoever runs the agent
	System    Role = "system"    // the same, of an older kind
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool" // what a tool answered
	Reasoning Role = "reasoning"
)

// Message is one entry of a conversation. Which fields count depends on the role.
type Message struct {
	ID   string `json:"id"`
	Role Role   `json:"role"`
	// Name is who speaks, if there are several of a role; never of a tool.
	Name    string  `json:"name,omitempty"`
	Content Content `json:"content,omitzero"`
	// ToolCalls are what an assistant wants called.
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// ToolCallID is the call that a tool answers.
	ToolCallID string `json:"toolCallId,omitempty"`
	// Error is why a tool that runs in the client gave no answer.
	Error string `json:"error,omitempty"`
	// EncryptedValue is reasoning that only its provider can read.
	EncryptedValue string          `json:"encryptedValue,omitempty"`
	Metadata       json.RawMessage `json:"metadata,omitempty"`
	// Incomplete: the run ended while the message was written.
	Incomplete bool `json:"incomplete,omitempty"`
}

// ToolCall is one call that a model asks for.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // always "function"
	Function FunctionCall `json:"function"`
	// EncryptedValue is reasoning about the call that only its provider can read.
	EncryptedValue string          `json:"encryptedValue,omitempty"`
	Metadata       json.RawMessage `json:"metadata,omitempty"`
}

// FunctionCall is what is called. Arguments is the text that the model wrote, which
// ought to be a JSON object and need not be one.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Function is a tool as a model is told of it.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema
}

// ResultID is the id of what a tool answered to a call in the message parent: it follows
// from the two, so that who streams a result and who keeps it call it the same
// (requirement C-33).
func ResultID(parent, call string) string { return parent + ":" + call + resultMark }

const resultMark = ":result"

// MayHaveID reports whether a message that somebody else names has an id which no result
// of another call will get: see [ResultID].
func (m Message) MayHaveID() bool {
	return !strings.HasSuffix(m.ID, resultMark) || m.Role == Tool && strings.HasSuffix(m.ID, ":"+m.ToolCallID+resultMark)
}
