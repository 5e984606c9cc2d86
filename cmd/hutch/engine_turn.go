package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/hutch-run/hutch/protocol/access"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/session"
)

// faceTracker is the face of runs that something in a tracker began, as policies and
// receipts see it. Nobody waits for them.
const faceTracker = "tracker"

// An agentTurn is what an agent does because of something that happened elsewhere.
type agentTurn struct {
	// Thread is where it happens; RunID is the same if the turn is handed over twice.
	Thread, RunID string
	// Title is for a thread that is new, Prompt what the agent is told.
	Title, Prompt string
}

// turnEnd is how a turn ended that did not fail.
type turnEnd struct {
	// Thread is where it happened, which may be another one than was asked for.
	Thread string
	// Text is what the agent said last.
	Text string
	// Asks are the questions to a person that it ended with.
	Asks []event.Interrupt
}

// turn runs a turn to its end. Its error is that of the run, an [event.Failure], or the one
// of ctx, whose end cancels the run; it is a [session.ErrBusy] if there is no room for it. see, if not nil, is told what happens, and must be quick.
func (a *engineAgent) turn(ctx context.Context, t agentTurn, see func(event.Event)) (turnEnd, error) {
	who := session.Principal{Name: access.Local}
	t.Thread = a.threadOf(ctx, who, t.Thread)
	s, err := a.submitTurn(ctx, who, t)
	if err != nil {
		return turnEnd{}, err
	}
	end, err := a.await(ctx, s, see)
	for errors.Is(err, session.ErrSlow) { // the run goes on
		if s, err = a.keeper.AttachRun(ctx, who, session.Ref{Owner: who.Name, ID: t.Thread}, t.RunID); err == nil {
			end, err = a.await(ctx, s, nil)
		}
	}
	if ctx.Err() != nil && err != nil {
		return turnEnd{}, a.abandon(ctx, who, t)
	}
	if end.Thread = t.Thread; err == nil {
		end.Text = a.lastText(ctx, who, t.Thread)
	}
	return end, err
}

// await reads a stream to the end of its run, and returns how it ended.
func (a *engineAgent) await(ctx context.Context, s *session.Stream, see func(event.Event)) (end turnEnd, failed error) {
	defer s.Close()
	failed = &event.Failure{Code: event.CodeInternal, Message: "nobody said how the run ended"}
	play(ctx, s, func(e event.Event, err error) bool {
		if err != nil {
			failed = err
			return true
		}
		if see != nil {
			see(e)
		}
		if ends(e) {
			failed = end.take(e)
		}
		return true
	})
	return end, failed
}

// take notes how a run ended.
func (t *turnEnd) take(e event.Event) error {
	switch e := e.(type) {
	case event.RunError:
		return &event.Failure{Code: e.Code, Message: e.Message}
	case event.RunFinished:
		if e.Outcome == nil {
			return nil
		}
		if t.Asks = e.Outcome.Interrupts; e.Outcome.Type == event.Cancelled {
			return &event.Failure{Code: event.CodeCancelled, Message: "somebody cancelled the run"}
		}
	}
	return nil
}

// threadOf is the thread of that name, or, if that is another agent's, the one beside it
// that is this agent's: a task may go from hand to hand.
func (a *engineAgent) threadOf(ctx context.Context, who session.Principal, id string) string {
	t, err := a.keeper.Thread(ctx, who, session.Ref{Owner: who.Name, ID: id})
	if err == nil && a.owns(t) != nil {
		return id + "-" + a.cfg.Name
	}
	return id
}

// submitTurn hands a turn to the keeper.
func (a *engineAgent) submitTurn(ctx context.Context, who session.Principal, t agentTurn) (*session.Stream, error) {
	in := event.Input{ThreadID: t.Thread, RunID: t.RunID, Messages: []chat.Message{{ID: t.RunID, Role: chat.User, Content: chat.Text(t.Prompt)}}}
	caller := tool.Caller{
		Principal: who.Name, Agent: a.cfg.Name, Conversation: t.Thread, RunID: t.RunID,
		CallID: t.RunID, // until there is a call
		Face:   faceTracker,
		Asks:   true,
	}
	s, err := a.keeper.Submit(ctx, who, session.Input{
		Thread: t.Thread, RunID: t.RunID, Trigger: session.ByEvent, Agent: a.cfg.Name, Title: t.Title,
		Messages: in.Messages, Mode: session.Append, Fits: a.owns,
	}, a.runner(ctx, caller, in, who))
	return s, toldRun(err)
}

// abandon cancels a run that nobody waits for any more, and returns why.
func (a *engineAgent) abandon(ctx context.Context, who session.Principal, t agentTurn) error {
	err := a.keeper.Cancel(context.WithoutCancel(ctx), who, session.Ref{Owner: who.Name, ID: t.Thread}, t.RunID)
	if err != nil && !errors.Is(err, event.ErrNotRunning) {
		return errors.Join(ctx.Err(), fmt.Errorf("cancel: %w", err))
	}
	return ctx.Err()
}

// lastText is what the agent said last in a thread; "" if it did not, or if nothing is kept.
func (a *engineAgent) lastText(ctx context.Context, who session.Principal, thread string) string {
	stored, err := a.keeper.Messages(ctx, who, session.Ref{Owner: who.Name, ID: thread}, "", 1)
	if err != nil || len(stored) == 0 || stored[0].Role != chat.Assistant {
		return ""
	}
	return stored[0].Content.String()
}
