package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// A callResult is the result of tools/call, with the tool's JSON as it was
// written (revision 2026-07-28, server/tools; resultType is not sent to older
// clients).
type callResult struct {
	sdk.ResultBase
	ResultType string          `json:"resultType,omitempty"`
	Content    []any           `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// checkResult reports raw JSON in r that could not be sent.
func checkResult(r tool.Result) error {
	raws := []json.RawMessage{r.Structured, r.Meta}
	for _, c := range r.Content {
		raws = append(raws, c.Resource, c.Annotations, c.Meta)
	}
	for _, raw := range raws {
		if len(raw) == 0 {
			continue
		}
		if err := rawjson.Check(raw, rawjson.MaxDepth); err != nil {
			return fmt.Errorf("%w: its result holds what is no JSON: %w", tool.ErrFailed, err)
		}
	}
	return nil
}

// newResult returns r as a client of that era takes it. What a host would
// reject the whole result for is replaced by a text that says so.
func newResult(r tool.Result, modern bool) *callResult {
	out := &callResult{Content: []any{}, IsError: r.IsError}
	out.Meta = publicMeta(r.Meta)
	if modern {
		out.ResultType = "complete"
	}
	text := false
	for _, c := range r.Content {
		text = text || c.Type == "text"
		out.Content = append(out.Content, block(c))
	}
	// Clients check structuredContent against the schema even on errors.
	if len(r.Structured) > 0 && !r.IsError {
		if out.Structured = r.Structured; !modern && !isObject(r.Structured) {
			out.Structured = wrapped(r.Structured)
		}
		if !text {
			out.Content = append(out.Content, textBlock{"text", string(r.Structured), nil, nil})
		}
	}
	return out
}

// wrapped is a value that is no object as older clients take it. See [wrappedSchema].
func wrapped(value json.RawMessage) json.RawMessage {
	return slices.Concat([]byte(`{"result":`), value, []byte("}"))
}

// publicMeta returns _meta without what only a server may say: keys under a
// prefix that MCP keeps to itself.
func publicMeta(raw json.RawMessage) sdk.Meta {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	var meta sdk.Meta
	for key, value := range all {
		if reservedKey(key) {
			continue
		}
		if meta == nil {
			meta = sdk.Meta{}
		}
		meta[key] = value
	}
	return meta
}

// reservedKey follows revision 2025-11-25, basic, _meta: a prefix whose labels
// hold modelcontextprotocol or mcp before another label or at the end.
func reservedKey(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return key == "progressToken"
	}
	for _, label := range strings.Split(prefix, ".") {
		if label == "modelcontextprotocol" || label == "mcp" {
			return true
		}
	}
	return false
}

func isObject(raw json.RawMessage) bool {
	trimmed := strings.TrimLeft(string(raw[:min(len(raw), 64)]), " \t\r\n")
	return strings.HasPrefix(trimmed, "{")
}

// The blocks of a result, with the fields that each must have even when empty.
type (
	textBlock struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}
	dataBlock struct {
		Type        string          `json:"type"`
		Data        string          `json:"data"`
		MIMEType    string          `json:"mimeType"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}
	resourceBlock struct {
		Type        string          `json:"type"`
		Resource    json.RawMessage `json:"resource"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}
)

func block(c tool.Content) any {
	annotations, meta := object(c.Annotations), object(c.Meta)
	switch c.Type {
	case "text":
		return textBlock{c.Type, c.Text, annotations, meta}
	case "image", "audio":
		if _, err := base64.StdEncoding.DecodeString(c.Data); err == nil && c.MIMEType != "" {
			return dataBlock{c.Type, c.Data, c.MIMEType, annotations, meta}
		}
	case "resource":
		if validResource(c.Resource) {
			return resourceBlock{c.Type, c.Resource, annotations, meta}
		}
	case "resource_link":
		if c.URI != "" && c.Name != "" {
			c.Annotations, c.Meta = annotations, meta
			return c
		}
	}
	return textBlock{"text", fmt.Sprintf("[a block of type %q that is not as MCP wants it was left out]", abi.Cut(c.Type, 32)), nil, nil}
}

// object returns raw if it is a JSON object, as annotations and _meta must be.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) > 0 && isObject(raw) {
		return raw
	}
	return nil
}

func validResource(raw json.RawMessage) bool {
	var r struct {
		URI  *string `json:"uri"`
		Text *string `json:"text"`
		Blob *[]byte `json:"blob"`
	}
	err := json.Unmarshal(raw, &r)
	return err == nil && r.URI != nil && (r.Text != nil) != (r.Blob != nil)
}
