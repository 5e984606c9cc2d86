package llm_test

import (
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// BenchmarkScript is a turn of a script that says a sentence, at the end of a short and
// of a long conversation.
func BenchmarkScript(b *testing.B) {
	s := script(b, "- match: {text: hello}\n  say: 'a sentence of some words to be said'\n- say: no")
	short := llmtest.Ask("hello")
	long := chat.Request{}
	for range 10_000 {
		long.Messages = append(long.Messages, short.Messages...)
	}
	for name, r := range map[string]chat.Request{"1": short, "10000": long} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, err := range s.Stream(b.Context(), r) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkOpenAI is a turn whose answer comes in a thousand pieces.
func BenchmarkOpenAI(b *testing.B) {
	pieces := make([]string, 1000)
	for i := range pieces {
		pieces[i] = "word "
	}
	answer := saying(pieces...)
	m, server := against(b, llm.OpenAIOptions{})
	for b.Loop() {
		server.Add(answer)
		for _, err := range m.Stream(b.Context(), llmtest.Ask("go")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
