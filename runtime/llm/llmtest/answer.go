package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An Answer is one response, and how it fails.
type Answer struct {
	Status int // 0 is 200
	Header http.Header
	// Events are written one by one, as they are.
	Events []string

	// Before is how long nothing comes at first, not even the status.
	Before time.Duration
	// Pace is how long it is between two events.
	Pace time.Duration
	// Cut, if not 0, breaks the connection after that many bytes of the events; Cut
	// below 0 does so before the status.
	Cut int
	// End, if not 0, ends the response properly after that many bytes of the events.
	End int
	// Hang says nothing more after the events, until the client leaves.
	Hang bool
}

// Stream is an event stream of these events, with the head that goes with it.
func Stream(events ...[]string) Answer {
	a := Answer{Header: http.Header{"Content-Type": {"text/event-stream"}}}
	for _, e := range events {
		a.Events = append(a.Events, e...)
	}
	return a
}

// Refuse is an error as OpenAI answers it.
func Refuse(status int, code, message string) Answer {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return Plain(status, "application/json", encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code}}))
}

// Plain is any other response.
func Plain(status int, contentType, body string) Answer {
	return Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Events: []string{body}}
}

// With returns a with a header more.
func (a Answer) With(name, value string) Answer {
	a.Header = a.Header.Clone()
	a.Header.Set(name, value)
	return a
}

// Size is how many bytes the events have.
func (a Answer) Size() int { return len(strings.Join(a.Events, "")) }

// Say are events that say these pieces, after the one that names the role.
func Say(pieces ...string) (events []string) {
	events = append(events, Delta(map[string]any{"role": "assistant", "content": ""}))
	for _, p := range pieces {
		events = append(events, Delta(map[string]any{"content": p}))
	}
	return events
}

// Call are events that call a tool, with the arguments in pieces.
func Call(index int, id, name string, arguments ...string) (events []string) {
	events = append(events, ToolCall(map[string]any{"index": index, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": ""}}))
	for _, piece := range arguments {
		events = append(events, ToolCall(map[string]any{"index": index, "function": map[string]any{"arguments": piece}}))
	}
	return events
}

// Finish are events that say why the model stopped.
func Finish(reason string) []string {
	return []string{Event(chunk(map[string]any{}, reason))}
}

// Usage are events that say what the turn cost.
func Usage(in, out int) []string {
	c := chunk(nil, "")
	c["choices"] = []any{}
	c["usage"] = map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details":     map[string]any{"cached_tokens": in / 2},
		"completion_tokens_details": map[string]any{"reasoning_tokens": out / 2},
	}
	return []string{Event(c)}
}

// Done are events that end the stream.
func Done() []string { return Raw("data: [DONE]\n\n") }

// Raw is text that is sent as it is.
func Raw(text string) []string { return []string{text} }

// Delta is an event that holds a delta.
func Delta(delta map[string]any) string { return Event(chunk(delta, "")) }

// ToolCall is an event that holds a piece of a call.
func ToolCall(piece map[string]any) string {
	return Delta(map[string]any{"tool_calls": []any{piece}})
}

// Event is an event that holds data as JSON.
func Event(data any) string { return "data: " + encode(data) + "\n\n" }

func chunk(delta map[string]any, finish string) map[string]any {
	choice := map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	return map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1760000000, "model": "fake-1",
		"choices": []any{choice},
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("llmtest: %v", err))
	}
	return string(b)
}

// send writes the answer, until it is whole, cut, or nobody is there to take it.
func (a Answer) send(w http.ResponseWriter, r *http.Request) {
	if !pause(r, a.Before) {
		return
	}
	if a.Cut < 0 {
		panic(http.ErrAbortHandler)
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	out := http.NewResponseController(w)
	_ = out.Flush() // a client that left is noticed when it is written to
	left := a.Size()
	if a.Cut > 0 {
		left = min(left, a.Cut)
	}
	if a.End > 0 {
		left = min(left, a.End)
	}
	for i, e := range a.Events {
		if i > 0 && !pause(r, a.Pace) {
			return
		}
		e = e[:min(len(e), left)]
		if _, err := w.Write([]byte(e)); err != nil {
			return
		}
		_ = out.Flush()
		left -= len(e)
	}
	if a.Hang {
		<-r.Context().Done()
	}
	if a.Cut > 0 {
		panic(http.ErrAbortHandler)
	}
}

// pause waits while the client is there.
func pause(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
