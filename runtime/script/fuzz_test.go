package script

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// FuzzParseScript: a script is refused with a line, or each of its steps can be played,
// and writes arguments that are JSON unless the script gave them as a text.
func FuzzParseScript(f *testing.F) {
	for _, text := range []string{
		"- say: hi",
		"- match: {text: '(a)(?P<b>b)'}\n  call: {tool: x, args: {a: '${1|json}', b: ['${b}', 1.50, true, null]}}\n- fail: x",
		"- match: {tool: f, result: '.'}\n  say: '${result.a.0} ${results.f}'\n- delay: 1s\n- say: x",
		"- ask: [{tool: a}, {tool: b, args: x}]\n- {say: '$${', usage: {input: 1}}",
		`[{"fail": {"as": "cut", "text": "${result}"}}]`,
	} {
		f.Add(text, "ab", `{"a": [1]}`)
	}
	f.Fuzz(func(t *testing.T, text, said, answered string) {
		s, err := Parse("s.yaml", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "s.yaml:") {
				t.Errorf("no line: %v", err)
			}
			return
		}
		at := pointOf(chat.Request{Messages: []chat.Message{
			{Role: chat.User, Content: chat.Text(said)},
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: "call_1", Function: chat.FunctionCall{Name: "f"}}}},
			{Role: chat.Tool, ToolCallID: "call_1", Content: chat.Text(answered)},
		}})
		for _, st := range s.steps {
			st.delay = 0
			seen, _ := st.fits(at)
			calls, err := st.made(seen)
			for i, c := range calls {
				if err == nil && st.calls[i].rawArgs == nil && !json.Valid([]byte(c.Arguments)) {
					t.Errorf("arguments %q", c.Arguments)
				}
			}
			one := &Model{name: "s.yaml", steps: []step{st}}
			llmtest.Take(t, one.Stream(t.Context(), at.r))
		}
	})
}
