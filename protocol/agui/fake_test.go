package agui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync/atomic"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
)

// A fake is an engine that does what the first message of a user says. Each principal
// has one thread, of its own name.
type fake struct {
	principal string
	// refuse, if it is set, says why no run is taken.
	refuse func() error
	// run, if it is set, is what every run does.
	run func(ctx context.Context, in event.Input) iter.Seq2[event.Event, error]
	// left is how many runs were ended from outside.
	left *atomic.Int32
}

// open returns it for whoever the request says it is of.
func (f *fake) open(r *http.Request) (Engine, error) {
	return &fake{principal: r.Header.Get("Principal"), refuse: f.refuse, run: f.run, left: f.left}, nil
}

// failing yields events and errors as they are listed.
func failing(events ...any) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, one := range events {
			e, _ := one.(event.Event)
			err, _ := one.(error)
			if !yield(e, err) {
				return
			}
		}
	}
}

// waiting is a run that begins and goes on until someone ends it.
func (f *fake) waiting(ctx context.Context, in event.Input) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if yield(started(in), nil) {
			<-ctx.Done()
		}
		f.left.Add(1)
	}
}

func started(in event.Input) event.Event {
	return event.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID}
}

func finished(in event.Input, o *event.Outcome) event.Event {
	return event.RunFinished{ThreadID: in.ThreadID, RunID: in.RunID, Outcome: o, Usage: []chat.Usage{{Provider: "fake", Model: "m", InputTokens: 3, OutputTokens: 2, TotalTokens: 5}}}
}

func text(id string, deltas ...string) []any {
	out := []any{event.TextMessageStart{MessageID: id, Role: chat.Assistant}}
	for _, d := range deltas {
		out = append(out, event.TextMessageContent{MessageID: id, Delta: d})
	}
	return append(out, event.TextMessageEnd{MessageID: id})
}

func call(id, name, arguments, parent string) []any {
	return []any{
		event.ToolCallStart{ToolCallID: id, ToolCallName: name, ParentMessageID: parent},
		event.ToolCallArgs{ToolCallID: id, Delta: arguments},
		event.ToolCallEnd{ToolCallID: id},
	}
}

func result(id string, c chat.Content) any {
	return event.ToolCallResult{MessageID: id + ":result", ToolCallID: id, Content: c, Role: chat.Tool}
}

func together(parts ...[]any) (all []any) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (f *fake) Run(ctx context.Context, in event.Input) (iter.Seq2[event.Event, error], error) {
	if f.refuse != nil {
		return nil, f.refuse()
	}
	return f.does(ctx, in), nil
}

func (f *fake) does(ctx context.Context, in event.Input) iter.Seq2[event.Event, error] {
	if f.run != nil {
		return f.run(ctx, in)
	}
	asked := ""
	for _, m := range in.Messages {
		if m.Role == chat.User && asked == "" {
			asked = m.Content.String()
		}
	}
	switch asked {
	case "wait":
		return f.waiting(ctx, in)
	case "wait and say why":
		return func(yield func(event.Event, error) bool) {
			if yield(started(in), nil) {
				<-ctx.Done()
				yield(nil, ctx.Err())
			}
		}
	}
	return failing(f.script(asked, in)...)
}

func (f *fake) script(asked string, in event.Input) []any {
	start, end := []any{started(in)}, []any{finished(in, nil)}
	id := func(name string) string { return in.RunID + ":" + name }
	switch asked {
	case "count":
		return together(start, text(id("m"), "counting"), call(id("c"), "wc", `{"text":"a b"}`, id("m")),
			[]any{result(id("c"), chat.Text(`{"words":2}`))}, text(id("n"), "Two words."), end)
	case "confirm":
		if last := in.Messages[len(in.Messages)-1]; last.Role == chat.Tool {
			return together(start, text(id("m"), "You said "+last.Content.String()), end)
		}
		return together(start, text(id("m"), "let me ask"), call(id("c"), "confirm", `{"q":"ok?"}`, id("m")), end)
	case "both": // a call that the server answers, and one that the client does
		if last := in.Messages[len(in.Messages)-1]; last.Role == chat.Tool {
			return together(start, text(id("m"), "done"), end)
		}
		return together(start, text(id("m")), call(id("c"), "wc", `{}`, id("m")), call(id("d"), "confirm", `{}`, id("m")), []any{result(id("c"), chat.Text("0"))}, end)
	case "remove":
		return f.remove(in)
	case "down":
		return together(start, text(id("m"), "par"), []any{event.RunError{Message: "the model is down", Code: "llm_unavailable"}})
	case "break":
		return together(start, []any{event.StepStarted{StepName: "think"}}, text(id("m"), "par"), []any{errors.New("secret at /home/me")})
	case "cancel":
		return together(start, text(id("m"), "par"), []any{finished(in, &event.Outcome{Type: event.Cancelled})})
	case "everything":
		return together([]any{event.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID, Input: &in}}, everything(in, id), end)
	}
	return together(start, text(id("m"), "Hel", "", "lo"), end)
}

// remove asks for approval, and acts on the answer.
func (f *fake) remove(in event.Input) []any {
	if len(in.Resume) == 0 {
		return together([]any{started(in)}, text("m5", "I have to ask"), call("c5", "rm", `{"path":"x"}`, "m5"), []any{finished(in, &event.Outcome{
			Type: event.Interrupted,
			Interrupts: []event.Interrupt{{
				ID: "int-1", Reason: "tool_call", Message: "Allow rm on x?", ToolCallID: "c5",
				ResponseSchema: json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"}},"required":["approved"]}`),
			}},
		})})
	}
	answer := "refused"
	if in.Resume[0].Status == event.ResumeResolved && string(in.Resume[0].Payload) == `{"approved":true}` {
		answer = "removed"
	}
	return together([]any{started(in), result("c5", chat.Text(answer))}, text("m6", answer), []any{finished(in, nil)})
}

// everything is each kind of event once, and all that clients of 0.x cannot read.
func everything(in event.Input, id func(string) string) []any {
	object := json.RawMessage(`{"n":0}`)
	parts := chat.Parts(chat.Part{Type: "text", Text: "2"}, chat.Part{Type: "image", Source: &chat.Source{Type: "data", Value: "AA==", MimeType: "image/png"}})
	history := append(append([]chat.Message{}, in.Messages...),
		chat.Message{ID: id("u"), Role: chat.User, Content: chat.Parts(chat.Part{Type: "image", Source: &chat.Source{Type: "file", Value: "f-1", Provider: "p"}}, chat.Part{Type: "text", Text: "see"})},
		chat.Message{ID: id("a"), Role: chat.Assistant, Incomplete: true, ToolCalls: []chat.ToolCall{{ID: id("h"), Type: "function", Function: chat.FunctionCall{Name: "wc", Arguments: "{}"}}}},
		chat.Message{ID: id("t"), Role: chat.Tool, ToolCallID: id("h"), Content: parts},
		chat.Message{ID: id("r"), Role: chat.Reasoning, Content: chat.Text("hm"), EncryptedValue: "e"})
	sub := event.Owned{SubagentRunID: id("s")}
	return together([]any{
		event.MessagesSnapshot{Messages: history},
		event.StepStarted{StepName: "think"},
		event.ReasoningStart{MessageID: id("k")},
		event.ReasoningMessageStart{MessageID: id("k")},
		event.ReasoningMessageContent{MessageID: id("k"), Delta: "hm"},
		event.ReasoningMessageEnd{MessageID: id("k")},
		event.ReasoningEnd{MessageID: id("k")},
		event.ReasoningEncryptedValue{Subtype: "message", EntityID: id("k"), EncryptedValue: "e"},
		event.ReasoningMessageChunk{MessageID: id("l"), Delta: "more"},
		event.StepFinished{StepName: "think"},
		event.StateSnapshot{Snapshot: object},
		event.StateDelta{Delta: []event.Patch{{Op: "replace", Path: "/n", Value: json.RawMessage("null")}, {Op: "copy", From: "/n", Path: "/m"}}},
		event.ActivitySnapshot{MessageID: id("v"), ActivityType: "SANDBOX", Content: object},
		event.ActivityDelta{MessageID: id("v"), ActivityType: "SANDBOX", Patch: []event.Patch{{Op: "replace", Path: "/n", Value: json.RawMessage("1")}}},
		event.Raw{Event: object, Source: "fake"},
		event.Custom{Name: "x", Value: json.RawMessage("null"), Owned: event.Owned{Base: event.Base{Metadata: object, Timestamp: 1798761600000}}},
		event.TextMessageChunk{MessageID: id("w"), Role: chat.Assistant, Delta: "a"}, event.TextMessageChunk{Delta: "b"},
		event.ToolCallChunk{ToolCallID: id("x"), ToolCallName: "wc", ParentMessageID: id("w"), Delta: "{}"},
		result(id("x"), parts),
		event.SubagentStarted{SubagentRunID: id("s"), Name: "searcher", ParentToolCallID: id("x")},
		event.TextMessageStart{MessageID: id("y"), Owned: sub}, event.TextMessageContent{MessageID: id("y"), Delta: "<&>\r\n\u2028"}, event.TextMessageEnd{MessageID: id("y")},
		event.SubagentFinished{SubagentRunID: id("s"), Result: object},
	}, call(id("z"), "confirm", "{}", id("w")))
}

func (f *fake) mine(id string) error {
	if id != f.principal {
		return fmt.Errorf("thread %s: %w", id, event.ErrNotFound)
	}
	return nil
}

func (f *fake) Events(ctx context.Context, threadID, runID string) (iter.Seq2[event.Event, error], error) {
	if err := f.mine(threadID); err != nil {
		return nil, err
	}
	in := event.Input{ThreadID: threadID, RunID: "r-1"}
	one := together([]any{started(in)}, text("m", "hi"), []any{finished(in, &event.Outcome{Type: event.Cancelled})})
	switch {
	case runID == "r-1":
		return failing(one...), nil
	case runID != "":
		return nil, event.ErrNotFound
	}
	return func(yield func(event.Event, error) bool) {
		in.RunID = "r-2"
		for e, err := range failing(append(one, started(in), finished(in, nil))...) {
			if !yield(e, err) {
				return
			}
		}
		<-ctx.Done()
	}, nil
}

func (f *fake) Cancel(_ context.Context, threadID, runID string) error {
	if err := f.mine(threadID); err != nil {
		return err
	}
	if runID == "idle" {
		return event.ErrNotRunning
	}
	return nil
}

func (f *fake) Threads(_ context.Context, q ThreadsQuery) (ThreadPage, error) {
	switch f.principal {
	case "":
		return ThreadPage{}, nil
	case "broken":
		return ThreadPage{}, errors.New("secret")
	}
	return ThreadPage{Threads: []Thread{{ID: f.principal, Title: fmt.Sprintf("%d after %q", q.Limit, q.After), Messages: 2, Bytes: 60}}, Next: "n"}, nil
}

func (f *fake) Thread(_ context.Context, id string, q MessagesQuery) (History, error) {
	if err := f.mine(id); err != nil {
		return History{}, err
	}
	return History{
		Thread:   Thread{ID: id, Title: fmt.Sprintf("%d before %q", q.Limit, q.Before)},
		Messages: []chat.Message{{ID: "m", Role: chat.Assistant, Content: chat.Text("par"), Incomplete: true}},
	}, nil
}

func (f *fake) Capabilities(context.Context) (Capabilities, error) {
	if f.principal == "broken" {
		panic("secret")
	}
	return Capabilities{Identity: &Identity{Name: "fake"}, Execution: &Execution{Sandboxed: true}}, nil
}
