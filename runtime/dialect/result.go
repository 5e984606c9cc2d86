package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/hutch-run/hutch/protocol/tool"
)

// ParseResult reads what [Guest.Call] returned. The error is one line that
// names the block and what is wrong with it.
//
// Either dialect writes an MCP tool result (revision 2025-11-25, server/tools).
// The native one is strict: each block has one of the five types and what that
// type needs, and base64 is base64. Content may be left out beside
// structuredContent. A v1 module writes flat blocks (Content of mcp.run and
// hyper-mcp v1): null is as good as absent, and a resource block without a
// resource becomes one if it has a uri and something in it, else text.
func ParseResult(k Kind, raw []byte) (tool.Result, error) {
	r, err := parseResult(k, raw)
	if err != nil {
		return tool.Result{}, fmt.Errorf("result: %w", err)
	}
	return r, nil
}

func parseResult(k Kind, raw []byte) (r tool.Result, err error) {
	// How large a result may be was settled where it was taken.
	if err := checkJSON(raw, math.MaxInt); err != nil {
		return r, err
	}
	f := objectFields(raw, "it", !k.strict(), &err)
	if failed := f.flag("isError"); failed != nil {
		r.IsError = *failed
	}
	r.Structured = present(f.get("structuredContent", ""))
	r.Meta = f.get("_meta", "object")
	blocks := f.list("content")
	if k.strict() && r.Structured == nil {
		f.need("content", "array")
	}
	r.Content = make([]tool.Content, 0, len(blocks))
	for i, b := range blocks {
		block := fields{}
		if block = objectFields(b, fmt.Sprintf("content %d", i+1), !k.strict(), &err); err != nil {
			return r, err
		}
		r.Content = append(r.Content, parseContent(k, &block))
	}
	return r, err
}

// present returns nil for null.
func present(raw json.RawMessage) json.RawMessage {
	if raw == nil || kindOfJSON(raw) == "null" {
		return nil
	}
	return raw
}

// parseContent reads one block, by its type.
func parseContent(k Kind, f *fields) tool.Content {
	c := tool.Content{Type: f.needText("type"), Annotations: f.get("annotations", "object"), Meta: f.get("_meta", "object")}
	switch c.Type {
	case "text":
		c.Text = decoded[string](f, "text", f.need("text", "string"))
	case "image", "audio":
		f.needText("data")
		c.Data, c.MIMEType = f.base64("data"), f.needText("mimeType")
	case "resource":
		parseResource(k, f, &c)
	case "resource_link":
		parseLink(f, &c)
	default:
		f.fail("%s: type is %q, want text, image, audio, resource or resource_link", f.where, shown(c.Type))
	}
	return c
}

func parseLink(f *fields, c *tool.Content) {
	c.URI, c.Name = f.needText("uri"), f.needText("name")
	c.Title, c.Description, c.MIMEType = f.text("title"), f.text("description"), f.text("mimeType")
	if raw := f.get("size", "number"); raw != nil {
		size := decoded[int64](f, "size", raw)
		c.Size = &size
	}
}

func parseResource(k Kind, f *fields, c *tool.Content) {
	if raw := f.get("resource", "object"); raw != nil {
		inner := objectFields(raw, f.where+": resource", !k.strict(), f.err)
		inner.needText("uri")
		inner.text("mimeType")
		if inner.base64("blob"); inner.get("text", "string") == nil && inner.get("blob", "string") == nil {
			inner.fail("%s: neither text nor blob", inner.where)
		}
		c.Resource = raw
		return
	}
	if k.strict() {
		f.fail("%s: resource is missing", f.where)
		return
	}
	flatResource(f, c)
}

// flatResource makes of a v1 block what its members allow.
func flatResource(f *fields, c *tool.Content) {
	var resource struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType,omitempty"`
		Text     string `json:"text,omitempty"`
		Blob     string `json:"blob,omitempty"`
	}
	resource.URI, resource.MIMEType, resource.Text = f.text("uri"), f.text("mimeType"), f.text("text")
	for _, name := range []string{"blob", "data"} {
		if resource.Blob == "" {
			resource.Blob = f.base64(name)
		}
	}
	if *f.err != nil {
		return
	}
	if resource.URI == "" || resource.Text == "" && resource.Blob == "" {
		c.Type, c.Text = "text", firstOf(resource.Text, resource.Blob, resource.URI)
		return
	}
	if resource.Text != "" {
		resource.Blob = "" // a resource has one of the two
	}
	raw, err := json.Marshal(resource)
	if err != nil {
		f.fail("%s: %v", f.where, err)
	}
	c.Resource = raw
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// base64 returns a member as it is, "" if it is absent, after a look at whether
// it is standard base64 with padding.
func (f *fields) base64(name string) string {
	s := f.text(name)
	// The decoder skips line breaks; in JSON they have no business here.
	if strings.ContainsAny(s, "\r\n") {
		f.fail("%s: %s is not base64", f.where, name)
	}
	if _, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(s))); err != nil {
		f.fail("%s: %s is not base64", f.where, name)
	}
	return s
}
