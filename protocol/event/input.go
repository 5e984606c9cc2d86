package event

import (
	"encoding/json"
	"reflect"

	"github.com/hutch-run/hutch/protocol/chat"
)

// Input asks for a run (specification, "RunAgentInput").
type Input struct {
	ThreadID string `json:"threadId" is:"id"`
	RunID    string `json:"runId" is:"id"`
	// ProtocolVersion is empty for clients of the 0.x generation.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
	ParentRunID     string `json:"parentRunId,omitempty"`
	// State is any JSON; nil is none.
	State    json.RawMessage `json:"state,omitempty"`
	Messages []chat.Message  `json:"messages" is:"required"`
	// Tools run in the client.
	Tools []Tool `json:"tools,omitempty"`
	// Context is for the model to see.
	Context []Context `json:"context,omitempty"`
	// ForwardedProps is any JSON; nil is none.
	ForwardedProps json.RawMessage `json:"forwardedProps,omitempty"`
	// Resume answers interrupts of earlier runs.
	Resume []Resume `json:"resume,omitempty"`
}

// Tool is one that runs in the client.
type Tool struct {
	Name        string `json:"name" is:"id"`
	Description string `json:"description" is:"required"`
	// Parameters is a JSON Schema; nil is an object of any kind.
	Parameters json.RawMessage `json:"parameters,omitempty" is:"object"`
	Metadata   json.RawMessage `json:"metadata,omitempty" is:"object"`
}

// Context is what surrounds a person who talks to an agent.
type Context struct {
	Description string `json:"description" is:"required"`
	Value       string `json:"value" is:"required"`
}

// The ways to answer an interrupt.
const (
	ResumeResolved  = "resolved"  // the payload says how
	ResumeCancelled = "cancelled" // the person does not want it
)

// Resume answers one interrupt.
type Resume struct {
	InterruptID string          `json:"interruptId" is:"id"`
	Status      string          `json:"status" is:"required,one=resolved|cancelled"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty" is:"object"`
}

// DecodeInput reads an input. It takes what clients of both generations send: members
// that it does not know are dropped, a null stands for a member that was left out,
// parts of the retired type binary become those of today, and messages about activity
// are left out. Anything else is a [FieldError], as is an array of more than most
// elements; 0 is any number.
func DecodeInput(raw []byte, most int) (Input, error) {
	r := reader{lenient: true, most: most}
	members, fault := r.members("", raw)
	if fault != nil {
		return Input{}, fault
	}
	for _, id := range []struct{ name, snake string }{{"threadId", "thread_id"}, {"runId", "run_id"}} {
		if members[id.name] == nil && members[id.snake] != nil {
			return Input{}, &FieldError{Field: id.name, Found: "only " + id.snake, Allowed: "a string under the name " + id.name}
		}
	}
	var in Input
	if fault := r.fields("", members, reflect.ValueOf(&in).Elem()); fault != nil {
		return Input{}, fault
	}
	return in, nil
}
