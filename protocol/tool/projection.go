package tool

import "encoding/json"

// The projections of one [Spec]: what each kind of client lists. They share its name,
// description and schema as they are, byte for byte (requirement C-16).

// noParameters is the schema of a tool that has none of its own: there are providers
// that take no function without one.
var noParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// OpenAI is a tool as chat completions list it (OpenAI API, "tools").
type OpenAI struct {
	Type     string         `json:"type"` // always "function"
	Function OpenAIFunction `json:"function"`
}

// OpenAIFunction is what can be called. A chat.Function has the same fields, so the
// one converts to the other.
type OpenAIFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ToOpenAI returns s as a model behind the chat completions API is told of it.
func ToOpenAI(s Spec) OpenAI {
	return OpenAI{Type: "function", Function: OpenAIFunction{s.Name, s.Description, schemaOf(s)}}
}

// Anthropic is a tool as the Messages API lists it (requirement S1-057).
type Anthropic struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// ToAnthropic returns s as the Messages API lists it.
func ToAnthropic(s Spec) Anthropic { return Anthropic{s.Name, s.Description, schemaOf(s)} }

// ToMCP returns s as an MCP server lists it: its own form, with a schema in any case.
func ToMCP(s Spec) Spec {
	s.InputSchema = schemaOf(s)
	return s
}

func schemaOf(s Spec) json.RawMessage {
	if len(s.InputSchema) == 0 {
		return noParameters
	}
	return s.InputSchema
}

// cutMark ends what [ResultText] cut.
const cutMark = "\n[cut: the rest of the result is not shown; ask for less, or for a part of it]"

// ResultText is r as a model reads it (requirement C-44): the structured answer if
// there is one, else its texts joined by lines, with a word on what is no text; a
// failure as {"error":{"code","message"}}. What is longer than most bytes ends with a
// mark that says so; 0 is no bound. A cut keeps whole characters.
func ResultText(r Result, most int) string {
	text := string(r.Structured)
	if text == "" || text == "null" {
		text = contentText(r.Content)
	}
	if r.IsError && !saysError(text) {
		return ErrorText("tool_error", cut(text, most), "")
	}
	return cut(text, most)
}

// ErrorText is a failure as a model reads it; hint says what to do next, and may be
// empty.
func ErrorText(code, message, hint string) string {
	b, err := json.Marshal(map[string]failure{"error": {code, message, hint}})
	if err != nil { // strings always marshal
		return message
	}
	return string(b)
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// saysError reports whether text has the form of a failure already.
func saysError(text string) bool {
	var is struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal([]byte(text), &is) == nil && len(is.Error) > 0
}

func contentText(blocks []Content) string {
	var text []byte
	for i, c := range blocks {
		if i > 0 {
			text = append(text, '\n')
		}
		text = append(text, blockText(c)...)
	}
	return string(text)
}

// blockText is a text, or a word on what else a block is.
func blockText(c Content) string {
	switch {
	case c.Type == "text":
		return c.Text
	case c.Type == "resource_link" && c.URI != "":
		return "[link: " + c.URI + "]"
	case c.Type == "resource":
		var is struct {
			URI  string `json:"uri"`
			Text string `json:"text"`
		}
		if json.Unmarshal(c.Resource, &is) == nil && is.Text != "" {
			return is.Text
		}
		return "[a resource that is no text: not shown]"
	}
	if c.MIMEType != "" {
		return "[" + c.Type + ", " + c.MIMEType + ": not shown]"
	}
	return "[" + c.Type + ": not shown]"
}

// cut shortens text to most bytes, the mark among them.
func cut(text string, most int) string {
	if most <= 0 || len(text) <= most {
		return text
	}
	keep := max(most-len(cutMark), 0)
	for keep > 0 && text[keep]&0xC0 == 0x80 { // within a character
		keep--
	}
	return (text[:keep] + cutMark)[:min(most, keep+len(cutMark))]
}
