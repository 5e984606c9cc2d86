package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/chat"
)

func archive(t testing.TB, name string) []txtar.File {
	t.Helper()
	a, err := txtar.ParseFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return a.Files
}

func TestS3_014_EveryEventIsReadAndWritten(t *testing.T) {
	seen := map[Type]bool{}
	for _, f := range archive(t, "events.txtar") {
		t.Run(f.Name, func(t *testing.T) {
			wire := bytes.TrimSpace(f.Data)
			e, err := Decode(wire)
			if err != nil {
				t.Fatal(err)
			}
			if name, _, _ := strings.Cut(f.Name, " "); string(e.Type()) != name {
				t.Errorf("a %s", e.Type())
			}
			seen[e.Type()] = true
			if got, err := Encode(e); err != nil || !bytes.Equal(got, wire) {
				t.Errorf("written as\n%s, %v, want\n%s", got, err, wire)
			}
			more := append(bytes.TrimSuffix(bytes.Clone(wire), []byte("}")), `,"unheardOf":{"x":[null]},"Type":1}`...)
			if again, err := Decode(more); err != nil || !reflect.DeepEqual(again, e) {
				t.Errorf("with members that nobody knows: %#v, %v", again, err)
			}
		})
	}
	if len(seen) != 31 || len(blanks()) != 31 {
		t.Errorf("%d types are shown and %d known, of 31", len(seen), len(blanks()))
	}
}

func TestTextsThatAreNoEvents(t *testing.T) {
	for _, f := range archive(t, "refused.txtar") {
		wire, want, _ := strings.Cut(strings.TrimSpace(string(f.Data)), "\n")
		e, err := Decode([]byte(wire))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %#v, %v, want %s", f.Name, e, err, want)
		}
		var fault *FieldError
		if !errors.Is(err, ErrUnknownType) && !errors.As(err, &fault) {
			t.Errorf("%s: %T", f.Name, err)
		}
	}
}

func TestEncodeRefusesWhatAClientWould(t *testing.T) {
	for _, c := range []struct {
		e    Event
		want string
	}{
		{nil, "found nothing, allowed is an event"},
		{TextMessageContent{}, "TEXT_MESSAGE_CONTENT.messageId: found an empty string"},
		{TextMessageEnd{MessageID: "\xff"}, `messageId: found "\xff", allowed is valid UTF-8`},
		{TextMessageStart{MessageID: "m", Role: chat.Tool}, `role: found "tool"`},
		{ReasoningMessageStart{MessageID: "m"}, `role: found "", allowed is reasoning`},
		{Custom{Name: "x"}, "value: found nothing"},
		{Custom{Name: "x", Value: json.RawMessage("{")}, "value: found text that is not JSON"},
		{StateSnapshot{}, "snapshot: found nothing"},
		{RunFinished{ThreadID: "t", RunID: "r", Result: json.RawMessage("null")}, "result: found null"},
		{RunFinished{ThreadID: "t", RunID: "r", Outcome: &Outcome{}}, `outcome.type: found ""`},
		{RunError{Base: Base{Metadata: json.RawMessage(" []")}}, "metadata: found an array"},
		{RunError{Usage: []chat.Usage{{InputTokens: -1}}}, "usage[0].inputTokens: found -1"},
		{ToolCallResult{MessageID: "m", ToolCallID: "c"}, "content: found nothing"},
		{ToolCallResult{MessageID: "m", ToolCallID: "c", Content: chat.Parts(chat.Part{Type: "image"})}, "content[0].source: found nothing"},
		{MessagesSnapshot{Messages: []chat.Message{{ID: "m"}}}, `messages[0].role: found ""`},
		{MessagesSnapshot{Messages: []chat.Message{{ID: "m", Role: chat.Tool}}}, "messages[0].toolCallId: found nothing"},
		{MessagesSnapshot{Messages: []chat.Message{{ID: "m", Role: chat.Assistant, ToolCalls: []chat.ToolCall{{}}}}}, "messages[0].toolCalls[0]: found a call without"},
		{StateDelta{Delta: []Patch{{Op: "add", Path: "/a"}}}, "delta[0].value: found nothing"},
		{RunStarted{ThreadID: "t", RunID: "r", Input: &Input{}}, "input.threadId: found an empty string"},
	} {
		if b, err := Encode(c.e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#v: %s, %v, want %s", c.e, b, err, c.want)
		}
	}
}

// A client warns of every member that AG-UI does not name, and refuses a list that is
// null.
func TestWhatIsOursStaysOffTheWire(t *testing.T) {
	call := chat.ToolCall{ID: "c", Function: chat.FunctionCall{Name: "n"}}
	for _, c := range []struct {
		e    Event
		want string
	}{
		{MessagesSnapshot{}, `"messages":[]`},
		{StateDelta{}, `"delta":[]`},
		{ActivityDelta{MessageID: "m", ActivityType: "x"}, `"patch":[]`},
		{MessagesSnapshot{Messages: []chat.Message{
			{ID: "a", Role: chat.Assistant, Incomplete: true, ToolCalls: []chat.ToolCall{call}},
			{ID: "t", Role: chat.Tool, Name: "n", ToolCallID: "c", Content: chat.Parts(chat.Part{Type: "text"}, chat.Part{Type: "text", Text: "x"})},
			{ID: "r", Role: chat.Reasoning, Name: "n", Content: chat.Parts(chat.Part{Type: "text", Text: "y"})},
			{ID: "u", Role: chat.User, ToolCallID: "c", Error: "e"},
		}}, `"messages":[{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"n","arguments":""}}]},` +
			`{"id":"t","role":"tool","content":[{"type":"text","text":"x"}],"toolCallId":"c"},` +
			`{"id":"r","role":"reasoning","content":"y"},{"id":"u","role":"user","content":""}]`},
	} {
		if b, err := Encode(c.e); err != nil || !strings.Contains(string(b), c.want) {
			t.Errorf("%s, %v, want %s", b, err, c.want)
		}
	}
}

// What is read can be written, and is then read as the same.
func FuzzDecode(f *testing.F) {
	for _, file := range archive(f, "events.txtar") {
		f.Add(bytes.TrimSpace(file.Data))
	}
	for _, file := range archive(f, "refused.txtar") {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Decode(raw)
		if err != nil {
			return
		}
		wire, err := Encode(e)
		if err != nil {
			t.Fatalf("%s is read and not written: %v", raw, err)
		}
		if bytes.ContainsAny(wire, "\r\n") {
			t.Fatalf("a line break in %q", wire)
		}
		again, err := Decode(wire)
		if err != nil {
			t.Fatalf("%s: %v", wire, err)
		}
		if twice, err := Encode(again); err != nil || !bytes.Equal(twice, wire) {
			t.Fatalf("%s, %v, want %s", twice, err, wire)
		}
	})
}
