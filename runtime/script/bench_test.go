package script_test

import (
	"testing"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// BenchmarkScript is a turn of a script that says a sentence, at the end of a short and
// of a long conversation.
func BenchmarkScript(b *testing.B) {
	s := played(b, "- match: {text: hello}\n  say: 'a sentence of some words to be said'\n- say: no")
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
