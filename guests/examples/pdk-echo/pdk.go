//go:build wasip1

package main

import (
	"encoding/json"

	pdk "github.com/extism/go-pdk"
)

// What follows is what the mcp.run bindings generate for every servlet: the two
// exports, and the types that cross them.

// CallToolRequest is the input of call.
type CallToolRequest struct {
	Method *string `json:"method,omitempty"`
	Params Params  `json:"params"`
}

// Params names the tool and carries its arguments.
type Params struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// CallToolResult is the output of call.
type CallToolResult struct {
	Content []Content `json:"content"`
	IsError bool      `json:"isError,omitempty"`
}

// Content is one block of a result.
type Content struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Data     string `json:"data,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
}

// ListToolsResult is the output of describe.
type ListToolsResult struct {
	Tools []ToolDescription `json:"tools"`
}

// ToolDescription is one tool of it.
type ToolDescription struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// ExportCall is the export that runs a tool.
//
//go:wasmexport call
func ExportCall() int32 {
	var input CallToolRequest
	if err := pdk.InputJSON(&input); err != nil {
		return report(err)
	}
	output, err := Call(input)
	if err != nil {
		return report(err)
	}
	return report(pdk.OutputJSON(output))
}

// ExportDescribe is the export that lists the tools.
//
//go:wasmexport describe
func ExportDescribe() int32 {
	output, err := Describe()
	if err != nil {
		return report(err)
	}
	return report(pdk.OutputJSON(output))
}

// report makes err the error that the host sees.
func report(err error) int32 {
	if err == nil {
		return 0
	}
	pdk.SetError(err)
	return -1
}
