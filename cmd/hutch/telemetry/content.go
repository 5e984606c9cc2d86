package telemetry

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/tool"
)

// mostMessages is how many messages of a conversation are told, the last ones.
const mostMessages = 32

// message is one of the conventions' JSON schema for conversations.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// size is about what a message takes as JSON.
func (m message) size() int {
	const around = 40
	n := around
	for _, p := range m.Parts {
		n += around + len(p.Content) + len(p.ID) + len(p.Name) + len(p.Arguments) + len(p.Response)
	}
	return n
}

// said is a content without secrets, and then cut: a cut could leave one of which
// nobody would know it any more.
func (t *T) said(text string) string {
	const most = mostContent / 4
	text = t.o.Redact(text)
	if len(text) <= most {
		return text
	}
	text = text[:most]
	for len(text) > 0 && !utf8.ValidString(text[max(0, len(text)-utf8.UTFMax):]) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

// asked are the instructions of a request, and the end of its conversation.
func (t *T) asked(all []chat.Message) (attrs []attribute.KeyValue) {
	var rules []part
	var talk []message
	left := mostContent / 2
	for _, m := range slices.Backward(all) {
		if m.Role == chat.System || m.Role == chat.Developer {
			rules = append(rules, part{Type: "text", Content: t.said(m.Content.String())})
			continue
		}
		one := t.messageOf(m)
		if left -= one.size(); left < 0 || len(talk) == mostMessages {
			break
		}
		talk = append(talk, one)
	}
	// Instructions stand at the beginning, which the loop may not have reached.
	for _, m := range all[:min(len(all), 2)] {
		if rules == nil && (m.Role == chat.System || m.Role == chat.Developer) {
			rules = []part{{Type: "text", Content: t.said(m.Content.String())}}
		}
	}
	slices.Reverse(rules)
	slices.Reverse(talk)
	if rules != nil {
		attrs = append(attrs, keyInstructions.String(t.written(rules)))
	}
	return append(attrs, keyInput.String(t.written(talk)))
}

func (t *T) messageOf(m chat.Message) message {
	one := message{Role: string(m.Role), Parts: []part{}}
	if m.Role == chat.Tool {
		one.Parts = append(one.Parts, part{Type: "tool_call_response", ID: m.ToolCallID, Response: t.said(m.Content.String())})
		return one
	}
	if !m.Content.IsZero() {
		one.Parts = append(one.Parts, part{Type: "text", Content: t.said(m.Content.String())})
	}
	one.Parts = append(one.Parts, t.callsOf(m.ToolCalls)...)
	return one
}

func (t *T) callsOf(calls []chat.ToolCall) (parts []part) {
	for _, c := range calls {
		parts = append(parts, part{Type: "tool_call", ID: c.ID, Name: t.text(c.Function.Name), Arguments: t.said(c.Function.Arguments)})
	}
	return parts
}

// answered is what a model said.
func (t *T) answered(text string, calls []chat.ToolCall, finish string) attribute.KeyValue {
	one := message{Role: string(chat.Assistant), Parts: []part{}, Finish: finish}
	if text != "" {
		one.Parts = append(one.Parts, part{Type: "text", Content: t.said(text)})
	}
	one.Parts = append(one.Parts, t.callsOf(calls)...)
	return keyOutput.String(t.written([]message{one}))
}

// called are the arguments of a call, and what came of it. The text of an error is left
// out: what a peer is told stands in the answer.
func (t *T) called(call tool.Call, res tool.Result, err error) []attribute.KeyValue {
	all := []attribute.KeyValue{keyArguments.String(t.said(string(call.Arguments)))}
	if err == nil {
		all = append(all, keyResult.String(t.said(tool.ResultText(res, mostKept))))
	}
	return all
}

// written is JSON, or nothing if it is too long for an attribute: half of it is no JSON.
func (t *T) written(v any) string {
	text, err := json.Marshal(v)
	if err != nil || len(text) > mostContent {
		return ""
	}
	// Ids and roles are of others too, and a value can stand in what is around the texts.
	return t.o.Redact(string(text))
}
