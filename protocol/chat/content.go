package chat

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Content is what a message says: a text, or parts. The zero value is none.
type Content struct {
	text  *string
	parts []Part
}

// Text is content that is a text.
func Text(s string) Content { return Content{text: &s} }

// Parts is content that has several parts, which it keeps.
func Parts(parts ...Part) Content { return Content{parts: parts} }

// Part is one part of a message.
type Part struct {
	Type     string          `json:"type"` // text, image, audio, video or document
	Text     string          `json:"text,omitempty"`
	Source   *Source         `json:"source,omitempty"` // of all but text
	ID       string          `json:"id,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// PartText is the type of a part that is a text.
const PartText = "text"

// Source is where the bytes of a part are.
type Source struct {
	Type     string `json:"type"`  // data (base64), url or file (an opaque handle)
	Value    string `json:"value"` // never followed by us
	Provider string `json:"provider,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

// IsZero reports whether there is no content, which an empty text is not.
func (c Content) IsZero() bool { return c.text == nil && c.parts == nil }

// IsText reports whether it is a text and not parts.
func (c Content) IsText() bool { return c.text != nil }

// Parts returns the parts; a text is one part. The slice is the content's own.
func (c Content) Parts() []Part {
	if c.text != nil {
		return []Part{{Type: PartText, Text: *c.text}}
	}
	return c.parts
}

// String is all text in it, one line for each part.
func (c Content) String() string {
	if c.text != nil {
		return *c.text
	}
	var texts []string
	for _, p := range c.parts {
		if p.Type == PartText {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// MarshalJSON writes a string, or a list of parts.
func (c Content) MarshalJSON() ([]byte, error) {
	switch {
	case c.text != nil:
		return json.Marshal(*c.text)
	case c.parts == nil:
		return []byte("null"), nil
	}
	return json.Marshal(c.parts)
}

// UnmarshalJSON reads a string, a list of parts, or null.
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = Content{}
	switch b = bytes.TrimSpace(b); {
	case bytes.Equal(b, []byte("null")):
		return nil
	case len(b) > 0 && b[0] == '"':
		c.text = new(string)
		return json.Unmarshal(b, c.text)
	}
	return json.Unmarshal(b, &c.parts)
}
