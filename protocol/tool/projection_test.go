package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestOneSchemaInEveryProjection holds the schema to what the tool's author wrote:
// the order of keys, numbers that a float cannot hold, and characters that encoders
// like to escape.
func TestOneSchemaInEveryProjection(t *testing.T) {
	schema := `{"type":"object","required":["z","a"],"properties":{"z":{"const":9007199254740993,"description":"a < b & c, я"},"a":{"maximum":1.10}}}`
	s := Spec{Name: "count_words", Title: "Count words", Description: "how many <b>", InputSchema: json.RawMessage(schema)}
	for form, tt := range map[string]struct {
		projected any
		schema    json.RawMessage
		wire      string
	}{
		"openai":    {ToOpenAI(s), ToOpenAI(s).Function.Parameters, `{"type":"function","function":{"name":"count_words","description":"how many <b>","parameters":` + schema + `}}`},
		"anthropic": {ToAnthropic(s), ToAnthropic(s).InputSchema, `{"name":"count_words","description":"how many <b>","input_schema":` + schema + `}`},
		"mcp":       {ToMCP(s), ToMCP(s).InputSchema, `{"name":"count_words","title":"Count words","description":"how many <b>","inputSchema":` + schema + `}`},
	} {
		if string(tt.schema) != schema {
			t.Errorf("%s: the schema is %s", form, tt.schema)
		}
		if got := onWire(t, tt.projected); got != tt.wire {
			t.Errorf("%s: %s\nwant %s", form, got, tt.wire)
		}
	}
}

func TestToolsWithoutParametersHaveASchema(t *testing.T) {
	s := Spec{Name: "now"}
	const want = `{"type":"object","properties":{}}`
	for form, got := range map[string]json.RawMessage{
		"openai": ToOpenAI(s).Function.Parameters, "anthropic": ToAnthropic(s).InputSchema, "mcp": ToMCP(s).InputSchema,
	} {
		if string(got) != want {
			t.Errorf("%s: %s", form, got)
		}
	}
}

func onWire(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestWhatAModelReadsOfAResult(t *testing.T) {
	for name, tt := range map[string]struct {
		result Result
		want   string
	}{
		"structured before text": {Result{Content: []Content{{Type: "text", Text: "two"}}, Structured: json.RawMessage(`{"n": 2}`)}, `{"n": 2}`},
		"texts, joined":          {Result{Content: []Content{{Type: "text", Text: "a"}, {Type: "text", Text: "b"}}, Structured: json.RawMessage("null")}, "a\nb"},
		"no text":                {Result{Content: []Content{{Type: "image", MIMEType: "image/png", Data: "AAAA"}, {Type: "audio"}}}, "[image, image/png: not shown]\n[audio: not shown]"},
		"link":                   {Result{Content: []Content{{Type: "resource_link", URI: "file:///x"}}}, "[link: file:///x]"},
		"resource of text":       {Result{Content: []Content{{Type: "resource", Resource: json.RawMessage(`{"uri":"a:b","text":"inside"}`)}}}, "inside"},
		"resource of bytes":      {Result{Content: []Content{{Type: "resource", Resource: json.RawMessage(`{"uri":"a:b","blob":"AA=="}`)}}}, "[a resource that is no text: not shown]"},
		"failure":                {Failed("no such task"), `{"error":{"code":"tool_error","message":"no such task"}}`},
		"failure in its form":    {Result{IsError: true, Structured: json.RawMessage(`{"error":{"code":"x","message":"y"}}`)}, `{"error":{"code":"x","message":"y"}}`},
		"nothing":                {Result{}, ""},
	} {
		if got := ResultText(tt.result, 0); got != tt.want {
			t.Errorf("%s: %s\nwant %s", name, got, tt.want)
		}
	}
	if got, want := ErrorText("timeout", "too slow", "ask for less"), `{"error":{"code":"timeout","message":"too slow","hint":"ask for less"}}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestLongResultsAreCutWithAMark(t *testing.T) {
	long := Text(strings.Repeat("я", 500))
	for most := range 1001 {
		got := ResultText(long, most)
		switch {
		case most == 0 || most == 1000:
			if got != long.Content[0].Text {
				t.Fatalf("at most %d: cut to %d bytes", most, len(got))
			}
		case len(got) > most || !utf8.ValidString(got):
			t.Fatalf("at most %d: %d bytes, %q", most, len(got), got)
		case most > len(cutMark) && (!strings.HasSuffix(got, cutMark) || len(got) < most-1):
			t.Fatalf("at most %d: %q", most, got)
		}
	}
	failed := Failed(strings.Repeat("x", 1000))
	var is map[string]failure
	if err := json.Unmarshal([]byte(ResultText(failed, 200)), &is); err != nil || !strings.HasSuffix(is["error"].Message, "a part of it]") {
		t.Error(fmt.Sprint(is), err)
	}
}
