package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	questions "github.com/hutch-run/hutch/runtime/approval"
)

// A person sees all of the arguments before they are asked: also the end of long ones, and
// those of which the policy's own question says nothing.
func TestChatsShowAllArguments(t *testing.T) {
	long := `{"text":"` + strings.Repeat("a ", 5000) + "\u202e\x1b[2J" + `","file":"/the/end"}`
	for name, c := range map[string]struct {
		args, question string
		shown          int
	}{
		"short":              {`{"file":"/the/end"}`, "", 1},
		"long":               {long, "", 1},
		"a question instead": {`{"file":"/the/end"}`, "Delete it?", 1},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := questions.Ask(questions.Call{ID: "c", Message: "m", Tool: "wipe", Arguments: c.args}, c.question, time.Now().Add(time.Hour))
			must(t, err)
			var screen bytes.Buffer
			ch := &chatter{person: &terminal{in: bufio.NewScanner(strings.NewReader("y\n")), out: &screen}}
			in, err := ch.ask(t.Context(), []event.Interrupt{q})
			must(t, err)
			if got := string(in.Resume[0].Payload); got != `{"approved":true}` {
				t.Errorf("answered %s", got)
			}
			shown := screen.String()
			if strings.Count(shown, `"file":"/the/end"}`) != c.shown || !strings.HasSuffix(shown, "? [y/N] ") || strings.ContainsAny(shown, "\x1b\u202e") {
				t.Errorf("shown: %.200q … %q", shown, shown[max(0, len(shown)-200):])
			}
		})
	}
}
