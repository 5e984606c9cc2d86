package main

import (
	"context"
	"errors"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/owner"
)

// with has do done by an agent, and once more by that of the next owner of the state folder
// as long as do says so: whoever owns it may end at any time, as a chat does when it has its
// answer.
func (ch *chatter) with(ctx context.Context, do func(talker) (again bool, err error)) error {
	patience, stop := context.WithTimeout(ctx, joinPatience)
	defer stop()
	for {
		t, err := ch.connect(ctx)
		if err != nil {
			return err
		}
		again, err := do(t)
		if err == nil || !again {
			return err
		}
		select {
		case <-time.After(joinPause):
		case <-patience.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// isOwnersEnd reports that the owner of the state folder did not answer because it ends, or
// has ended.
func isOwnersEnd(err error) bool {
	var failed *event.Failure
	return errors.As(err, &failed) && (failed.Code == event.CodeShutdown || failed.Code == event.CodeUnavailable)
}

// maySay reports that an input of which nothing came may be said once more. Where threads
// are kept the same run does not run twice; elsewhere it must be sure that it did not begin.
func (ch *chatter) maySay(err error) bool {
	if ch.history == nil || errors.Is(err, owner.ErrGone) {
		return isOwnersEnd(err)
	}
	var failed *event.Failure
	return errors.As(err, &failed) && failed.Code == event.CodeShutdown
}
