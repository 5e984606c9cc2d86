package llm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/llm"
	"github.com/hutch-run/hutch/runtime/llm/llmtest"
)

// against returns a model that asks server, and the server.
func against(t testing.TB, o llm.OpenAIOptions, answers ...llmtest.Answer) (*llm.OpenAI, *llmtest.Server) {
	t.Helper()
	server := llmtest.New(t, answers...)
	o.Transport = server.Transport()
	m, err := llm.NewOpenAI(server.URL, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, server
}

func TestOpenAIContract(t *testing.T) {
	llmtest.Contract(t, llmtest.Subject{
		Say: func(t *testing.T, text string, turns int) llmtest.Model {
			m, _ := against(t, llm.OpenAIOptions{}, slices.Repeat([]llmtest.Answer{saying(pieces(text)...)}, turns)...)
			return m
		},
		Call: func(t *testing.T, calls []chat.FunctionCall, turns int) llmtest.Model {
			var events [][]string
			for i, c := range calls {
				half := len(c.Arguments) / 2
				events = append(events, llmtest.Call(i, "call_"+string(rune('a'+i)), c.Name, c.Arguments[:half], c.Arguments[half:]))
			}
			events = append(events, llmtest.Finish("tool_calls"), llmtest.Done())
			m, _ := against(t, llm.OpenAIOptions{}, slices.Repeat([]llmtest.Answer{llmtest.Stream(events...)}, turns)...)
			return m
		},
		Fail: func(t *testing.T) llmtest.Model {
			m, _ := against(t, llm.OpenAIOptions{}, llmtest.Stream(llmtest.Say("so", "me")))
			return m
		},
		Slow: func(t *testing.T) llmtest.Model {
			slow := saying("late")
			slow.Before = time.Minute
			m, _ := against(t, llm.OpenAIOptions{}, slow)
			return m
		},
	})
}

// saying is a whole answer.
func saying(pieces ...string) llmtest.Answer {
	return llmtest.Stream(llmtest.Say(pieces...), llmtest.Finish("stop"), llmtest.Usage(8, 4), llmtest.Done())
}

// pieces cuts text between characters.
func pieces(text string) (all []string) {
	runes := []rune(text)
	for chunk := range slices.Chunk(runes, 7000) {
		all = append(all, string(chunk[:len(chunk)/3]), string(chunk[len(chunk)/3:]))
	}
	return all
}
