package agui

import (
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/event"
)

// Capabilities say what an agent can do (specification, "Capabilities"). A group that
// is nil is not said.
type Capabilities struct {
	Identity *Identity `json:"identity,omitempty"`
	// Transport is the server's to say.
	Transport      *Transport                 `json:"transport,omitempty"`
	Tools          *Tools                     `json:"tools,omitempty"`
	Output         *Output                    `json:"output,omitempty"`
	State          *State                     `json:"state,omitempty"`
	MultiAgent     *MultiAgent                `json:"multiAgent,omitempty"`
	Reasoning      *Reasoning                 `json:"reasoning,omitempty"`
	Multimodal     *Multimodal                `json:"multimodal,omitempty"`
	Execution      *Execution                 `json:"execution,omitempty"`
	HumanInTheLoop *HumanInTheLoop            `json:"humanInTheLoop,omitempty"`
	Custom         map[string]json.RawMessage `json:"custom,omitempty"`
}

// Identity is who an agent is.
type Identity struct {
	Name             string          `json:"name,omitempty"`
	Type             string          `json:"type,omitempty"`
	Description      string          `json:"description,omitempty"`
	Version          string          `json:"version,omitempty"`
	Provider         string          `json:"provider,omitempty"`
	DocumentationURL string          `json:"documentationUrl,omitempty"`
	Metadata         json.RawMessage `json:"metadata,omitempty"`
}

// Transport is how an agent is reached.
type Transport struct {
	Streaming         bool `json:"streaming"`
	WebSocket         bool `json:"websocket"`
	HTTPBinary        bool `json:"httpBinary"`
	PushNotifications bool `json:"pushNotifications"`
	// Resumable: a stream goes on behind a number of an event. Ours are played from their
	// beginning instead, which [Reattach] says.
	Resumable bool `json:"resumable"`
}

// Reattach is the member of [Capabilities].Custom that says whether who lost the stream of a
// run can have it again, from its beginning, at /threads/{id}/events.
const Reattach = "reattach"

// Tools are what an agent may call.
type Tools struct {
	Supported      bool         `json:"supported"`
	Items          []event.Tool `json:"items,omitempty"`
	ParallelCalls  bool         `json:"parallelCalls"`
	ClientProvided bool         `json:"clientProvided"`
}

// Output is what an agent answers in.
type Output struct {
	StructuredOutput   bool     `json:"structuredOutput"`
	SupportedMimeTypes []string `json:"supportedMimeTypes,omitempty"`
}

// State is how an agent shares state.
type State struct {
	Snapshots       bool `json:"snapshots"`
	Deltas          bool `json:"deltas"`
	Memory          bool `json:"memory"`
	PersistentState bool `json:"persistentState"`
}

// MultiAgent is how an agent works with others.
type MultiAgent struct {
	Supported  bool       `json:"supported"`
	Delegation bool       `json:"delegation"`
	Handoffs   bool       `json:"handoffs"`
	Subagents  []Subagent `json:"subagents,omitempty"`
}

// Subagent is one that an agent may ask.
type Subagent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Reasoning is what an agent shows of what it thinks.
type Reasoning struct {
	Supported bool `json:"supported"`
	Streaming bool `json:"streaming"`
	Encrypted bool `json:"encrypted"`
}

// Multimodal is what besides text goes in and comes out.
type Multimodal struct {
	Input  MediaInput  `json:"input"`
	Output MediaOutput `json:"output"`
}

// MediaInput is what a message may hold.
type MediaInput struct {
	Image bool `json:"image"`
	Audio bool `json:"audio"`
	Video bool `json:"video"`
	PDF   bool `json:"pdf"`
	File  bool `json:"file"`
}

// MediaOutput is what an answer may hold.
type MediaOutput struct {
	Image bool `json:"image"`
	Audio bool `json:"audio"`
}

// Execution is how an agent runs.
type Execution struct {
	CodeExecution bool `json:"codeExecution"`
	Sandboxed     bool `json:"sandboxed"`
	MaxIterations int  `json:"maxIterations,omitempty"`
	// MaxExecutionTime is in milliseconds.
	MaxExecutionTime int64 `json:"maxExecutionTime,omitempty"`
}

// HumanInTheLoop is how people take part.
type HumanInTheLoop struct {
	Supported        bool `json:"supported"`
	Approvals        bool `json:"approvals"`
	Interventions    bool `json:"interventions"`
	Feedback         bool `json:"feedback"`
	Interrupts       bool `json:"interrupts"`
	ApproveWithEdits bool `json:"approveWithEdits"`
}
