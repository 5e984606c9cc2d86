package sdk

import "github.com/hutch-run/hutch/protocol/tool"

// Result is a whole result. A tool whose output is a Result writes its content
// itself and has no output schema.
type Result = tool.Result

// Content is one block of a [Result]: text, image, audio, resource or
// resource_link, told apart by Type (MCP 2025-11-25, server/tools, tool result).
type Content = tool.Content

// Translation is what a tool says about itself in another language: see [Spec].
type Translation = tool.Translation

// Progress is how far a call has come. Total is zero if unknown.
type Progress = tool.Progress

// invocation is the input of the export call. Other members of it, such as
// _meta, are ignored.
type invocation struct {
	Params params `json:"params"`
}

type params struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"`
}
