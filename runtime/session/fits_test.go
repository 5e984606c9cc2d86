package session_test

import (
	"context"
	"errors"
	"testing"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// A run that does not fit its thread leaves nothing there: neither its messages, nor does
// it take the questions that wait.
func TestRunsThatDoNotFit(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	turn(t, k, input("r1", user("u1", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		return session.Outcome{Interrupts: []event.Interrupt{{ID: "i", Reason: "tool_call", ToolCallID: "rm"}}}, r.Add(assistant("a1", "", "rm"))
	})
	in := input("r2", user("u2", "hi"))
	in.Fits = func(th session.Thread) error {
		if th.Agent != "other" {
			return &event.Failure{Code: "other_agent", Message: th.Agent}
		}
		return nil
	}
	var refusal *event.Failure
	if _, err := k.Submit(t.Context(), ann(), in, idle); !errors.As(err, &refusal) || refusal.Message != "agent" {
		t.Errorf("got %v", err)
	}
	th, err := k.Thread(t.Context(), ann(), annsThread())
	if err != nil || len(th.Waiting.Person) != 1 {
		t.Errorf("%+v, %v", th.Waiting, err)
	}
	want(t, "history", history(t, k, annsThread()), "u1 user hi\na1 assistant calls rm")
	in.Fits = nil
	turn(t, k, in, idle)
}
