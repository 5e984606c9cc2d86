package llm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

type object = map[string]any

func function(name, arguments string) object { return object{"name": name, "arguments": arguments} }

// TestOddProviders shows what providers do that the specification does not say.
func TestOddProviders(t *testing.T) {
	tool, end := llmtest.ToolCall, llmtest.Finish("tool_calls")
	for name, tt := range map[string]struct {
		events [][]string
		want   string // text, then |name(arguments) for each call, then the stop
	}{
		"comments while it waits": {[][]string{llmtest.Raw(": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n"), llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Done()}, "hi end"},
		"CRLF":                    {[][]string{llmtest.Raw(strings.ReplaceAll(strings.Join(slices.Concat(llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Done()), ""), "\n", "\r\n"))}, "hi end"},
		"an empty content beside a call": {[][]string{{llmtest.Delta(object{"role": "assistant", "content": "", "tool_calls": []any{object{"id": "x", "index": 0, "type": "function", "function": function("f", `{"a":1}`)}}})}, llmtest.Finish("stop"), llmtest.Done()},
			`|f({"a":1}) calls`},
		"stop beside calls":      {[][]string{llmtest.Call(0, "x", "f", "{}"), llmtest.Finish("stop"), llmtest.Done()}, "|f({}) calls"},
		"no reason at all":       {[][]string{llmtest.Say("hi"), llmtest.Done()}, "hi end"},
		"no reason, calls":       {[][]string{llmtest.Call(0, "x", "f", "{}"), llmtest.Done()}, "|f({}) calls"},
		"a reason of their own":  {[][]string{llmtest.Say("hi"), llmtest.Finish("eos"), llmtest.Done()}, "hi end"},
		"calls that never came":  {[][]string{llmtest.Say("hi"), end, llmtest.Done()}, "hi end"},
		"length":                 {[][]string{llmtest.Say("hi"), llmtest.Finish("length"), llmtest.Done()}, "hi length"},
		"length, calls":          {[][]string{llmtest.Call(0, "x", "f", `{"a`), llmtest.Finish("length"), llmtest.Done()}, `|f({"a) length`},
		"length in other words":  {[][]string{llmtest.Call(0, "x", "f", `{"a`), llmtest.Finish("MAX_TOKENS"), llmtest.Done()}, `|f({"a) length`},
		"length of the context":  {[][]string{llmtest.Call(0, "x", "f", `{"a`), llmtest.Finish("model_length"), llmtest.Done()}, `|f({"a) length`},
		"a reason of null":       {[][]string{llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"null"}]}` + "\n\n"), llmtest.Say(" there"), llmtest.Finish("stop"), llmtest.Done()}, "hi there end"},
		"quotes in arguments":    {[][]string{{tool(object{"index": 0, "id": "x", "function": function("f", `{"a":"\"}"`)}), tool(object{"index": 0, "function": function("f", `}`)})}, end, llmtest.Done()}, `|f({"a":"\"}"}) calls`},
		"a list in arguments":    {[][]string{{tool(object{"index": 0, "function": function("f", `{"a":[`)}), tool(object{"index": 0, "function": function("f", `{}]`)}), tool(object{"index": 0, "function": function("f", `}`)})}, end, llmtest.Done()}, `|f({"a":[{}]}) calls`},
		"a negative index":       {[][]string{{tool(object{"index": -1, "id": "x", "function": function("f", `{"a"`)}), tool(object{"index": -1, "id": "x", "function": function("", `:1}`)})}, end, llmtest.Done()}, `|f({"a":1}) calls`},
		"id alone, then index":   {[][]string{{tool(object{"id": "x", "function": function("f", `{"a"`)}), tool(object{"index": 0, "id": "x", "function": function("", `:1}`)})}, end, llmtest.Done()}, `|f({"a":1}) calls`},
		"ids interleaved":        {[][]string{{tool(object{"id": "x", "function": function("f", `{"a"`)}), tool(object{"id": "y", "function": function("g", `{`)}), tool(object{"id": "x", "function": object{"arguments": `:1}`}}), tool(object{"id": "y", "function": object{"arguments": `}`}})}, end, llmtest.Done()}, `|f({"a":1})|g({}) calls`},
		"filter":                 {[][]string{llmtest.Say("h"), llmtest.Finish("content_filter"), llmtest.Done()}, "h filter"},
		"no [DONE]":              {[][]string{llmtest.Say("hi"), llmtest.Finish("stop")}, "hi end"},
		"no [DONE], usage":       {[][]string{llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Usage(8, 4)}, "hi end 8+4"},
		"usage with the reason":  {[][]string{llmtest.Say("hi"), llmtest.Raw(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}` + "\n\n"), llmtest.Done()}, "hi end 3+2"},
		"usage in each chunk":    {[][]string{llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\n"), llmtest.Finish("stop"), llmtest.Usage(3, 2), llmtest.Done()}, "hi end 3+2"},
		"usage is NaN":           {[][]string{llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Raw(`data: {"choices":[],"usage":{"prompt_tokens":NaN,"completion_tokens":-Infinity}}` + "\n\n"), llmtest.Done()}, "hi end"},
		"NaN beside text":        {[][]string{llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"a \"NaN"},"finish_reason":"stop"}],"usage":{"prompt_tokens":NaN}}` + "\n\n"), llmtest.Done()}, `a "NaN end`},
		"usage is text":          {[][]string{llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Raw(`data: {"choices":[],"usage":"lots"}` + "\n\n"), llmtest.Done()}, "hi end"},
		"counts are text":        {[][]string{llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Raw(`data: {"choices":[],"usage":{"prompt_tokens":"some","completion_tokens":[2]}}` + "\n\n"), llmtest.Done()}, "hi end"},
		"counts are too large":   {[][]string{llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Raw(`data: {"choices":[],"usage":{"prompt_tokens":1e999,"completion_tokens":2}}` + "\n\n"), llmtest.Done()}, "hi end"},
		"usage is null":          {[][]string{llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":null,"error":null}` + "\n\n"), llmtest.Finish("stop"), llmtest.Done()}, "hi end"},
		"other choices":          {[][]string{llmtest.Raw(`data: {"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"hi"}}]}` + "\n\n"), llmtest.Finish("stop"), llmtest.Done()}, "hi end"},
		"a refusal":              {[][]string{{llmtest.Delta(object{"refusal": "I will not"})}, llmtest.Finish("stop"), llmtest.Done()}, "I will not end"},
		"reasoning":              {[][]string{{llmtest.Delta(object{"reasoning_content": "hm", "content": nil}), llmtest.Delta(object{"reasoning": "m", "content": ""})}, llmtest.Say("hi"), llmtest.Finish("stop"), llmtest.Done()}, "<hmm>hi end"},
		"a content of parts":     {[][]string{{llmtest.Delta(object{"content": []any{object{"type": "thinking", "thinking": []any{object{"type": "text", "text": "hm"}}}, object{"type": "text", "text": "hi"}}})}, llmtest.Finish("stop"), llmtest.Done()}, "<hm>hi end"},
		"arguments as an object": {[][]string{{tool(object{"index": 0, "id": "x", "function": object{"name": "f", "arguments": object{"a": 1}}})}, end, llmtest.Done()}, `|f({"a":1}) calls`},
		"no index, all at once":  {[][]string{{tool(object{"id": "x", "function": function("f", `{"a":1}`)}), tool(object{"id": "y", "function": function("f", `{"a":2}`)})}, end, llmtest.Done()}, `|f({"a":1})|f({"a":2}) calls`},
		"no index, in pieces":    {[][]string{{tool(object{"id": "x", "function": function("f", `{"a`)}), tool(object{"id": "x", "function": function("", `":1}`)}), tool(object{"id": "y", "function": function("g", `{}`)})}, end, llmtest.Done()}, `|f({"a":1})|g({}) calls`},
		"neither index nor id":   {[][]string{{tool(object{"function": function("f", `{"a":1}`)}), tool(object{"function": function("f", `{"a":2}`)}), tool(object{"function": function("g", `{}`)})}, end, llmtest.Done()}, `|f({"a":1})|f({"a":2})|g({}) calls`},
		"neither, name repeated": {[][]string{{tool(object{"function": function("f", `{"a":`)}), tool(object{"function": function("f", `"}{"}`)})}, end, llmtest.Done()}, `|f({"a":"}{"}) calls`},
		"one index for all":      {[][]string{{tool(object{"index": 0, "id": "x", "function": function("f", `{"a":1}`)}), tool(object{"index": 0, "id": "y", "function": function("f", `{"a":2}`)})}, end, llmtest.Done()}, `|f({"a":1})|f({"a":2}) calls`},
		"one index, no ids":      {[][]string{{tool(object{"index": 0, "function": function("f", `{"a":1}`)}), tool(object{"index": 0, "function": function("f", `{"a":2}`)})}, end, llmtest.Done()}, `|f({"a":1})|f({"a":2}) calls`},
		"indices from one":       {[][]string{llmtest.Call(1, "x", "f", "{}"), llmtest.Call(7, "y", "g", "{}"), end, llmtest.Done()}, "|f({})|g({}) calls"},
		"calls interleaved":      {[][]string{llmtest.Call(0, "x", "f"), llmtest.Call(1, "y", "g"), {tool(object{"index": 0, "function": object{"arguments": `{"a":`}}), tool(object{"index": 1, "function": object{"arguments": `{}`}}), tool(object{"index": 0, "function": object{"arguments": `1}`}})}, end, llmtest.Done()}, `|f({"a":1})|g({}) calls`},
		"neither, no arguments":  {[][]string{{tool(object{"function": function("f", "")}), tool(object{"function": function("g", "{}")})}, end, llmtest.Done()}, `|f()|g({}) calls`},
		"the same id for two":    {[][]string{llmtest.Call(0, "x", "f", "{}"), llmtest.Call(1, "x", "g", "{}"), end, llmtest.Done()}, "|f({})|g({}) calls"},
		"no id":                  {[][]string{llmtest.Call(0, "", "f", "{}"), llmtest.Call(1, "", "g", "{}"), end, llmtest.Done()}, "|f({})|g({}) calls"},
		"a name that comes late": {[][]string{{tool(object{"index": 0, "id": "x", "function": object{"arguments": `{"a"`}}), tool(object{"index": 0, "function": function("f", `:1}`)})}, end, llmtest.Done()}, `|f({"a":1}) calls`},
		"no arguments":           {[][]string{{tool(object{"index": 0, "id": "x", "function": object{"name": "f"}})}, end, llmtest.Done()}, "|f() calls"},
		"an id in each piece":    {[][]string{{tool(object{"index": 0, "id": "x", "function": function("f", "")}), tool(object{"index": 0, "id": "z", "function": function("", "{}")})}, end, llmtest.Done()}, "|f({}) calls"},
	} {
		t.Run(name, func(t *testing.T) {
			m, _ := against(t, llm.OpenAIOptions{Attempts: 1}, llmtest.Stream(tt.events...))
			got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
			if got.Err != nil || got.String() != tt.want {
				t.Errorf("%s, %v\nwant %s", got, got.Err, tt.want)
			}
		})
	}
}

func TestUsageIsComplete(t *testing.T) {
	m, _ := against(t, llm.OpenAIOptions{Provider: "acme"}, saying("hi"))
	got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
	want := chat.Usage{Provider: "acme", Model: "fake-1", InputTokens: 8, OutputTokens: 4, TotalTokens: 12, ReasoningTokens: 2, CachedInputTokens: 4}
	if got.Usage == nil || *got.Usage != want {
		t.Errorf("%+v, want %+v", got.Usage, want)
	}
}

// What a provider says that its model is called is kept with each run and shown: in a line,
// not for megabytes, and without the key.
func TestNamesOfModelsAreShort(t *testing.T) {
	const key = "sk-of-the-operator"
	for model, want := range map[string]string{
		strings.Repeat("m", 1<<20):  strings.Repeat("m", 125) + "…",
		"a\\n" + key + "\\u001b[2J": "a [key]\uFFFD[2J",
	} {
		m, _ := against(t, llm.OpenAIOptions{Key: key}, llmtest.Stream(llmtest.Say("hi"), llmtest.Finish("stop"),
			llmtest.Raw(`data: {"choices":[],"model":"`+model+`","usage":{"prompt_tokens":3,"completion_tokens":1}}`+"\n\n"), llmtest.Done()))
		got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
		if got.Usage == nil || got.Usage.Model != want {
			t.Errorf("%.40q: %+v", model, got.Usage)
		}
	}
}

// TestCallsHaveIDsOfTheirOwn: an id that the provider used before, or that none takes
// back, is replaced.
func TestCallsHaveIDsOfTheirOwn(t *testing.T) {
	n := 0
	m, _ := against(t, llm.OpenAIOptions{NewID: func() string { n++; return fmt.Sprint("new-", n) }},
		llmtest.Stream(llmtest.Call(0, "used", "a"), llmtest.Call(1, "", "b"), llmtest.Call(2, strings.Repeat("x", 65), "c"),
			llmtest.Call(3, "two words", "d"), llmtest.Call(4, "fine", "e"), llmtest.Call(5, "fine", "f"), llmtest.Finish("tool_calls"), llmtest.Done()))
	request := llmtest.Ask("go")
	request.Messages = append(request.Messages,
		chat.Message{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "used", Function: chat.FunctionCall{Name: "a"}}, {ID: "new-1"}}})
	got := llmtest.Take(t, m.Stream(t.Context(), request))
	var ids []string
	for _, c := range got.Calls {
		ids = append(ids, c.ID)
	}
	if want := []string{"new-2", "new-3", "new-4", "new-5", "fine", "new-6"}; !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
}

// FuzzAnswer feeds the model whatever a provider may send.
func FuzzAnswer(f *testing.F) {
	f.Add(strings.Join(slices.Concat(llmtest.Say("hi"), llmtest.Call(0, "x", "f", `{"a":1}`), llmtest.Finish("stop"), llmtest.Usage(1, 2), llmtest.Done()), ""))
	f.Add("data: {\"error\":{\"message\":\"x\",\"code\":429}}\n\n")
	f.Add("event: error\ndata: [{\"error\":\"x\"}]\n\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1,\"function\":{\"arguments\":{}}}],\"content\":[1]}}]}\n\n")
	f.Fuzz(func(t *testing.T, stream string) {
		m, _ := against(t, llm.OpenAIOptions{Attempts: 1, MaxAnswer: 1 << 10, MaxArguments: 100, MaxCalls: 3}, llmtest.Stream(llmtest.Raw(stream)))
		got := llmtest.Take(t, m.Stream(t.Context(), llmtest.Ask("go")))
		if len(got.Text)+len(got.Reasoning) > 1<<10 || len(got.Calls) > 3 {
			t.Errorf("%d bytes and %d calls", len(got.Text)+len(got.Reasoning), len(got.Calls))
		}
	})
}
