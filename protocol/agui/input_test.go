package agui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// input is one with members besides the required ones.
func input(members string) string { return `{"threadId":"t","runId":"r","messages":[]` + members + `}` }

func messages(m string) string { return `{"threadId":"t","runId":"r","messages":[` + m + `]}` }

// What an input may not be is said before any stream, with the member's name.
func TestInputsThatAreRefused(t *testing.T) {
	server := served(t, &fake{}, Options{})
	for _, c := range []struct {
		body    string
		field   string
		message string
	}{
		{`[]`, "", "found an array, allowed is an object"},
		{`{"runId":"r","messages":[]}`, "threadId", "found nothing, allowed is a string"},
		{`{"threadId":"t","run_id":"r","messages":[]}`, "runId", "found only run_id, allowed is a string under the name runId"},
		{`{"threadId":"","runId":"r","messages":[]}`, "threadId", "found an empty string"},
		{`{"threadId":1,"runId":"r","messages":[]}`, "threadId", "found the number 1, allowed is a string"},
		{`{"threadId":null,"runId":"r","messages":[]}`, "threadId", "found null"},
		{`{"threadId":"a\u0000b","runId":"r","messages":[]}`, "threadId", "found a control character or invalid UTF-8"},
		{`{"threadId":"t","runId":"r"}`, "messages", "found nothing, allowed is an array"},
		{`{"threadId":"t","runId":"r","messages":{}}`, "messages", "found an object, allowed is an array"},
		{input(`,"protocolVersion":1.0`), "protocolVersion", "found the number 1.0"},
		{messages(`1`), "messages[0]", "found the number 1, allowed is an object"},
		{messages(`{"role":"user","content":""}`), "messages[0].id", "found nothing"},
		{messages(`{"id":"a","role":"robot","content":""}`), "messages[0].role", `found "robot", allowed is developer, system, assistant, user, tool, reasoning, activity`},
		{messages(`{"id":"a","role":"user","content":""},{"id":"b","role":"user"}`), "messages[1].content", "found nothing"},
		{messages(`{"id":"a","role":"user","content":null}`), "messages[0].content", "found nothing"},
		{messages(`{"id":"a","role":"system","content":[]}`), "messages[0].content", "found an array, allowed is a string"},
		{messages(`{"id":"a","role":"user","content":[{"type":"link"}]}`), "messages[0].content[0].type", `found "link"`},
		{messages(`{"id":"a","role":"user","content":[{"type":"binary","data":"AA=="}]}`), "messages[0].content[0].mimeType", "found nothing"},
		{messages(`{"id":"a","role":"user","content":[{"type":"binary","mimeType":"image/png"}]}`), "messages[0].content[0]", "found no data, allowed is one of data, url and id"},
		{messages(`{"id":"a","role":"tool","content":""}`), "messages[0].toolCallId", "found nothing"},
		{messages(`{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"n"}}]}`), "messages[0].toolCalls[0].function.arguments", "found nothing"},
		{messages(`{"id":"a","role":"assistant","toolCalls":{}}`), "messages[0].toolCalls", "found an object, allowed is an array"},
		{messages(`{"id":"a","role":"user","content":"","metadata":1}`), "messages[0].metadata", "found the number 1, allowed is an object"},
		{input(`,"tools":[{"name":"n"}]`), "tools[0].description", "found nothing"},
		{input(`,"tools":[{"name":"","description":""}]`), "tools[0].name", "found an empty string"},
		{input(`,"tools":[{"name":"good-Name_1","description":""},{"name":"no.dots","description":""}]`), "tools[1].name", "found another name, allowed is 1 to 64 letters, digits, - and _"},
		{input(`,"tools":[{"name":"n\n","description":""}]`), "tools[0].name", "found another name"},
		{input(`,"tools":[{"name":"größe","description":""}]`), "tools[0].name", "found another name"},
		{input(`,"tools":[{"name":"n","description":""},{"name":"n","description":""}]`), "tools[1].name", "found a name that another tool has"},
		{input(`,"tools":[{"name":"n","description":"","parameters":true}]`), "tools[0].parameters", "found a boolean, allowed is an object"},
		{input(`,"context":[{"description":"d"}]`), "context[0].value", "found nothing"},
		{input(`,"context":[{"description":"d","value":{}}]`), "context[0].value", "found an object, allowed is a string"},
		{input(`,"resume":[{"interruptId":"i","status":"yes"}]`), "resume[0].status", `found "yes", allowed is resolved, cancelled`},
		{input(`,"resume":[{"interruptId":"i","status":"resolved"},{"interruptId":"i","status":"cancelled"}]`), "resume[1].interruptId", "answered already"},
	} {
		resp, body := do(t, server.URL, post(c.body))
		var got struct{ Error refusal }
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s %s", c.body, resp.Status, body)
		}
		if got.Error.Field != c.field || !strings.Contains(got.Error.Message, c.message) || !strings.HasPrefix(got.Error.Message, c.field) {
			t.Errorf("%s: %s\nwant %s: %s", c.body, body, c.field, c.message)
		}
	}
}

// Each limit lets through what is at it, and refuses what is one above.
func TestE3_21_InputLimits(t *testing.T) {
	server := served(t, &fake{}, Options{MaxBody: 20_000, MaxMessages: 3, MaxTools: 2})
	many := func(n int, one string) string {
		var list []string
		for i := range n {
			list = append(list, strings.ReplaceAll(one, "#", fmt.Sprint(i)))
		}
		return strings.Join(list, ",")
	}
	const hello = `{"id":"u#","role":"user","content":"hello"}`
	with := func(members string) string {
		return `{"threadId":"t","runId":"r","messages":[` + many(1, hello) + `]` + members + `}`
	}
	for name, c := range map[string]struct {
		at, above string
		status    int
		field     string
	}{
		"body":       {with(`,"x":"` + strings.Repeat("x", 19_900) + `"`), with(`,"x":"` + strings.Repeat("x", 20_000) + `"`), http.StatusRequestEntityTooLarge, ""},
		"messages":   {messages(many(3, hello)), messages(many(4, hello)), http.StatusBadRequest, "messages"},
		"tools":      {with(`,"tools":[` + many(2, `{"name":"n#","description":""}`) + `]`), with(`,"tools":[` + many(3, `{"name":"n#","description":""}`) + `]`), http.StatusBadRequest, "tools"},
		"context":    {with(`,"context":[` + many(2, `{"description":"","value":""}`) + `]`), with(`,"context":[` + many(3, `{"description":"","value":""}`) + `]`), http.StatusBadRequest, "context"},
		"resume":     {with(`,"resume":[` + many(2, `{"interruptId":"#","status":"cancelled"}`) + `]`), with(`,"resume":[` + many(3, `{"interruptId":"#","status":"cancelled"}`) + `]`), http.StatusBadRequest, "resume"},
		"parts":      {messages(`{"id":"u","role":"user","content":[` + many(3, `{"type":"text","text":"hello"}`) + `]}`), messages(`{"id":"u","role":"user","content":[` + many(4, `{"type":"text","text":"hello"}`) + `]}`), http.StatusBadRequest, "messages[0].content"},
		"depth":      {with(`,"state":` + strings.Repeat("[", 63) + strings.Repeat("]", 63)), with(`,"state":` + strings.Repeat("[", 64) + strings.Repeat("]", 64)), http.StatusBadRequest, ""},
		"thread id":  {strings.Replace(with(""), `"t"`, `"`+strings.Repeat("t", 256)+`"`, 1), strings.Replace(with(""), `"t"`, `"`+strings.Repeat("t", 257)+`"`, 1), http.StatusBadRequest, "threadId"},
		"dots":       {strings.Replace(with(""), `"t"`, `"..."`, 1), strings.Replace(with(""), `"t"`, `".."`, 1), http.StatusBadRequest, "threadId"},
		"dot":        {strings.Replace(with(""), `"t"`, `".t"`, 1), strings.Replace(with(""), `"t"`, `"."`, 1), http.StatusBadRequest, "threadId"},
		"message id": {messages(`{"id":"` + strings.Repeat("u", 256) + `","role":"user","content":"hello"}`), messages(`{"id":"` + strings.Repeat("u", 257) + `","role":"user","content":"hello"}`), http.StatusBadRequest, "messages[0].id"},
		"tool name":  {with(`,"tools":[{"name":"` + strings.Repeat("n", 64) + `","description":""}]`), with(`,"tools":[{"name":"` + strings.Repeat("n", 65) + `","description":""}]`), http.StatusBadRequest, "tools[0].name"},
	} {
		for body, want := range map[string]int{c.at: http.StatusOK, c.above: c.status} {
			resp, answer := do(t, server.URL, post(body))
			if resp.StatusCode != want || want != http.StatusOK && !strings.Contains(answer, `"message":"`+c.field) {
				t.Errorf("%s: %s, want %d: %s", name, resp.Status, want, answer)
			}
		}
	}
}

func decode(t *testing.T, text string) event.Input {
	t.Helper()
	in, refused := New(nil, Options{}).decodeInput([]byte(text))
	if refused != nil {
		t.Fatalf("%s: %s", text, refused.Message)
	}
	return in
}

// What clients of both generations send, and what they may leave out.
func TestS3_007_InputsThatAreTaken(t *testing.T) {
	for _, text := range []string{
		`{"threadId":"t","runId":"r","protocolVersion":"1.0","state":{},"messages":[],"tools":[],"context":[],"forwardedProps":{}}`,
		`{"threadId":"t","runId":"r","state":{},"messages":[],"tools":[],"context":[],"forwardedProps":{}}`,
		`{"threadId":"t","runId":"r","messages":[]}`,
		`{"threadId":"t","runId":"r","messages":[],"parentRunId":null,"state":null,"tools":null,"context":null,"forwardedProps":null,"resume":null}`,
		`{"threadId":"t","runId":"r","messages":[],"unheard":[{"of":null}],"ThreadId":7}`,
	} {
		if in := decode(t, text); in.ThreadID != "t" || in.RunID != "r" || len(in.Messages) != 0 || len(in.Tools) != 0 || in.Resume != nil {
			t.Errorf("%s: %+v", text, in)
		}
	}
	in := decode(t, `{"threadId":"t","runId":"r","parentRunId":"q","state":[1.50],"forwardedProps":"x","messages":[
		{"id":"d","role":"developer","content":"be brief"},
		{"id":"a","role":"assistant","content":null,"name":null,"toolCalls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{"},"encryptedValue":"e"}]},
		{"id":"x","role":"tool","toolCallId":"c","content":"no","error":"declined"},
		{"id":"v","role":"activity","activityType":"SANDBOX","content":{"n":1}},
		{"id":"r","role":"reasoning","content":"hm","encryptedValue":"e"},
		{"id":"u","role":"user","name":"ann","content":[
			{"type":"text","text":"see"},
			{"type":"image","source":{"type":"url","value":"https://example.org/x.png"},"metadata":{"detail":"low"}},
			{"type":"binary","mimeType":"image/png","data":"AA==","filename":"x.png"},
			{"type":"binary","mimeType":"application/pdf","url":"https://example.org/x.pdf"},
			{"type":"binary","mimeType":"audio/wav","id":"f-1"}]}],
		"tools":[{"name":"confirm","description":"Ask"}],
		"context":[{"description":"page","value":"/"}],
		"resume":[{"interruptId":"i","status":"resolved","payload":{"approved":true}}]}`)
	source := func(kind, value, mime string) *chat.Source {
		return &chat.Source{Type: kind, Value: value, MimeType: mime}
	}
	want := event.Input{
		ThreadID: "t", RunID: "r", ParentRunID: "q", State: json.RawMessage("[1.50]"), ForwardedProps: json.RawMessage(`"x"`),
		Messages: []chat.Message{
			{ID: "d", Role: chat.Developer, Content: chat.Text("be brief")},
			{ID: "a", Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "c", Type: "function", Function: chat.FunctionCall{Name: "n", Arguments: "{"}, EncryptedValue: "e"}}},
			{ID: "x", Role: chat.Tool, ToolCallID: "c", Content: chat.Text("no"), Error: "declined"},
			{ID: "r", Role: chat.Reasoning, Content: chat.Text("hm"), EncryptedValue: "e"},
			{ID: "u", Role: chat.User, Name: "ann", Content: chat.Parts(
				chat.Part{Type: "text", Text: "see"},
				chat.Part{Type: "image", Source: source("url", "https://example.org/x.png", ""), Metadata: json.RawMessage(`{"detail":"low"}`)},
				chat.Part{Type: "image", Source: source("data", "AA==", "image/png")},
				chat.Part{Type: "document", Source: source("url", "https://example.org/x.pdf", "application/pdf")},
				chat.Part{Type: "audio", Source: source("file", "f-1", "audio/wav")})},
		},
		Tools:   []event.Tool{{Name: "confirm", Description: "Ask"}},
		Context: []event.Context{{Description: "page", Value: "/"}},
		Resume:  []event.Resume{{InterruptID: "i", Status: event.ResumeResolved, Payload: json.RawMessage(`{"approved":true}`)}},
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("got\n%+v\nwant\n%+v", in, want)
	}
}

// Whatever a client sends is refused in one line that names a member, or can be echoed
// and is then read as the same.
func FuzzDecodeInput(f *testing.F) {
	f.Add([]byte(input(`,"state":{},"tools":[{"name":"n","description":"","parameters":{}}],"context":[{"description":"","value":""}],"forwardedProps":{},"resume":[{"interruptId":"i","status":"resolved","payload":1}]`)))
	f.Add([]byte(messages(`{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]},{"id":"t","role":"tool","toolCallId":"c","content":[{"type":"binary","mimeType":"image/png","data":"AA=="}]}`)))
	f.Add([]byte(`{"thread_id":"t"}`))
	s := New(nil, Options{MaxMessages: 4, MaxTools: 2})
	f.Fuzz(func(t *testing.T, text []byte) {
		in, refused := s.decodeInput(text)
		if refused != nil {
			if strings.ContainsAny(refused.Message, "\r\n") || !strings.HasPrefix(refused.Message, refused.Field) || refused.status != http.StatusBadRequest {
				t.Fatalf("%+v", refused)
			}
			return
		}
		wire, err := event.Encode(event.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID, Input: &in})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		e, err := event.Decode(wire)
		if err != nil {
			t.Fatalf("%s: %v", wire, err)
		}
		if again, err := event.Encode(e); err != nil || string(again) != string(wire) {
			t.Fatalf("%s, %v, want %s", again, err, wire)
		}
	})
}
