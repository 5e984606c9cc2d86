package llm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/rawjson"
	"github.com/hutch-run/hutch/protocol/tool"
)

// params turns a request into the form of chat completions.
func (m *OpenAI) params(r chat.Request) (p openai.ChatCompletionNewParams, err error) {
	if p.Model = cmp.Or(r.Model, m.o.Model); p.Model == "" {
		return p, fmt.Errorf("%w: no model is named: name one for this agent", chat.ErrRefused)
	}
	for _, msg := range r.Messages {
		if one, ok := m.message(msg); ok {
			p.Messages = append(p.Messages, one)
		}
	}
	if len(p.Messages) == 0 {
		return p, fmt.Errorf("%w: a request without a message", chat.ErrRefused)
	}
	if p.Tools, err = tools(r.Tools); err != nil {
		return p, err
	}
	switch {
	case r.MaxTokens <= 0:
	case m.o.CompletionTokens:
		p.MaxCompletionTokens = openai.Int(int64(r.MaxTokens))
	default:
		p.MaxTokens = openai.Int(int64(r.MaxTokens))
	}
	if !m.o.NoUsage {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	if len(m.o.Extra) > 0 {
		extra := map[string]any{}
		for name, raw := range m.o.Extra {
			extra[name] = raw
		}
		p.SetExtraFields(extra)
	}
	return p, nil
}

// functionName is what providers take as the name of a function.
var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tools are the functions as [tool.ToOpenAI] writes them, so that the schema stays what
// its author wrote: the library's own type would sort its keys and round its numbers.
func tools(functions []chat.Function) (all []openai.ChatCompletionToolUnionParam, err error) {
	for _, f := range functions {
		if !functionName.MatchString(f.Name) {
			return nil, fmt.Errorf("%w: tool %.80q: a name that models take has up to 64 letters, digits, _ and -", chat.ErrRefused, f.Name)
		}
		if len(f.Parameters) > 0 && !json.Valid(f.Parameters) {
			return nil, fmt.Errorf("%w: tool %q: its schema is not JSON", chat.ErrRefused, f.Name)
		}
		raw, err := rawjson.Marshal(tool.ToOpenAI(tool.Spec{Name: f.Name, Description: f.Description, InputSchema: f.Parameters}))
		if err != nil {
			return nil, fmt.Errorf("%w: tool %q: %w", chat.ErrRefused, f.Name, err)
		}
		all = append(all, param.Override[openai.ChatCompletionToolUnionParam](raw))
	}
	return all, nil
}

// message returns msg as the provider takes it; ok is false if there is nothing in it
// for the provider: thoughts are a model's own, and an assistant that says nothing is
// an error to many.
func (m *OpenAI) message(msg chat.Message) (one openai.ChatCompletionMessageParamUnion, ok bool) {
	text := msg.Content.String()
	switch msg.Role {
	case chat.Developer, chat.System:
		if m.o.Developer && msg.Role == chat.Developer {
			return openai.DeveloperMessage(text), true
		}
		return openai.SystemMessage(text), true
	case chat.User:
		return m.user(msg), true
	case chat.Assistant:
		if text == "" && len(msg.ToolCalls) == 0 {
			return one, false
		}
		return assistant(text, msg.ToolCalls), true
	case chat.Tool:
		if msg.Content.IsZero() && msg.Error != "" {
			text = tool.ErrorText("client_error", msg.Error, "")
		}
		return openai.ToolMessage(m.withNotes(msg, text), msg.ToolCallID), true
	}
	return one, false
}

// withNotes is the text of a result, with a word on each part that is none.
func (m *OpenAI) withNotes(msg chat.Message, text string) string {
	for _, p := range msg.Content.Parts() {
		if p.Type != chat.PartText {
			text = strings.TrimPrefix(text+"\n", "\n") + note(p, "")
		}
	}
	return text
}

func assistant(text string, calls []chat.ToolCall) openai.ChatCompletionMessageParamUnion {
	var a openai.ChatCompletionAssistantMessageParam
	if text != "" {
		a.Content.OfString = openai.String(text)
	}
	for _, c := range calls {
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: c.Function.Name, Arguments: objectText(c.Function.Arguments),
				},
			},
		})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}

// objectText returns arguments as the text of an object: many providers parse what their
// model once wrote, and refuse the whole conversation if it was no JSON.
func objectText(arguments string) string {
	trimmed := strings.TrimSpace(arguments)
	switch {
	case trimmed == "":
		return "{}"
	case trimmed[0] == '{' && json.Valid([]byte(trimmed)):
		return arguments
	}
	raw, err := rawjson.Marshal(map[string]string{"malformed": arguments})
	if err != nil { // a text always marshals
		return "{}"
	}
	return string(raw)
}

// userName is what providers take as the name of a user.
var userName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (m *OpenAI) user(msg chat.Message) openai.ChatCompletionMessageParamUnion {
	var u openai.ChatCompletionUserMessageParam
	if userName.MatchString(msg.Name) {
		u.Name = openai.String(msg.Name)
	}
	parts := msg.Content.Parts()
	if !slices.ContainsFunc(parts, func(p chat.Part) bool { return p.Type != chat.PartText }) {
		u.Content.OfString = openai.String(msg.Content.String())
		return openai.ChatCompletionMessageParamUnion{OfUser: &u}
	}
	for _, p := range parts {
		u.Content.OfArrayOfContentParts = append(u.Content.OfArrayOfContentParts, m.part(p))
	}
	return openai.ChatCompletionMessageParamUnion{OfUser: &u}
}

// part returns a part as the provider takes it, or a note in its place.
func (m *OpenAI) part(p chat.Part) openai.ChatCompletionContentPartUnionParam {
	if p.Type == chat.PartText {
		return openai.TextContentPart(p.Text)
	}
	if !slices.Contains(m.o.Parts, p.Type) {
		return openai.TextContentPart(note(p, "the model does not take it"))
	}
	one, why := mediaPart(p)
	if why != "" {
		return openai.TextContentPart(note(p, why))
	}
	return one
}

// note stands for a part that is left out, so that the model can say what it lacks.
func note(p chat.Part, why string) string {
	kind := "a part of an unknown type"
	if slices.Contains([]string{"image", "audio", "video", "document"}, p.Type) {
		kind = p.Type
	}
	return fmt.Sprintf("[%s was left out: %s]", kind, cmp.Or(why, "results are text"))
}

// mimeType is what a type may be that goes into an URL.
var mimeType = regexp.MustCompile(`^[a-z]+/[a-zA-Z0-9.+-]{1,80}$`)

// mediaPart returns an image, a sound or a document, or why it cannot be one.
func mediaPart(p chat.Part) (one openai.ChatCompletionContentPartUnionParam, why string) {
	s := p.Source
	switch {
	case s == nil:
		return one, "it has no source"
	case s.Type == "data" && !mimeType.MatchString(s.MimeType):
		return one, "its type is not known"
	case s.Type == "data" && s.Value == "":
		return one, "it is empty"
	}
	switch {
	case p.Type == "image" && s.Type == "data" && strings.HasPrefix(s.MimeType, "image/"):
		return image(dataURL(s)), ""
	case p.Type == "image" && s.Type == "url" && webURL(s.Value):
		return image(s.Value), ""
	case p.Type == "audio" && s.Type == "data":
		format := audioFormat(s.MimeType)
		if format == "" {
			return one, "sounds are taken as WAV or MP3"
		}
		return openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: s.Value, Format: format}), ""
	case p.Type == "document" && s.Type == "data":
		return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{
			FileData: openai.String(dataURL(s)), Filename: openai.String("document"),
		}), ""
	}
	return one, "its source is of a kind that the model does not take"
}

func image(address string) openai.ChatCompletionContentPartUnionParam {
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: address})
}

func dataURL(s *chat.Source) string { return "data:" + s.MimeType + ";base64," + s.Value }

// webURL reports whether the provider could fetch address; we never do.
func webURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

func audioFormat(kind string) string {
	switch kind {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}
