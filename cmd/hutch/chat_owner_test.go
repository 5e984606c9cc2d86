package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/protocol/agui"
	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/owner"
)

// endingOwners are owners of a state folder that end one after the other: each does what the
// next step says.
type endingOwners struct {
	steps []endingOwner
	runs  []string // ids, as they were asked for
	keeps bool
}

type endingOwner struct {
	begins bool
	err    error
}

func (o *endingOwners) next() (s endingOwner) {
	if len(o.steps) > 0 {
		s, o.steps = o.steps[0], o.steps[1:]
	}
	return s
}

func (o *endingOwners) Run(_ context.Context, in event.Input) (iterEvents, error) {
	return func(yield func(event.Event, error) bool) {
		o.runs = append(o.runs, in.RunID)
		s := o.next()
		if s.err != nil && !s.begins {
			yield(nil, s.err)
			return
		}
		if !yield(event.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID}, nil) {
			return
		}
		if s.err != nil {
			yield(nil, s.err)
			return
		}
		for _, e := range []event.Event{
			event.TextMessageStart{MessageID: "m", Role: chat.Assistant}, event.TextMessageContent{MessageID: "m", Delta: "hello"}, event.TextMessageEnd{MessageID: "m"},
			event.RunFinished{ThreadID: in.ThreadID, RunID: in.RunID},
		} {
			if !yield(e, nil) {
				return
			}
		}
	}, nil
}

func (o *endingOwners) Cancel(context.Context, string, string) error { return event.ErrNotRunning }
func (o *endingOwners) Thread(context.Context, string, agui.MessagesQuery) (agui.History, error) {
	return agui.History{}, event.ErrNotFound
}
func (o *endingOwners) Capabilities(context.Context) (agui.Capabilities, error) {
	return agui.Capabilities{State: &agui.State{PersistentState: o.keeps}}, o.next().err
}

// What is said while the owner of the state folder ends is said to the next one, under the
// same run: but not if something came of it, or may have where nothing is kept.
func TestWhatIsSaidToOwnersThatEnd(t *testing.T) {
	ends := &event.Failure{Code: event.CodeShutdown, Message: "hutch is shutting down"}
	cut := &event.Failure{Code: event.CodeUnavailable, Message: "it is gone", Cause: io.EOF}
	gone := &event.Failure{Code: event.CodeUnavailable, Message: "it is gone", Cause: fmt.Errorf("%w: no socket", owner.ErrGone)}
	other := &event.Failure{Code: event.CodeInvalid, Message: "no"}
	at := func(errs ...error) (steps []endingOwner) {
		for _, err := range errs {
			steps = append(steps, endingOwner{err: err})
		}
		return steps
	}
	for name, c := range map[string]struct {
		keeps bool
		steps []endingOwner
		runs  int
		err   error
	}{
		"before its capabilities": {true, at(gone, ends, cut, nil), 1, nil},
		"before the run":          {true, at(nil, ends, gone, cut), 4, nil},
		"forgetful":               {false, at(nil, ends, gone), 3, nil},
		"forgetful, and unsure":   {false, at(nil, cut), 1, cut},
		"in the run":              {true, append(at(nil), endingOwner{true, cut}), 1, cut},
		"refused":                 {true, at(nil, other), 1, other},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				owners := &endingOwners{steps: c.steps, keeps: c.keeps}
				var out, said bytes.Buffer
				ch := &chatter{connect: func(context.Context) (talker, error) { return owners, nil }, thread: "t", show: newChatShow(&out, &voice{w: &said}, false, false)}
				err := ch.once(t.Context(), "hi")
				if !errors.Is(err, c.err) || c.err == nil && (err != nil || out.String() != "hello\n") {
					t.Errorf("%q, %v", out.String(), err)
				}
				if len(owners.runs) != c.runs {
					t.Errorf("%d runs, want %d", len(owners.runs), c.runs)
				}
				for _, id := range owners.runs {
					if id != owners.runs[0] {
						t.Errorf("run %s is another one than %s", id, owners.runs[0])
					}
				}
			})
		})
	}
}

// An owner that only ends, and never lets another one be, is not asked for ever.
func TestOwnersThatEndForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := &event.Failure{Code: event.CodeShutdown, Message: "hutch is shutting down"}
		var out, said bytes.Buffer
		ch := &chatter{thread: "t", show: newChatShow(&out, &voice{w: &said}, false, false)}
		ch.connect = func(context.Context) (talker, error) {
			return &endingOwners{steps: []endingOwner{{err: ends}}}, nil
		}
		if err := ch.once(t.Context(), "hi"); !errors.Is(err, ends) {
			t.Errorf("%v", err)
		}
	})
}
