package llm_test

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

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
