// Package tool says what a tool is: definition, caller, call, result, what a
// module asks for, and the errors every layer agrees on.
//
// It does no I/O, and guests carry it: it imports next to nothing. JSON that a module or a host wrote stays json.RawMessage, so
// numbers and key order survive.
package tool

import "encoding/json"

// Spec defines one tool: what a host lists and a model reads. Its field names
// on the wire are those of an MCP tool (revision 2025-11-25, server/tools).
type Spec struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// InputSchema is a JSON Schema whose root has type object.
	InputSchema json.RawMessage `json:"inputSchema"`
	// OutputSchema, if present, describes [Result.Structured].
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *Annotations    `json:"annotations,omitempty"`
	// Aliases are other spellings of the values of parameters: by parameter, each
	// spelling with the value that it stands for. The host resolves them before it checks
	// arguments; what is published has none.
	Aliases map[string]map[string]string `json:"aliases,omitempty"`
	// Translations are its texts in other languages, by language such as ru. The host
	// publishes those of the language that an operator set; what is published has none.
	Translations map[string]Translation `json:"translations,omitempty"`
}

// Translation is all of a tool's definition that has a language. What is empty is as the
// definition says.
type Translation struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	// Parameters has the descriptions of properties of the input schema.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Annotations are hints about what a tool does to the world; nil fields are
// unsaid. They come from the module and are never trusted for a decision.
type Annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// Description is what a module says about itself when it is asked to describe,
// and what the custom section hutch.manifest holds.
type Description struct {
	Tools []Spec `json:"tools"`
	// Requests are the capabilities it asks for; nil asks for none.
	Requests Requests `json:"requests,omitempty"`
	// Version is the module's own, for people; one that is older than that of the
	// version before it waits for a decision.
	Version string `json:"version,omitempty"`
}

// Requests maps a capability's name, as in a policy file, to what is asked of
// it, as written. Asking gives nothing: only an operator grants.
type Requests map[string]json.RawMessage

// Caller is who calls. The host sets it; nothing a guest or a peer sends can.
type Caller struct {
	Principal    string // who is accountable; "local" without a token
	Agent        string // which of the principal's agents; may be empty
	Conversation string // thread the call belongs to; may be empty
	RunID        string
	CallID       string
	Face         string // how the call came in: mcp, cli, ...
	// Asks: who calls can ask a person, and makes the call of an [AskError] once more.
	Asks bool
}

// Call asks for one run of one tool.
type Call struct {
	// Name is the published name, or an alias of it.
	Name string
	// Arguments is a JSON object; empty means {}.
	Arguments json.RawMessage
	// Progress, if not nil, gets the tool's progress while the call runs. It is
	// called from one goroutine at a time and must not block.
	Progress func(Progress)
	// Approved: a person was shown these arguments and allowed this one call. Without
	// it a call that the policy has to be asked about is an [AskError]. Only what asked
	// the person sets it; nothing a guest, a model or a peer sends can.
	Approved bool
}

// Progress is how far a call has come. Total is zero if unknown.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// Result is what a tool answers. A failure of the tool itself is a result with
// IsError set: the model shall read it.
type Result struct {
	Content []Content `json:"content"`
	// Structured is the same answer as JSON, nil if there is none.
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
	Meta       json.RawMessage `json:"_meta,omitempty"`
	// Usage is what the call used up. Callers find it in Meta ([WithUsage]).
	Usage Usage `json:"-"`
}

// Content is one block of a result: text, image, audio, resource or
// resource_link, told apart by Type (MCP 2025-11-25, server/tools, tool result).
type Content struct {
	Type        string          `json:"type"`
	Text        string          `json:"text,omitempty"`
	Data        string          `json:"data,omitempty"` // base64
	MIMEType    string          `json:"mimeType,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Resource    json.RawMessage `json:"resource,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// Text returns a result of one text block.
func Text(text string) Result {
	return Result{Content: []Content{{Type: "text", Text: text}}}
}

// Failed returns a result that tells the model what went wrong.
func Failed(text string) Result {
	r := Text(text)
	r.IsError = true
	return r
}

// Candidate is a module that a source offers, before anyone looked inside.
type Candidate struct {
	// Name is the bare file name, such as text.wasm. Policy and messages use it.
	Name string
	// Source says where it was found: "shipped", or the folder as configured.
	Source string
	// Shipped marks a module that came with the binary.
	Shipped bool
	// Digest is the SHA-256 of the bytes, as 64 lower-case hex digits; empty if
	// they could not be read, and then Err says why.
	Digest string
	// Size is in bytes.
	Size int64
	Err  error
}

// Status is what can be done with a module's tools.
type Status string

// The states of a module.
const (
	// Ready: listed and callable.
	Ready Status = "ready"
	// Held: waits for an operator's decision; neither listed nor callable.
	Held Status = "held"
	// Rejected: does not load, imports something unknown, or is defined badly.
	Rejected Status = "rejected"
)

// Module identifies a mounted module to whoever decides about it.
type Module struct {
	Name     string // bare file name
	Digest   string // SHA-256, 64 lower-case hex digits
	Source   string // "shipped", or the folder as configured
	Shipped  bool
	Requests Requests
	// Definitions is the hash of what its tools say and request, as exported: 64
	// lower-case hex digits; empty if it is not known.
	Definitions string
	// Version is what the module calls itself; empty if it does not say.
	Version string
	// Prefix stands before the names of its tools as they are published.
	Prefix string
}

// Decision is what policy says about a caller and a tool. Status is Ready if
// the tool may be listed and called; else Reason says why not and what to do.
type Decision struct {
	Status Status
	Reason string
	// Told: the policy decided so about a tool that the caller may know of. A call
	// of it is refused with [ErrDenied] and the reason, instead of as unknown.
	Told bool
	// Ask: each call waits for a person. For a caller that asks the tool is ready: see
	// [AskError]. For others it is held, which is all that keeps them from it.
	Ask bool
}
