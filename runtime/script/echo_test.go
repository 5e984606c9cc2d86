package script_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/runtime/llm/llmtest"
	"github.com/hutch-run/hutch/runtime/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEchoContract(t *testing.T) {
	llmtest.Contract(t, llmtest.Subject{
		Say: func(*testing.T, string, int) llmtest.Model { return script.NewEcho() },
	})
}
