package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened opens a keeper for as long as the test runs.
func opened(t testing.TB, store session.Store, o session.Options) *session.Keeper {
	t.Helper()
	k, err := session.Open(context.Background(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// ann is a principal with a thread.
func ann() session.Principal { return session.Principal{Name: "ann"} }

func annsThread() session.Ref { return session.Ref{Owner: "ann", ID: "t"} }

func user(id, text string) chat.Message {
	return chat.Message{ID: id, Role: chat.User, Content: chat.Text(text)}
}

func assistant(id, text string, calls ...string) chat.Message {
	m := chat.Message{ID: id, Role: chat.Assistant}
	if text != "" {
		m.Content = chat.Text(text)
	}
	for _, call := range calls {
		m.ToolCalls = append(m.ToolCalls, chat.ToolCall{
			ID: call, Type: "function", Function: chat.FunctionCall{Name: "tool", Arguments: "{}"},
		})
	}
	return m
}

func answer(id, call, text string) chat.Message {
	return chat.Message{ID: id, Role: chat.Tool, ToolCallID: call, Content: chat.Text(text)}
}

func input(run string, messages ...chat.Message) session.Input {
	return session.Input{Thread: "t", RunID: run, Agent: "agent", Messages: messages}
}

// says is a runner that answers with one message.
func says(id, text string) session.Runner {
	return func(_ context.Context, r *session.Run) (session.Outcome, error) {
		return session.Outcome{}, r.Add(assistant(id, text))
	}
}

// adds is a runner that adds messages and fails with err.
func adds(err error, messages ...chat.Message) session.Runner {
	return func(_ context.Context, r *session.Run) (session.Outcome, error) {
		for _, m := range messages {
			if err := r.Add(m); err != nil {
				return session.Outcome{}, err
			}
		}
		return session.Outcome{}, err
	}
}

func idle(context.Context, *session.Run) (session.Outcome, error) { return session.Outcome{}, nil }

// submit submits as ann, and closes the stream when the test ends.
func submit(t testing.TB, k *session.Keeper, in session.Input, do session.Runner) *session.Stream {
	t.Helper()
	s, err := k.Submit(context.Background(), ann(), in, do)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// rest reads a stream to its end.
func rest(t testing.TB, s *session.Stream) (all []session.Item) {
	t.Helper()
	items, err := read(s)
	if !errors.Is(err, io.EOF) {
		t.Fatalf("the stream ended with %v behind\n%s", err, shown(items))
	}
	return items
}

func read(s *session.Stream) (all []session.Item, err error) {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	for {
		i, err := s.Next(ctx)
		if err != nil {
			return all, err
		}
		all = append(all, i)
	}
}

func events(items []session.Item) (all []event.Event) {
	for _, i := range items {
		if i.Event != nil {
			all = append(all, i.Event)
		}
	}
	return all
}

func shown(items []session.Item) string { return eventtest.Text(events(items)...) }

// turn runs a turn to its end, and holds its events to the rules of AG-UI.
func turn(t testing.TB, k *session.Keeper, in session.Input, do session.Runner) []session.Item {
	t.Helper()
	s := submit(t, k, in, do)
	items := rest(t, s)
	s.Close()
	eventtest.Conforms(t, false, events(items)...)
	return items
}

// last is the last event of a run in one word.
func last(items []session.Item) string {
	switch e := items[len(items)-1].Event.(type) {
	case event.RunError:
		return e.Code
	case event.RunFinished:
		return string(e.Outcome.Type)
	}
	return "not ended"
}

// history is a thread's messages, one a line.
func history(t testing.TB, k *session.Keeper, ref session.Ref) string {
	t.Helper()
	stored, err := k.Messages(context.Background(), session.Principal{Name: ref.Owner}, ref, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var messages []chat.Message
	for _, s := range stored {
		messages = append(messages, s.Message)
	}
	return lines(messages)
}

func lines(messages []chat.Message) string {
	var all []string
	for _, m := range messages {
		line := m.ID + " " + string(m.Role)
		if m.ToolCallID != "" {
			line += " of " + m.ToolCallID
		}
		for _, call := range m.ToolCalls {
			line += " calls " + call.ID
		}
		if text := m.Content.String(); text != "" {
			line += " " + text
		}
		if m.Incomplete {
			line += " (incomplete)"
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

func want(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// A turn streams, keeps and can be read and attached to again.
func TestTurn(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	items := turn(t, k, input("r1", user("u1", "  What is\nthe weather? ")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		for _, e := range []event.Event{
			event.StepStarted{StepName: "model"},
			event.TextMessageStart{MessageID: "a1"},
			event.TextMessageContent{MessageID: "a1", Delta: "Let me "},
			event.TextMessageContent{MessageID: "a1", Delta: "look."},
			event.TextMessageEnd{MessageID: "a1"},
			event.ToolCallStart{ToolCallID: "c1", ToolCallName: "tool", ParentMessageID: "a1"},
			event.ToolCallArgs{ToolCallID: "c1", Delta: "{"},
			event.ToolCallArgs{ToolCallID: "c1", Delta: "}"},
			event.ToolCallEnd{ToolCallID: "c1"},
			event.StepFinished{StepName: "model"},
		} {
			if err := r.Emit(e); err != nil {
				return session.Outcome{}, err
			}
		}
		err := errors.Join(r.Add(assistant("a1", "Let me look.", "c1")), r.Add(answer("", "c1", "rain")), r.Commit(ctx, event.Job{Kind: "note", Key: "1"}))
		r.Use(chat.Usage{Model: "m", InputTokens: 3})
		r.Use(chat.Usage{Model: "m", InputTokens: 4, OutputTokens: 1})
		want(t, "what the model sees", lines(r.Messages()), "u1 user   What is\nthe weather? \na1 assistant calls c1 Let me look.\na1:c1:result tool of c1 rain")
		return session.Outcome{Result: []byte(`{"ok":true}`)}, errors.Join(err, r.Add(assistant("a2", "Rain.")), r.SetState([]byte(`{"asked":1}`)))
	})
	want(t, "end", last(items), "success")
	want(t, "history", history(t, k, annsThread()), "u1 user   What is\nthe weather? \na1 assistant calls c1 Let me look.\na1:c1:result tool of c1 rain\na2 assistant Rain.")
	th, err := k.Thread(t.Context(), ann(), annsThread())
	if err != nil || th.Title != "What is the weather?" || string(th.State) != `{"asked":1}` || th.Messages != 4 || th.Bytes == 0 || th.Agent != "agent" {
		t.Errorf("%+v, %v", th, err)
	}
	runs, err := k.Runs(t.Context(), ann(), annsThread(), 10)
	if err != nil || len(runs) != 1 || runs[0].Status != session.Finished || runs[0].Last != th.Head || len(runs[0].Usage) != 1 || runs[0].Usage[0].InputTokens != 7 {
		t.Errorf("%+v, %v", runs, err)
	}
	if jobs := store.Jobs(); len(jobs) != 1 {
		t.Errorf("jobs %v", jobs)
	}
}

// A run that the server begins gets an id, and says what began it and who asked for it.
func TestC_28_RunsOfTheServer(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	in := input("", user("u", "hi"))
	in.Trigger, in.Parent = session.ByMessage, "r0"
	first := turn(t, k, in, idle)[0].Event.(event.RunStarted)
	turn(t, k, input(""), idle)
	runs, err := k.Runs(t.Context(), ann(), annsThread(), 10)
	if err != nil || len(runs) != 2 || runs[0].Trigger != session.ByClient || runs[0].ID == runs[1].ID {
		t.Fatalf("%+v, %v", runs, err)
	}
	if r := runs[1]; r.ID != first.RunID || len(r.ID) < 20 || r.Trigger != session.ByMessage || r.Parent != "r0" || first.ParentRunID != "r0" {
		t.Errorf("%+v, %+v", r, first)
	}
}

var errOwn = errors.New("own")

func TestErrorsOfRunners(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	for i, c := range []struct {
		do         session.Runner
		code, text string
	}{
		{adds(errOwn), "internal", "the run failed inside hutch: its log says why"},
		{adds(&event.Failure{Code: "max_rounds", Message: "too many rounds", Cause: errOwn}), "max_rounds", "too many rounds"},
		{adds(fmt.Errorf("%w: 7 bytes, at most 6", session.ErrLimit)), "limit", "limit: 7 bytes, at most 6"},
		{func(context.Context, *session.Run) (session.Outcome, error) { panic("own") }, "internal", "the run failed inside hutch: its log says why"},
		{func(context.Context, *session.Run) (session.Outcome, error) {
			return session.Outcome{Result: []byte("{")}, nil
		}, "internal", "the run failed inside hutch: its log says why"},
	} {
		items := turn(t, k, input(fmt.Sprint("r", i)), c.do)
		e, ok := items[len(items)-1].Event.(event.RunError)
		if !ok || e.Code != c.code || e.Message != c.text || items[len(items)-1].Number == 0 {
			t.Errorf("%d: %s", i, shown(items))
		}
	}
}

// Whatever a model says that it used, the end of the run can be told and kept.
func TestUsageCanBeTold(t *testing.T) {
	const most = 1<<53 - 1
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	items := turn(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		r.Use(chat.Usage{Model: "m", InputTokens: math.MaxInt64, OutputTokens: -5, TotalTokens: most, ReasoningTokens: 1})
		r.Use(chat.Usage{Model: "m", InputTokens: math.MaxInt64, OutputTokens: 2, TotalTokens: 1, ReasoningTokens: 1})
		return session.Outcome{}, nil
	})
	end, ok := items[len(items)-1].Event.(event.RunFinished)
	if wanted := (chat.Usage{Model: "m", InputTokens: most, OutputTokens: 2, TotalTokens: most, ReasoningTokens: 2}); !ok || len(end.Usage) != 1 || end.Usage[0] != wanted {
		t.Errorf("%s", shown(items))
	}
}
