package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// turnTaker is what an agent needs of a run. It declares this itself, in words of the
// vocabulary, and a [session.Run] satisfies it.
type turnTaker interface {
	Messages() []chat.Message
	Emit(event.Event) error
	Add(chat.Message) error
	Commit(context.Context, ...event.Job) error
	Use(chat.Usage)
}

// deltas is a model: it streams pieces of its answer.
type deltas func(messages []chat.Message) []chat.Delta

// weather is a model that asks a tool once.
func weather(messages []chat.Message) []chat.Delta {
	if last := messages[len(messages)-1]; last.Role == chat.Tool {
		return []chat.Delta{{Text: "It is "}, {Text: last.Content.String() + "."}, {Stop: chat.StopEnd, Usage: &chat.Usage{OutputTokens: 4}}}
	}
	return []chat.Delta{{Call: &chat.CallDelta{ID: "c1", Name: "weather"}}, {Call: &chat.CallDelta{Arguments: `{}`}}, {Stop: chat.StopCalls}}
}

// loop asks the model, calls the tools that it wants called and asks again, until it
// answers. Everything that a client sees on the way is an event.
func loop(ctx context.Context, turn turnTaker, run string, model deltas, call func(chat.ToolCall) string) error {
	for round := range 16 {
		said, err := step(turn, fmt.Sprintf("%s-%d", run, round), model(turn.Messages()))
		if err := errors.Join(err, turn.Add(said)); err != nil {
			return err
		}
		if len(said.ToolCalls) == 0 {
			return nil // the end of the run keeps it
		}
		for _, c := range said.ToolCalls {
			answer := chat.Message{Role: chat.Tool, ToolCallID: c.ID, Content: chat.Text(call(c))}
			if err := turn.Add(answer); err != nil {
				return err
			}
		}
		if err := turn.Commit(ctx); err != nil { // one for each step, and then the results go out
			return err
		}
	}
	return &event.Failure{Code: "max_tool_rounds", Message: "the model asked for tools 16 times: ask for less at once"}
}

// step streams what the model says under the id that it will be kept with.
func step(turn turnTaker, id string, pieces []chat.Delta) (chat.Message, error) {
	said := chat.Message{ID: id, Role: chat.Assistant}
	var text strings.Builder
	var err error
	emit := func(e event.Event) { err = errors.Join(err, turn.Emit(e)) }
	for _, d := range pieces {
		switch {
		case d.Text != "":
			if text.Len() == 0 {
				emit(event.TextMessageStart{MessageID: id, Role: chat.Assistant})
			}
			text.WriteString(d.Text)
			emit(event.TextMessageContent{MessageID: id, Delta: d.Text})
		case d.Call != nil && d.Call.ID != "":
			said.ToolCalls = append(said.ToolCalls, chat.ToolCall{ID: d.Call.ID, Type: "function", Function: chat.FunctionCall{Name: d.Call.Name}})
			emit(event.ToolCallStart{ToolCallID: d.Call.ID, ToolCallName: d.Call.Name, ParentMessageID: id})
		case d.Call != nil:
			c := &said.ToolCalls[d.Call.Index]
			c.Function.Arguments += d.Call.Arguments
			emit(event.ToolCallArgs{ToolCallID: c.ID, Delta: d.Call.Arguments})
		}
		if d.Usage != nil {
			turn.Use(*d.Usage)
		}
	}
	for _, c := range said.ToolCalls {
		emit(event.ToolCallEnd{ToolCallID: c.ID})
	}
	if text.Len() > 0 {
		emit(event.TextMessageEnd{MessageID: id})
		said.Content = chat.Text(text.String())
	}
	return said, err
}

// A turn: a face submits it, the keeper runs an agent for it, and the face writes down
// what comes of it.
func Example() {
	ctx := context.Background()
	threads, err := session.Open(ctx, &sessiontest.Memory{}, session.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = threads.Close() }()

	in := session.Input{
		Thread: "trip", RunID: "r1", Agent: "guide",
		Messages: []chat.Message{{ID: "u1", Role: chat.User, Content: chat.Text("How is the weather?")}},
	}
	me := session.Principal{Name: "ann"}
	stream, err := threads.Submit(ctx, me, in, func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		tool := func(chat.ToolCall) string { return "sunny" }
		return session.Outcome{}, loop(ctx, r, r.Record().ID, weather, tool)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stream.Close()
	for {
		item, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := item.Event.(type) {
		case event.TextMessageContent:
			fmt.Printf("%s %q\n", e.Type(), e.Delta)
		case event.ToolCallResult:
			fmt.Printf("%s %s\n", e.Type(), e.MessageID)
		case nil:
		default:
			fmt.Println(e.Type())
		}
	}
	thread, err := threads.Thread(ctx, me, session.Ref{Owner: "ann", ID: "trip"})
	fmt.Println(thread.Title, thread.Messages, err)
	// Output:
	// RUN_STARTED
	// TOOL_CALL_START
	// TOOL_CALL_ARGS
	// TOOL_CALL_END
	// TOOL_CALL_RESULT r1-0:c1:result
	// TEXT_MESSAGE_START
	// TEXT_MESSAGE_CONTENT "It is "
	// TEXT_MESSAGE_CONTENT "sunny."
	// TEXT_MESSAGE_END
	// RUN_FINISHED
	// How is the weather? 4 <nil>
}
