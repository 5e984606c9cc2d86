//go:build wasip1

// Command pdk-echo shows that a servlet written for mcp.run or hyper-mcp v1,
// with extism/go-pdk, runs in hutch as it is: nothing here knows hutch.
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	pdk "github.com/extism/go-pdk"
)

// Call answers one tools/call.
func Call(input CallToolRequest) (CallToolResult, error) {
	if input.Params.Name != "pdk_echo" {
		return CallToolResult{}, fmt.Errorf("unknown tool %q", input.Params.Name)
	}
	var args struct {
		Text  string `json:"text"`
		Times int    `json:"times"`
	}
	if err := json.Unmarshal(input.Params.Arguments, &args); err != nil {
		return failure("arguments: " + err.Error()), nil
	}
	if args.Times < 0 || args.Times > 1000 {
		return failure(fmt.Sprintf("times is %d, must be 0 to 1000", args.Times)), nil
	}
	pdk.Log(pdk.LogInfo, "echo of "+fmt.Sprint(len(args.Text))+" bytes")
	prefix, _ := pdk.GetConfig("prefix")
	return CallToolResult{Content: []Content{{Type: "text", Text: prefix + strings.Repeat(args.Text, max(args.Times, 1))}}}, nil
}

// Describe lists the tools.
func Describe() (ListToolsResult, error) {
	return ListToolsResult{Tools: []ToolDescription{{
		Name:        "pdk_echo",
		Description: "Repeats a text. Use it to try a module in the mcp.run format.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"text":{"type":"string","description":"What to repeat."},` +
			`"times":{"type":"integer","description":"How often; once if left out.","minimum":0,"maximum":1000}},` +
			`"required":["text"]}`),
	}}}, nil
}

func failure(text string) CallToolResult {
	return CallToolResult{Content: []Content{{Type: "text", Text: text}}, IsError: true}
}

func main() {}
