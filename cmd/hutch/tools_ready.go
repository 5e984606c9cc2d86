package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// patience is how long a list waits for the first look at the folders. A host
// that starts hutch asks at once and may never ask again, so an empty list
// would stay empty; one that waits too long gives up.
const patience = 5 * time.Second

// waitingTools holds back the first questions until there is something to say.
type waitingTools struct {
	next  toolset
	ready <-chan struct{}
}

func (a *App) waiting() toolset {
	return a.telemetry.Tools(waitingTools{next: a.tools, ready: a.ready})
}

// List waits for the first look, at most [patience], if the question belongs to
// a call; a face that only wants to know what there is has none and is not held
// up.
func (t waitingTools) List(c tool.Caller) []tool.Spec {
	if c.CallID != "" {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-t.ready:
		case <-timer.C:
		}
	}
	return t.next.List(c)
}

// Call makes the call as soon as there is such a tool, and waits for one, as long
// as its context allows, only until the first look at the folders is over.
func (t waitingTools) Call(ctx context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	changed := make(chan struct{}, 1)
	defer t.next.Subscribe(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		loading := t.loading()
		res, err := t.next.Call(ctx, c, call)
		if !loading || !errors.Is(err, tool.ErrNotFound) {
			return res, err
		}
		select {
		case <-t.ready:
		case <-changed:
		case <-ctx.Done():
			return tool.Result{}, fmt.Errorf("%w: hutch is still loading its tools, try again", tool.ErrUnavailable)
		}
	}
}

// loading reports whether tools may come that nobody has to wait for afterwards.
func (t waitingTools) loading() bool {
	select {
	case <-t.ready:
		return false
	default:
		return true
	}
}

// Subscribe hands through.
func (t waitingTools) Subscribe(tell func()) (stop func()) { return t.next.Subscribe(tell) }
