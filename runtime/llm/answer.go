package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/chat"
)

// An answer is what has come of one attempt.
type answer struct {
	m      *OpenAI
	calls  callList
	size   int
	finish string // the finish_reason, empty before it came
	done   bool   // [DONE] came
	usage  *chat.Usage
}

func newAnswer(m *OpenAI, taken map[string]bool) *answer {
	return &answer{m: m, calls: callList{o: &m.o, taken: taken}}
}

// take reads one event and returns what it adds to the answer.
func (a *answer) take(kind string, data []byte) ([]chat.Delta, error) {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("[DONE]")) {
		a.done = true
		return nil, nil
	}
	chunk, err := decodeChunk(data)
	if err != nil {
		chunk, err = withoutUsage(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: an event of its stream is no JSON object", chat.ErrMalformed)
	}
	if f := a.m.errorInStream(kind, data, chunk); f != nil {
		return nil, f
	}
	if chunk.JSON.Usage.Valid() && countsIn(chunk.JSON.Usage.Raw()) {
		a.usage = a.usageOf(chunk)
	}
	var all []chat.Delta
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue
		}
		if all, err = a.choice(all, c); err != nil {
			return all, err
		}
	}
	return all, nil
}

func decodeChunk(data []byte) (chunk openai.ChatCompletionChunk, err error) {
	if len(data) == 0 || data[0] != '{' {
		return chunk, errors.New("no object")
	}
	err = json.Unmarshal(data, &chunk)
	return chunk, err
}

// withoutUsage reads a chunk whose usage is what cannot be read: some providers divide by
// zero and write NaN, which is no JSON. An answer is not worth less for that.
func withoutUsage(data []byte) (chunk openai.ChatCompletionChunk, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(finite(data), &members); err != nil {
		return chunk, err
	}
	delete(members, "usage")
	text, err := json.Marshal(members)
	if err != nil {
		return chunk, err
	}
	return decodeChunk(text)
}

// finite replaces what floating point calls numbers, and JSON does not, by null.
func finite(data []byte) (text []byte) {
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\' && i+1 < len(data):
			text = append(text, c)
			i++
		case c == '"':
			inString = !inString
		case !inString:
			if n := notANumber(data[i:]); n > 0 {
				text = append(text, "null"...)
				i += n - 1
				continue
			}
		}
		text = append(text, data[i])
	}
	return text
}

// notANumber is how long the word is that data begins with, 0 if it is none of those.
func notANumber(data []byte) int {
	for _, word := range []string{"NaN", "-NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(data, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// countsIn reports whether usage has its counts as numbers, as far as it has them.
func countsIn(usage string) bool {
	var counts struct {
		Prompt     *int64 `json:"prompt_tokens"`
		Completion *int64 `json:"completion_tokens"`
		Total      *int64 `json:"total_tokens"`
	}
	return json.Unmarshal([]byte(usage), &counts) == nil
}

// choice adds what a chunk says to all.
func (a *answer) choice(all []chat.Delta, c openai.ChatCompletionChunkChoice) ([]chat.Delta, error) {
	d := c.Delta
	reasoning, text := saidIn(d)
	pieces := len(reasoning) + len(text)
	if reasoning != "" {
		all = append(all, chat.Delta{Reasoning: reasoning})
	}
	if text != "" {
		all = append(all, chat.Delta{Text: text})
	}
	for _, wire := range d.ToolCalls {
		call, err := a.calls.add(wire)
		if err != nil {
			return all, err
		}
		if call != nil {
			all = append(all, chat.Delta{Call: call})
		}
		pieces += len(wire.Function.Name) + len(pieceOf(wire).text)
	}
	if a.size += pieces; a.size > a.m.o.MaxAnswer {
		return nil, fmt.Errorf("%w: more than %d bytes", chat.ErrLimit, a.m.o.MaxAnswer)
	}
	if c.FinishReason != "" && c.FinishReason != "null" {
		a.finish = c.FinishReason
	}
	return all, nil
}

// saidIn returns what a delta thinks and says. Reasoning has two names among those who
// send it, a refusal is said too, and a content may be a list of parts.
func saidIn(d openai.ChatCompletionChunkChoiceDelta) (reasoning, text string) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if reasoning = textOf(d.JSON.ExtraFields[name]); reasoning != "" {
			break
		}
	}
	text = d.Content + d.Refusal
	if raw := d.JSON.Content.Raw(); strings.HasPrefix(raw, "[") {
		thought, said := partsOf(raw)
		return reasoning + thought, said + d.Refusal
	}
	return reasoning, text
}

func textOf(f respjson.Field) (text string) {
	if !strings.HasPrefix(f.Raw(), `"`) || json.Unmarshal([]byte(f.Raw()), &text) != nil {
		return ""
	}
	return text
}

// partsOf reads a content that is a list, of texts and of thoughts.
func partsOf(raw string) (reasoning, text string) {
	var parts []struct {
		Text     string `json:"text"`
		Thinking []struct {
			Text string `json:"text"`
		} `json:"thinking"`
	}
	if json.Unmarshal([]byte(raw), &parts) != nil {
		return "", ""
	}
	for _, p := range parts {
		text += p.Text
		for _, t := range p.Thinking {
			reasoning += t.Text
		}
	}
	return reasoning, text
}

// maxModel is the longest name of a model that is told on, in bytes.
const maxModel = 128

// named is what a provider calls the model that it used: it is kept with each run.
func (m *OpenAI) named(model string) string {
	return abi.OneLine(m.key.scrub(abi.Cut(model, maxErrorBody)), maxModel)
}

func (a *answer) usageOf(chunk openai.ChatCompletionChunk) *chat.Usage {
	u := chunk.Usage
	return &chat.Usage{
		Provider:              a.m.o.Provider,
		Model:                 a.m.named(chunk.Model),
		InputTokens:           max(u.PromptTokens, 0),
		OutputTokens:          max(u.CompletionTokens, 0),
		TotalTokens:           max(u.TotalTokens, u.PromptTokens+u.CompletionTokens, 0),
		ReasoningTokens:       max(u.CompletionTokensDetails.ReasoningTokens, 0),
		CachedInputTokens:     max(u.PromptTokensDetails.CachedTokens, 0),
		CacheWriteInputTokens: max(u.PromptTokensDetails.CacheWriteTokens, 0),
	}
}

// ended reports whether the answer is whole, even if more could come.
func (a *answer) ended() bool { return a.done || a.finish != "" }

// last is the delta that ends the answer.
func (a *answer) last() (chat.Delta, error) {
	if err := a.calls.check(); err != nil {
		return chat.Delta{}, err
	}
	d := chat.Delta{Stop: chat.StopEnd, Usage: a.usage}
	switch strings.ToLower(a.finish) {
	case "error":
		return d, fmt.Errorf("%w: it says that it ended with an error", chat.ErrCut)
	case "length", "max_tokens", "model_length": // the last is the context's bound
		d.Stop = chat.StopLength
	case "content_filter":
		d.Stop = chat.StopFilter
	default: // also none, or "stop" beside calls
		if len(a.calls.calls) > 0 {
			d.Stop = chat.StopCalls
		}
	}
	return d, nil
}
