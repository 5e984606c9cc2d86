package event

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
)

// wireMessage is a message of any role, as AG-UI writes it.
type wireMessage struct {
	ID             string          `json:"id" is:"id"`
	Role           chat.Role       `json:"role" is:"required,one=developer|system|assistant|user|tool|reasoning|activity"`
	Name           string          `json:"name"`
	Content        json.RawMessage `json:"content"`
	ToolCalls      []wireCall      `json:"toolCalls"`
	ToolCallID     string          `json:"toolCallId"`
	Error          string          `json:"error"`
	EncryptedValue string          `json:"encryptedValue"`
	Metadata       json.RawMessage `json:"metadata" is:"object"`
}

// activity is the role of a message that stands only in a client, about what goes on
// there besides the conversation.
const activity chat.Role = "activity"

type wireCall struct {
	ID             string          `json:"id" is:"id"`
	Type           string          `json:"type" is:"required,one=function"`
	Function       wireFunction    `json:"function" is:"required"`
	EncryptedValue string          `json:"encryptedValue"`
	Metadata       json.RawMessage `json:"metadata" is:"object"`
}

type wireFunction struct {
	Name      string `json:"name" is:"id"`
	Arguments string `json:"arguments" is:"required"`
}

// wirePart is a part of any type. The last five members are of the type binary, which
// AG-UI has retired.
type wirePart struct {
	Type     string          `json:"type" is:"required,one=text|image|audio|video|document|binary"`
	Text     *string         `json:"text"`
	Source   *wireSource     `json:"source"`
	ID       string          `json:"id"`
	Metadata json.RawMessage `json:"metadata"`
	MimeType string          `json:"mimeType"`
	Data     string          `json:"data"`
	URL      string          `json:"url"`
	Filename string          `json:"filename"`
}

type wireSource struct {
	Type     string `json:"type" is:"required,one=data|url|file"`
	Value    string `json:"value" is:"required"`
	Provider string `json:"provider"`
	MimeType string `json:"mimeType"`
}

// messages reads a conversation. Activity is left out: it is no part of one.
func (r reader) messages(path string, raw json.RawMessage) ([]chat.Message, *FieldError) {
	out := []chat.Message{}
	return out, r.each(path, raw, func(path string, raw json.RawMessage) *FieldError {
		var w wireMessage
		if fault := r.value(path, raw, reflect.ValueOf(&w).Elem(), rule{required: true}); fault != nil || w.Role == activity {
			return fault
		}
		m, fault := r.message(path, w)
		out = append(out, m)
		return fault
	})
}

func (r reader) message(path string, w wireMessage) (chat.Message, *FieldError) {
	m := chat.Message{ID: w.ID, Role: w.Role, EncryptedValue: w.EncryptedValue, Metadata: w.Metadata}
	if w.Role != chat.Tool && w.Role != chat.Reasoning {
		m.Name = w.Name
	}
	if w.Content == nil && w.Role != chat.Assistant {
		return m, &FieldError{Field: join(path, "content"), Found: nothing, Allowed: kindOf(reflect.TypeFor[chat.Content](), rule{})}
	}
	if w.Content != nil {
		var fault *FieldError
		if m.Content, fault = r.content(join(path, "content"), w.Content, takesParts(w.Role)); fault != nil {
			return m, fault
		}
	}
	switch w.Role {
	case chat.Assistant:
		for _, c := range w.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, chat.ToolCall{ID: c.ID, Type: c.Type, Function: chat.FunctionCall(c.Function), EncryptedValue: c.EncryptedValue, Metadata: c.Metadata})
		}
	case chat.Tool:
		m.ToolCallID, m.Error = w.ToolCallID, w.Error
	}
	return m, messageFault(path, m)
}

// takesParts reports whether AG-UI lets a message of that role have parts.
func takesParts(role chat.Role) bool { return role == chat.User || role == chat.Tool }

func (r reader) content(path string, raw json.RawMessage, parts bool) (chat.Content, *FieldError) {
	var text string
	switch {
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		return chat.Text(text), nil
	case !parts || raw[0] != '[':
		allowed := "a string"
		if parts {
			allowed += ", or an array of parts"
		}
		return chat.Content{}, &FieldError{Field: path, Found: what(raw), Allowed: allowed}
	}
	out := []chat.Part{}
	fault := r.each(path, raw, func(path string, raw json.RawMessage) *FieldError {
		var w wirePart
		if fault := r.value(path, raw, reflect.ValueOf(&w).Elem(), rule{required: true}); fault != nil {
			return fault
		}
		p, fault := w.part(path)
		out = append(out, p)
		return fault
	})
	return chat.Parts(out...), fault
}

func (w wirePart) part(path string) (chat.Part, *FieldError) {
	if w.Type == "binary" {
		return w.binary(path)
	}
	p := chat.Part{Type: w.Type, ID: w.ID, Metadata: w.Metadata}
	if w.Type == chat.PartText {
		if w.Text == nil {
			return p, &FieldError{Field: join(path, "text"), Found: nothing, Allowed: "a string"}
		}
		p.Text = *w.Text
		return p, nil
	}
	if w.Source != nil {
		p.Source = &chat.Source{Type: w.Source.Type, Value: w.Source.Value, MimeType: w.Source.MimeType}
		if w.Source.Type == "file" {
			p.Source.Provider = w.Source.Provider
		}
	}
	return p, partFault(path, p)
}

// binary is the part of a 0.x client: its type is told by what it holds.
func (w wirePart) binary(path string) (chat.Part, *FieldError) {
	p := chat.Part{Type: "document", Metadata: w.Metadata, Source: &chat.Source{MimeType: w.MimeType}}
	if kind, _, ok := strings.Cut(w.MimeType, "/"); ok && slices.Contains([]string{"image", "audio", "video"}, kind) {
		p.Type = kind
	}
	switch {
	case w.MimeType == "":
		return p, &FieldError{Field: join(path, "mimeType"), Found: nothing, Allowed: "a media type"}
	case w.Data != "":
		p.Source.Type, p.Source.Value = "data", w.Data
	case w.URL != "":
		p.Source.Type, p.Source.Value = "url", w.URL
	case w.ID != "":
		p.Source.Type, p.Source.Value = "file", w.ID
	default:
		return p, &FieldError{Field: path, Found: "no data", Allowed: "one of data, url and id"}
	}
	return p, nil
}

// messageFault returns what AG-UI would not allow of a message.
func messageFault(path string, m chat.Message) *FieldError {
	if fault := (rule{filled: true}).text(join(path, "id"), m.ID); fault != nil {
		return fault
	}
	if fault := (rule{required: true, one: []string{"developer", "system", "assistant", "user", "tool", "reasoning"}}).text(join(path, "role"), string(m.Role)); fault != nil {
		return fault
	}
	if m.Role == chat.Tool && m.ToolCallID == "" {
		return &FieldError{Field: join(path, "toolCallId"), Found: nothing, Allowed: "the id of the call that it answers"}
	}
	for i, c := range m.ToolCalls {
		path := at(join(path, "toolCalls"), i)
		if c.ID == "" || c.Function.Name == "" {
			return &FieldError{Field: path, Found: "a call without an id or a name", Allowed: "one with both"}
		}
		if fault := rawFault(join(path, "metadata"), c.Metadata, rule{object: true}); fault != nil {
			return fault
		}
	}
	if fault := rawFault(join(path, "metadata"), m.Metadata, rule{object: true}); fault != nil {
		return fault
	}
	return contentFault(join(path, "content"), m.Content)
}

func contentFault(path string, c chat.Content) *FieldError {
	for i, p := range c.Parts() {
		if fault := partFault(at(path, i), p); fault != nil {
			return fault
		}
	}
	return nil
}

func partFault(path string, p chat.Part) *FieldError {
	if fault := (rule{required: true, one: []string{"text", "image", "audio", "video", "document"}}).text(join(path, "type"), p.Type); fault != nil {
		return fault
	}
	if fault := rawFault(join(path, "metadata"), p.Metadata, rule{}); fault != nil || p.Type == chat.PartText {
		return fault
	}
	if p.Source == nil {
		return &FieldError{Field: join(path, "source"), Found: nothing, Allowed: "an object"}
	}
	if fault := (rule{required: true, one: []string{"data", "url", "file"}}).text(join(path, "source.type"), p.Source.Type); fault != nil {
		return fault
	}
	if p.Source.Type == "data" && p.Source.MimeType == "" {
		return &FieldError{Field: join(path, "source.mimeType"), Found: nothing, Allowed: "the media type of the data"}
	}
	return nil
}

// onWire returns an event as it is marshalled: no list is null, and messages have
// what AG-UI names and no more.
func onWire(e Event) Event {
	switch e := e.(type) {
	case MessagesSnapshot:
		e.Messages = messagesOnWire(e.Messages)
		return e
	case RunStarted:
		if e.Input != nil {
			in := *e.Input
			in.Messages = messagesOnWire(in.Messages)
			e.Input = &in
		}
		return e
	case StateDelta:
		e.Delta = append([]Patch{}, e.Delta...)
		return e
	case ActivityDelta:
		e.Patch = append([]Patch{}, e.Patch...)
		return e
	case ToolCallResult:
		e.Content = contentOnWire(e.Content, true)
		return e
	}
	return e
}

func messagesOnWire(messages []chat.Message) []chat.Message {
	out := make([]chat.Message, 0, len(messages))
	for _, m := range messages {
		w := chat.Message{ID: m.ID, Role: m.Role, EncryptedValue: m.EncryptedValue, Metadata: m.Metadata}
		if m.Role != chat.Tool && m.Role != chat.Reasoning {
			w.Name = m.Name
		}
		switch m.Role {
		case chat.Assistant:
			w.ToolCalls = slices.Clone(m.ToolCalls)
			for i := range w.ToolCalls {
				w.ToolCalls[i].Type = "function"
			}
		case chat.Tool:
			w.ToolCallID, w.Error = m.ToolCallID, m.Error
		}
		if !m.Content.IsZero() || m.Role != chat.Assistant {
			w.Content = contentOnWire(m.Content, takesParts(m.Role))
		}
		out = append(out, w)
	}
	return out
}

// contentOnWire leaves out parts that are empty texts, which would lose their member.
func contentOnWire(c chat.Content, parts bool) chat.Content {
	if !parts || c.IsZero() {
		return chat.Text(c.String())
	}
	if c.IsText() {
		return c
	}
	kept := []chat.Part{}
	for _, p := range c.Parts() {
		if p.Type != chat.PartText || p.Text != "" {
			kept = append(kept, p)
		}
	}
	return chat.Parts(kept...)
}
