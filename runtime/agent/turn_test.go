package agent_test

import (
	"context"
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/tool"
)

// asksAlways is a tool that waits for a person who has allowed it.
func asksAlways(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.AskError{Tool: c.Name}
}

// fakeTurn takes everything.
type fakeTurn struct {
	messages []chat.Message
	events   []event.Event
	commits  int
	state    json.RawMessage
	refuses  error // what SetState returns
}

func (f *fakeTurn) Messages() []chat.Message { return f.messages }

func (f *fakeTurn) Emit(e event.Event) error {
	f.events = append(f.events, e)
	return nil
}

func (f *fakeTurn) Add(m chat.Message) error {
	f.messages = append(f.messages, m)
	return nil
}

func (f *fakeTurn) Commit(context.Context, ...event.Job) error {
	f.commits++
	return nil
}

func (f *fakeTurn) Use(chat.Usage) {}

func (f *fakeTurn) SetState(s json.RawMessage) error {
	if f.refuses == nil {
		f.state = s
	}
	return f.refuses
}

// givesResult is a tool with one answer.
func givesResult(r tool.Result) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) { return r, nil }
}
