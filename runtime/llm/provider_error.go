package llm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/chat"
)

// maxErrorBody is how much of an error is read, in bytes, and maxErrorText how much of
// what it says is shown.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 300
)

// A providerError is what a provider says is wrong, in any of the forms in use.
type providerError struct {
	found   bool
	status  int // 0 if it does not say
	code    string
	kind    string
	message string
	most    int64 // a limit in tokens; 0 if it does not say
	had     int64
}

// errorIn reads an error. What is no JSON, such as a page of a proxy, says nothing.
func (m *OpenAI) errorIn(body io.Reader) providerError {
	raw, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if err != nil && len(raw) == 0 {
		return providerError{}
	}
	return m.parseError(raw)
}

// parseError reads {"error":{…}}, {"error":"…"}, {"object":"error",…}, {"detail":"…"},
// {"message":"…"}, and a list that has one of them.
func (m *OpenAI) parseError(raw []byte) providerError {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var outer struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(raw, &outer) != nil {
		return providerError{}
	}
	for _, inner := range []json.RawMessage{outer.Error, outer.Detail} {
		if len(inner) > 0 && string(inner) != "null" {
			return m.errorObject(inner)
		}
	}
	e := m.errorObject(raw)
	e.found = e.message != ""
	return e
}

func (m *OpenAI) errorObject(raw json.RawMessage) providerError {
	e := providerError{found: true}
	if json.Unmarshal(raw, &e.message) != nil {
		var is struct {
			Message json.RawMessage `json:"message"`
			Code    json.RawMessage `json:"code"`
			Status  json.RawMessage `json:"status"`
			Type    json.RawMessage `json:"type"`
			Most    json.RawMessage `json:"n_ctx"`
			Had     json.RawMessage `json:"n_prompt_tokens"`
		}
		_ = json.Unmarshal(raw, &is) // what is no object says nothing
		e.message, e.code, e.kind = scalar(is.Message), scalar(is.Code), scalar(is.Type)
		e.most, e.had = integer(scalar(is.Most)), integer(scalar(is.Had))
		for _, n := range []int64{integer(e.code), integer(scalar(is.Status))} {
			if n >= 400 && n < 600 {
				e.status = int(n)
			}
		}
	}
	e.message = m.key.scrub(abi.Cut(e.message, maxErrorBody))
	if e.status == 0 {
		e.status = statusOf(e.code + " " + e.kind)
	}
	return e
}

// scalar is a text, or a number or anything else as it was written.
func scalar(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return abi.Cut(string(raw), maxErrorText)
	}
	return text
}

func integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// statusOf is the status that the words of an error stand for, 0 if none.
func statusOf(words string) int {
	for _, is := range []struct {
		word   string
		status int
	}{
		{"rate_limit", http.StatusTooManyRequests},
		{"insufficient_quota", http.StatusTooManyRequests},
		{"overloaded", http.StatusServiceUnavailable},
		{"server_error", http.StatusInternalServerError},
		{"authentication", http.StatusUnauthorized},
		{"invalid_request", http.StatusBadRequest},
		{"context_length", http.StatusBadRequest},
	} {
		if strings.Contains(words, is.word) {
			return is.status
		}
	}
	return 0
}

// text is the status and the message on one line.
func (e providerError) text(status int) string {
	message := abi.OneLine(e.message, maxErrorText)
	switch {
	case message == "" && status == 0:
		return "it does not say why"
	case message == "":
		return fmt.Sprintf("%d %s", status, http.StatusText(status))
	case status == 0:
		return message
	}
	return fmt.Sprintf("%d: %s", status, message)
}

// quota reports a 429 that no waiting helps against.
func (e providerError) quota() bool {
	return slices.Contains([]string{e.code, e.kind}, "insufficient_quota")
}

// errorInStream returns the error that an event holds in place of a piece.
func (m *OpenAI) errorInStream(kind string, data []byte, chunk openai.ChatCompletionChunk) *failure {
	raw := chunk.JSON.ExtraFields["error"].Raw()
	if kind != "error" && chunk.Object != "error" && (raw == "" || raw == "null") {
		return nil
	}
	said := m.parseError(data)
	return m.explainStatus(said.status, nil, said)
}

// An overflowPattern is how providers say that a request is over one of their limits.
type overflowPattern struct {
	which       chat.Overflow
	text        string
	most, found int // groups; 0 is none
}

// overflowPatterns are tried in this order.
func overflowPatterns() []overflowPattern {
	return []overflowPattern{
		{chat.OverflowAnswer, `max_(?:completion_)?tokens is too large: (\d+)\. this model supports at most (\d+) completion`, 2, 1},
		{chat.OverflowAnswer, `(?:max_tokens|max_completion_tokens).{0,40}valid range.{0,40}\[1, ?(\d+)\]`, 1, 0},
		{chat.OverflowContext, `maximum context length (?:is|of) (\d+).{0,200}?(?:resulted in|requested)(?: about)? (\d+)`, 1, 2},
		{chat.OverflowContext, `maximum context length (?:is|of) (\d+)`, 1, 0},
		{chat.OverflowContext, `(?:prompt|input) is too long: (\d+) tokens > (\d+)`, 2, 1},
		{chat.OverflowContext, `token count \(?(\d+)\)? exceeds the maximum number of tokens allowed \(?(\d+)`, 2, 1},
		{chat.OverflowContext, `contains (\d+) tokens.{0,80}too large for model with (\d+)`, 2, 1},
		{chat.OverflowContext, `\((\d+) tokens\) exceeds the available context size \((\d+)`, 2, 1},
		{chat.OverflowContext, `exceeds? (?:the )?(?:available |model's |maximum )?context (?:size|length|window)|(?:prompt|input|context) is too long|context window`, 0, 0},
		{chat.OverflowRequest, `request too large.{0,200}limit (\d+), requested (\d+)`, 1, 2},
	}
}

// overflowCodes are codes and types that name an overflow by themselves.
func overflowCodes() map[string]chat.Overflow {
	return map[string]chat.Overflow{
		"context_length_exceeded":          chat.OverflowContext,
		"exceed_context_size_error":        chat.OverflowContext,
		"model_max_prompt_tokens_exceeded": chat.OverflowContext,
		"tokens_limit_reached":             chat.OverflowContext,
		"string_above_max_length":          chat.OverflowRequest,
		"request_too_large":                chat.OverflowRequest,
	}
}

// overflowIn recognises an error as an overflow, by its words if its code does not say.
func overflowIn(status int, e providerError) *chat.OverflowError {
	if !slices.Contains([]int{0, 400, 413, 422, 500}, status) {
		return nil
	}
	codes := overflowCodes()
	which := codes[e.code]
	if which == "" {
		which = codes[e.kind]
	}
	if which == "" && status == http.StatusRequestEntityTooLarge {
		which = chat.OverflowRequest
	}
	o := &chat.OverflowError{Which: which, Most: max(e.most, 0), Found: max(e.had, 0)}
	text := strings.ToLower(abi.Cut(e.message, 4<<10))
	for _, p := range overflowPatterns() {
		m := regexp.MustCompile(p.text).FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if o.Which == "" {
			o.Which = p.which
		}
		if p.most > 0 && o.Most == 0 {
			o.Most = integer(m[p.most])
		}
		if p.found > 0 && o.Found == 0 {
			o.Found = integer(m[p.found])
		}
		break
	}
	if o.Which == "" {
		return nil
	}
	return o
}
