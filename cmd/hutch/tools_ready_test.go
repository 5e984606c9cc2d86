package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// oneTool is a toolset that has a tool once it is ready.
type oneTool struct{ ready chan struct{} }

func (o oneTool) List(tool.Caller) []tool.Spec {
	select {
	case <-o.ready:
		return []tool.Spec{{Name: "a"}}
	default:
		return nil
	}
}

func (o oneTool) Call(_ context.Context, c tool.Caller, call tool.Call) (tool.Result, error) {
	if len(o.List(c)) == 0 {
		return tool.Result{}, tool.NotFound(call.Name)
	}
	return tool.Text("done"), nil
}

// Subscribe tells when the tool comes.
func (o oneTool) Subscribe(tell func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-o.ready:
			tell()
		case <-done:
		}
	}()
	return func() { close(done) }
}

func TestWaitingTools(t *testing.T) {
	asked, faceItself := tool.Caller{CallID: "1"}, tool.Caller{}
	for _, c := range []struct {
		name    string
		loading time.Duration
		do      func(waitingTools) int // number of tools, or of results
		want    int
		took    time.Duration
	}{
		{"a list waits", time.Second, func(w waitingTools) int { return len(w.List(asked)) }, 1, time.Second},
		{"a list does not wait for ever", time.Hour, func(w waitingTools) int { return len(w.List(asked)) }, 0, patience},
		{"a face is not held up", time.Second, func(w waitingTools) int { return len(w.List(faceItself)) }, 0, 0},
		{"a call waits", time.Minute, func(w waitingTools) int { return callOnce(t, w, time.Hour) }, 1, time.Minute},
		{"a call gives up with its context", time.Hour, func(w waitingTools) int { return callOnce(t, w, time.Minute) }, 0, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ready := make(chan struct{})
				time.AfterFunc(c.loading, func() { close(ready) })
				start := time.Now()
				if got := c.do(waitingTools{oneTool{ready}, ready}); got != c.want || time.Since(start) != c.took {
					t.Errorf("%d after %v, want %d after %v", got, time.Since(start), c.want, c.took)
				}
			})
		})
	}
}

// A tool that is there already need not wait for those that load for long.
func TestWaitingToolsDoNotWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there, never := make(chan struct{}), make(chan struct{})
		time.AfterFunc(time.Second, func() { close(there) })
		start := time.Now()
		if got := callOnce(t, waitingTools{oneTool{there}, never}, time.Hour); got != 1 || time.Since(start) != time.Second {
			t.Errorf("%d results after %v", got, time.Since(start))
		}
	})
}

func callOnce(t *testing.T, w waitingTools, patience time.Duration) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := w.Call(ctx, tool.Caller{}, tool.Call{})
	if err != nil && !errors.Is(err, tool.ErrUnavailable) {
		t.Error(err)
	}
	return len(r.Content)
}
