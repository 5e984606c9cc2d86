package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
)

const (
	// maxMessageDepth leaves [rawjson.MaxDepth] to arguments.
	maxMessageDepth = rawjson.MaxDepth + 2
	maxID           = 256     // bytes of a request's id
	maxSafe         = 1 << 53 // integers up to here survive a float64
)

// A message is one JSON-RPC message that was checked. Only what routing needs
// is taken out of it.
type message struct {
	id      json.RawMessage // as written, nil for a notification
	method  string          // "" for a response
	version string          // revision that _meta names, "" if none
}

// A refusal is a message that goes no further, and what to answer. It goes out
// with the id in message if there is one, else with null.
type refusal struct {
	code int64
	text string
}

func refusef(code int64, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// envelope holds the members of a message, each as it was written.
type envelope map[string]json.RawMessage

var envelopeKeys = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// readMessage checks one message: strict JSON, no batch, no key in other case
// (encoding/json would take METHOD for method, and a filter in front of us might
// not), an id that survives, a method, and parameters of the right types. What
// is wrong with parameters go-sdk would otherwise report with all of them in the
// text.
func readMessage(raw []byte) (message, *refusal) {
	var m message
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		return m, refusef(jsonrpc.CodeInvalidRequest, "batches are not supported: send one message at a time")
	}
	if err := rawjson.Check(raw, maxMessageDepth); err != nil {
		return m, refusef(jsonrpc.CodeParseError, "%v", err)
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil || e == nil {
		return m, refusef(jsonrpc.CodeInvalidRequest, "a message is a JSON object")
	}
	if r := m.readID(e); r != nil {
		return m, r
	}
	if r := e.check(); r != nil {
		return m, r
	}
	method, ok := e["method"]
	if !ok {
		return m, e.checkResponse()
	}
	if json.Unmarshal(method, &m.method) != nil || m.method == "" {
		return m, refusef(jsonrpc.CodeInvalidRequest, "method: allowed is a text that is not empty")
	}
	return m, m.readParams(e["params"])
}

func (m *message) readID(e envelope) *refusal {
	raw, ok := e["id"]
	switch {
	case !ok:
		return nil
	case len(raw) > maxID:
		return refusef(jsonrpc.CodeInvalidRequest, "id: %d bytes, at most %d", len(raw), maxID)
	case raw[0] == '"':
	default:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil || n < -maxSafe || n > maxSafe {
			return refusef(jsonrpc.CodeInvalidRequest, "id: allowed are a text and an integer up to 2^53")
		}
	}
	m.id = raw
	return nil
}

func (e envelope) check() *refusal {
	for key := range e {
		for _, known := range envelopeKeys {
			if key != known && strings.EqualFold(key, known) {
				return refusef(jsonrpc.CodeInvalidRequest, "key %q: the key is %s", key, known)
			}
		}
	}
	if string(e["jsonrpc"]) != `"2.0"` {
		return refusef(jsonrpc.CodeInvalidRequest, `jsonrpc: allowed is "2.0"`)
	}
	if e["method"] != nil && (e["result"] != nil || e["error"] != nil) {
		return refusef(jsonrpc.CodeInvalidRequest, "a message is either a request or a response")
	}
	return nil
}

// checkResponse takes a response, though we never ask a client for anything.
func (e envelope) checkResponse() *refusal {
	if e["id"] == nil || (e["result"] == nil) == (e["error"] == nil) {
		return refusef(jsonrpc.CodeInvalidRequest, "a message has a method, or an id and either a result or an error")
	}
	if raw := e["error"]; raw != nil {
		var err *jsonrpc.Error
		if json.Unmarshal(raw, &err) != nil || err == nil {
			return refusef(jsonrpc.CodeInvalidRequest, "error: allowed is an object with code and message")
		}
	}
	return nil
}

func (m *message) readParams(params json.RawMessage) *refusal {
	method, known := served[m.method]
	notification := strings.HasPrefix(m.method, "notifications/")
	switch {
	case notification && m.id != nil:
		return refusef(jsonrpc.CodeInvalidRequest, "%s: a notification has no id", abi.Cut(m.method, maxShownName))
	case !notification && m.id == nil:
		return refusef(jsonrpc.CodeInvalidRequest, "%s: a request has an id", abi.Cut(m.method, maxShownName))
	case len(params) > 0 && string(params) != "null" && params[0] != '{':
		return refusef(jsonrpc.CodeInvalidParams, "params: allowed is an object")
	case len(params) > 0:
		if r := m.readMeta(params); r != nil {
			return r
		}
	}
	if !known {
		return refusef(jsonrpc.CodeMethodNotFound, "method not found: %s", abi.Cut(m.method, maxShownName))
	}
	if len(params) == 0 || string(params) == "null" {
		if method.needed {
			return refusef(jsonrpc.CodeInvalidParams, "params: %s needs some", m.method)
		}
		return nil
	}
	return m.fit(params, method.params())
}

// readMeta checks what go-sdk reads from _meta before anything of ours runs.
func (m *message) readMeta(params json.RawMessage) *refusal {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return refusef(jsonrpc.CodeInvalidParams, "params._meta: allowed is an object")
	}
	if raw := p.Meta[sdk.MetaKeyProtocolVersion]; raw != nil && json.Unmarshal(raw, &m.version) != nil {
		return refusef(jsonrpc.CodeInvalidParams, "params._meta: %s: allowed is a text", sdk.MetaKeyProtocolVersion)
	}
	return nil
}

// fit reports parameters of a type that the method does not take.
func (m *message) fit(params json.RawMessage, into any) *refusal {
	err := json.Unmarshal(params, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return refusef(jsonrpc.CodeInvalidParams, "params.%s: found %s", wrong.Field, wrong.Value)
	case err != nil:
		return refusef(jsonrpc.CodeInvalidParams, "params do not fit %s", m.method)
	}
	call, ok := into.(*sdk.CallToolParamsRaw)
	if ok && len(call.Arguments) > 0 && call.Arguments[0] != '{' && string(call.Arguments) != "null" {
		return refusef(jsonrpc.CodeInvalidParams, "params.arguments: allowed is an object")
	}
	return nil
}

// served holds the methods that go further: what their parameters are, and
// whether there must be any.
var served = map[string]struct {
	params func() any
	needed bool
}{
	"completion/complete":              {func() any { return new(sdk.CompleteParams) }, true},
	"initialize":                       {func() any { return new(sdk.InitializeParams) }, true},
	"logging/setLevel":                 {func() any { return new(levelParams) }, true},
	"notifications/cancelled":          {func() any { return new(sdk.CancelledParams) }, false},
	"notifications/initialized":        {func() any { return new(sdk.InitializedParams) }, false},
	"notifications/progress":           {func() any { return new(sdk.ProgressNotificationParams) }, true},
	"notifications/roots/list_changed": {func() any { return new(sdk.ParamsBase) }, false},
	"ping":                             {func() any { return new(sdk.PingParams) }, false},
	"prompts/get":                      {func() any { return new(sdk.GetPromptParams) }, true},
	"prompts/list":                     {func() any { return new(sdk.ListPromptsParams) }, false},
	"resources/list":                   {func() any { return new(sdk.ListResourcesParams) }, false},
	"resources/read":                   {func() any { return new(sdk.ReadResourceParams) }, true},
	"resources/subscribe":              {func() any { return new(sdk.SubscribeParams) }, true},
	"resources/templates/list":         {func() any { return new(sdk.ListResourceTemplatesParams) }, false},
	"resources/unsubscribe":            {func() any { return new(sdk.UnsubscribeParams) }, true},
	"server/discover":                  {func() any { return new(sdk.DiscoverParams) }, false},
	"subscriptions/listen":             {func() any { return new(sdk.SubscriptionsListenParams) }, true},
	"tools/call":                       {func() any { return new(sdk.CallToolParamsRaw) }, true},
	"tools/list":                       {func() any { return new(sdk.ListToolsParams) }, false},
}

// levelParams are those of logging/setLevel, which go-sdk has under a name that
// is deprecated.
type levelParams struct {
	sdk.ParamsBase
	Level string `json:"level"`
}

// answer returns r as a JSON-RPC message, one line without its end. An id that
// is not known is null (JSON-RPC 2.0, section 5); go-sdk would leave it out. request is
// the id of the HTTP request, if it has one.
func (r *refusal) answer(id json.RawMessage, request string) []byte {
	var out struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code int64  `json:"code"`
			Text string `json:"message"`
			Data any    `json:"data,omitempty"`
		} `json:"error"`
	}
	out.Version, out.ID = "2.0", id
	if id == nil {
		out.ID = json.RawMessage("null")
	}
	out.Error.Code, out.Error.Text = r.code, abi.Cut(r.text, maxErrorText)
	if request != "" {
		out.Error.Data = requestData{abi.Cut(request, maxID)}
	}
	b, err := json.Marshal(out)
	if err != nil { // the id was checked and texts always marshal
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	return b
}
