// Package abi says what crosses the sandbox wall, and under which limits:
// operations, requests, responses, failures, and text as [OneLine] leaves it.
//
// Two kinds of traffic cross it. A host sends an [Invocation] in and gets a
// result or a [*Failure] back. While it runs, a guest asks for gated
// operations: a [Request] goes out, a [Response] comes back. Neither carries
// an identity: who is calling is known on the host's side only.
package abi

import (
	"context"
	"encoding/json"
)

// Op names a gated operation. It is the name of the function that a guest
// imports from the module hutch:host.
type Op string

// The gated operations (requirements, section 6.2). Each takes a pointer and a
// length of JSON in the guest's memory and returns an i64: the length of the
// result, or a negative [Code]. Either way the bytes are read with result_read.
const (
	OpHTTP         Op = "http_request"
	OpKVGet        Op = "kv_get"
	OpKVSet        Op = "kv_set"
	OpKVDelete     Op = "kv_delete"
	OpTracker      Op = "tracker_request"
	OpConversation Op = "conversation_send"
	OpMCP          Op = "mcp_call"
	OpA2A          Op = "a2a_send"
	OpTool         Op = "tool_call"
)

// OpConfig is config_get where a host answers it itself, see [Invocation].AskConfig:
// a key goes in as a JSON string, a JSON string or null comes out. It needs no grant.
const OpConfig Op = "config_get"

// Capability returns the kind of grant that op needs, as it is written in a
// policy file, or "" if op is no gated operation.
func (op Op) Capability() string { return capabilityOf[op] }

var capabilityOf = map[Op]string{
	OpHTTP:         "http",
	OpKVGet:        "kv",
	OpKVSet:        "kv",
	OpKVDelete:     "kv",
	OpTracker:      "tracker",
	OpConversation: "conversation",
	OpMCP:          "bridge",
	OpA2A:          "bridge",
	OpTool:         "tool",
}

// Code is the outcome of a gated operation. Guests see -Code as the result of
// the import, so the numbers are part of the ABI and never change.
type Code int32

// What an operation can come to.
const (
	OK          Code = 0
	Denied      Code = 1 // not requested, not granted, or refused by a person
	Invalid     Code = 2 // the request itself is wrong
	Limit       Code = 3 // a size, rate or budget is used up
	Unavailable Code = 4 // the service behind the operation cannot answer now
	Cancelled   Code = 5 // the call that asked has ended
)

var codeNames = [...]string{"ok", "denied", "invalid", "limit", "unavailable", "cancelled"}

// String returns the lower-case name that error bodies carry.
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return "unknown"
	}
	return codeNames[c]
}

// Request is one gated operation that a guest asks for.
type Request struct {
	// CallID is the call during which the guest asks. It is unique among the
	// calls alive in one sandbox and carries no authority: the host answers
	// only for calls it started itself.
	CallID uint64
	Op     Op
	// Body is JSON in the shape that Op defines, copied out of the guest.
	Body []byte
}

// Response answers a [Request]. Body is JSON: the result if Code is OK, else
// {"error":{"code":"denied","message":"..."}}.
type Response struct {
	Code Code
	Body []byte
}

// Refuse returns a response that a guest can read and an agent can explain.
func Refuse(code Code, message string) Response {
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	body.Error.Code, body.Error.Message = code.String(), message
	b, err := json.Marshal(body)
	if err != nil { // strings always marshal; a panic here would be in the host
		b = []byte(`{"error":{"code":"unavailable"}}`)
	}
	return Response{Code: code, Body: b}
}

// Host serves gated operations. It must not panic, must honour its context and
// may be called from several goroutines.
type Host func(context.Context, Request) Response

// LogLevel orders a guest's log lines; the numbers are those of the import
// hutch:host log.
type LogLevel int32

// Levels of a log line.
const (
	Trace LogLevel = iota
	Debug
	Info
	Warn
	Error
)

// Invocation is one call of one tool, as the sandbox sees it.
type Invocation struct {
	// Tool is the name that the module itself gave the tool.
	Tool string
	// Arguments is a JSON object, already validated against the tool's schema.
	Arguments json.RawMessage
	// Config holds the values that a guest reads with config_get.
	Config map[string]string
	// AskConfig has Host answer config_get, as [OpConfig], and not Config: for who
	// wants to know which keys are read.
	AskConfig bool
	// Line says with whom the call waits if it has to: calls of one line are
	// served in order, and lines take turns. It is not told to the guest.
	Line string
	// Limits bound this call; zero fields mean the defaults.
	Limits Limits
	// Host serves gated operations; nil refuses all of them.
	Host Host
	// Log takes the guest's log lines, cut and counted already; nil drops them.
	// It is called from one goroutine at a time and must not block.
	Log func(LogLevel, string)
	// Progress takes {"progress":n,"total"?:n,"message"?:s} as the guest wrote
	// it; nil drops it. It is called from one goroutine at a time and must not
	// block.
	Progress func(json.RawMessage)
}

// Usage is what one call consumed.
type Usage struct {
	// LogLines counts the lines written, those dropped over the limit included.
	LogLines int `json:"logLines,omitempty"`
	// HostCalls counts the gated operations asked for.
	HostCalls int `json:"hostCalls,omitempty"`
	// Fuel is what the guest burned of [Limits.Fuel].
	Fuel int64 `json:"fuel,omitempty"`
	// Anew is why the module was started anew, and nothing of its start kept; empty if
	// the call began in a state that was kept, or asked for the other ([Limits.Fresh]).
	Anew string `json:"anew,omitempty"`
}
