package sdk

import "encoding/json"

// The types in this file are those of protocol/tool, as a guest writes them. A
// guest does not import that package: the lint that a host needs beside them would
// make every module 0.7 MB larger. A test holds both equal.

// Result is a whole result. A tool whose output is a Result writes its content
// itself and has no output schema.
type Result struct {
	Content []Content `json:"content"`
	// Structured is the same answer as JSON, or nil.
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	// IsError tells the model that the content says what went wrong.
	IsError bool            `json:"isError,omitempty"`
	Meta    json.RawMessage `json:"_meta,omitempty"`
}

// Content is one block of a [Result]: text, image, audio, resource or
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

// Requests are the capabilities that a module asks for, by name, each as in a
// policy file, as JSON, with a "reason" in each entry. Asking gives nothing:
// only an operator grants.
type Requests map[string]json.RawMessage

// Progress is how far a call has come. Total is zero if unknown.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total,omitempty"`
	Message  string  `json:"message,omitempty"`
}

// description is what the export describe writes.
type description struct {
	Tools    []definition `json:"tools"`
	Requests Requests     `json:"requests,omitempty"`
	Version  string       `json:"version,omitempty"`
}

type definition struct {
	Name         string      `json:"name"`
	Title        string      `json:"title,omitempty"`
	Description  string      `json:"description"`
	InputSchema  *schema     `json:"inputSchema"`
	OutputSchema *schema     `json:"outputSchema,omitempty"`
	Annotations  annotations `json:"annotations"`
}

// annotations say all four hints, since a host takes a missing one for the worst.
type annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// invocation is the input of the export call. Other members of it, such as
// _meta, are ignored.
type invocation struct {
	Params params `json:"params"`
}

type params struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}
