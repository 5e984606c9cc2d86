package event_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/protocol/tool"
)

var update = flag.Bool("update", false, "write testdata/guard.txtar anew")

// played yields what the lines of a script say: events as JSON, and a few words for
// what no JSON can say.
func played(t *testing.T, script string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for line := range strings.Lines(script) {
			var e event.Event
			var err error
			switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
			case "finish":
				e = event.RunFinished{}
			case "shapeless":
				e = event.TextMessageContent{Delta: "x"}
			case "nothing":
			case "panic":
				panic("secret")
			case "fail":
				err = errors.New(rest)
			default:
				if e, err = event.Decode([]byte(line)); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func options(name string) event.GuardOptions {
	return event.GuardOptions{ThreadID: "t", RunID: map[bool]string{false: "r"}[strings.HasPrefix(name, "many")], Many: strings.HasPrefix(name, "many")}
}

// Every rule that Guard keeps, with a stream that breaks it. What comes out conforms,
// and stays the same when it is guarded again.
func TestE3_03_GuardKeepsTheOrder(t *testing.T) {
	const file = "testdata/guard.txtar"
	scripts, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range scripts.Files {
		script, want, _ := strings.Cut(string(f.Data), "=>\n")
		o := options(f.Name)
		events, errs := eventtest.Collect(event.Guard(played(t, script), o))
		eventtest.Conforms(t, o.Many, events...)
		got := eventtest.Text(events...)
		for _, err := range errs {
			text, _, _ := strings.Cut(err.Error(), "\n")
			got += "log: " + text + "\n"
		}
		if *update {
			scripts.Files[i].Data = []byte(script + "=>\n" + got)
		} else if got != want {
			t.Errorf("%s: got\n%swant\n%s", f.Name, got, want)
		}
		again, _ := eventtest.Collect(event.Guard(event.Guard(played(t, script), o), o))
		if twice := eventtest.Text(again...); twice != eventtest.Text(events...) {
			t.Errorf("%s: guarded twice\n%s", f.Name, twice)
		}
		if strings.Contains(eventtest.Text(events...), "secret") {
			t.Errorf("%s: a peer reads what only the log should say", f.Name)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(scripts), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGuardStopsWithItsReader(t *testing.T) {
	stopped := false
	stream := func(yield func(event.Event, error) bool) {
		defer func() { stopped = true }()
		for yield(event.RunStarted{ThreadID: "t", RunID: "r"}, nil) && yield(event.StepStarted{StepName: "s"}, nil) {
			t.Error("went on")
		}
		yield(event.RunError{}, nil) // one that does not look whether it should stop
	}
	for _, err := range event.Guard(stream, event.GuardOptions{}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if !stopped {
		t.Error("the stream goes on without a reader")
	}
}

// What the reader does wrong is its own affair.
func TestGuardLetsTheReaderPanic(t *testing.T) {
	defer func() {
		if p := recover(); p != "mine" {
			t.Errorf("recovered %v", p)
		}
	}()
	for _, err := range event.Guard(played(t, `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`), event.GuardOptions{}) {
		if err == nil {
			panic("mine")
		}
	}
}

func TestH20_ErrorsAsPeersReadThem(t *testing.T) {
	for _, c := range []struct {
		err           error
		code, message string
	}{
		{errors.New("secret"), "internal", "its log says why"},
		{fmt.Errorf("secret: %w", &event.Failure{Code: "llm_unavailable", Message: "the model is down", Cause: errors.New("secret")}), "llm_unavailable", "the model is down"},
		{fmt.Errorf("secret: %w", context.Canceled), "cancelled", "cancelled"},
		{fmt.Errorf("secret: %w", context.DeadlineExceeded), "timeout", "longer"},
		{fmt.Errorf("secret: %w", tool.ErrCancelled), "cancelled", "cancelled"},
		{fmt.Errorf("secret: %w", tool.ErrTimeout), "timeout", "longer"},
		{fmt.Errorf("secret: %w", tool.ErrLimit), "limit", "limit"},
		{fmt.Errorf("secret: %w", tool.ErrBusy), "busy", "try again"},
		{fmt.Errorf("secret: %w", tool.ErrUnavailable), "unavailable", "try again"},
	} {
		got := event.ErrorOf(c.err)
		if got.Code != c.code || !strings.Contains(got.Message, c.message) || strings.Contains(got.Message, "secret") {
			t.Errorf("%v: %+v, want %s with %s", c.err, got, c.code, c.message)
		}
	}
	f := &event.Failure{Code: "x", Message: "m", Cause: context.Canceled}
	if f.Error() != "m: context canceled" || !errors.Is(f, context.Canceled) || (&event.Failure{Message: "m"}).Error() != "m" || (&event.Failure{Message: "m", Cause: errors.New("m")}).Error() != "m" {
		t.Error(f)
	}
}

// FuzzGuard makes any sequence of events of its bytes: two for each, which kind and
// about what. Whatever it is, a conforming stream comes out, with one error for the log
// at most.
func FuzzGuard(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add([]byte{0, 0, 4, 0, 5, 0, 6, 0, 1, 0}, false)
	f.Add([]byte{0, 0, 8, 0, 9, 0, 10, 0, 11, 0, 1, 0}, true)
	f.Add([]byte{0, 0, 3, 16, 12, 16, 13, 16, 18, 16, 19, 0, 1, 2, 0, 0, 2, 0}, true)
	f.Fuzz(func(t *testing.T, script []byte, many bool) {
		o := event.GuardOptions{Many: many}
		stream := scripted(script)
		events, errs := eventtest.Collect(event.Guard(stream, o))
		if err := eventtest.Verify(many, events...); err != nil {
			t.Fatalf("%v in\n%s", err, eventtest.Text(events...))
		}
		again, _ := eventtest.Collect(event.Guard(event.Guard(stream, o), o))
		if one, two := eventtest.Text(events...), eventtest.Text(again...); one != two {
			t.Fatalf("guarded twice\n%sonce\n%s", two, one)
		}
		if len(errs) > 1 {
			t.Fatalf("%d errors: %v", len(errs), errs)
		}
	})
}

// scripted yields what bytes stand for.
func scripted(script []byte) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for pair := range slices.Chunk(script, 2) {
			if e, err := made(pair); !yield(e, err) {
				return
			}
		}
	}
}

// made is the event that two bytes stand for.
func made(pair []byte) (event.Event, error) {
	about := byte(0)
	if len(pair) > 1 {
		about = pair[1]
	}
	id := string('a' + about&1)
	owned := event.Owned{SubagentRunID: []string{"", "", "s", "q"}[about>>4&3]}
	null := []byte("null")
	outcome := []*event.Outcome{nil, {Type: event.Cancelled}, {Type: event.Interrupted, Interrupts: []event.Interrupt{{ID: "i", SubagentRunID: owned.SubagentRunID}}}, {Type: event.Success, PendingToolCallIDs: []string{"z"}}}[about>>1&3]
	events := []event.Event{
		event.RunStarted{ThreadID: "t", RunID: id},
		event.RunFinished{Outcome: outcome},
		event.RunError{Message: "m"},
		event.StepStarted{StepName: id, Owned: owned},
		event.TextMessageStart{MessageID: id, Owned: owned},
		event.TextMessageContent{MessageID: id, Delta: "x", Owned: owned},
		event.TextMessageEnd{MessageID: id, Owned: owned},
		event.TextMessageChunk{MessageID: id[about>>1&1:], Delta: id, Owned: owned},
		event.ToolCallStart{ToolCallID: id, ToolCallName: "n", ParentMessageID: id, Owned: owned},
		event.ToolCallArgs{ToolCallID: id, Delta: "{}", Owned: owned},
		event.ToolCallEnd{ToolCallID: id, Owned: owned},
		event.ToolCallResult{MessageID: id, ToolCallID: id, Content: content("x"), Owned: owned},
		event.SubagentStarted{SubagentRunID: owned.SubagentRunID, Name: "n", ParentSubagentRunID: []string{"", "s", "q", ""}[about>>1&3]},
		event.ReasoningStart{MessageID: id, Owned: owned},
		event.ReasoningMessageStart{MessageID: id, Owned: owned},
		event.ReasoningMessageContent{MessageID: id, Delta: "x", Owned: owned},
		event.ReasoningMessageEnd{MessageID: id, Owned: owned},
		event.ReasoningEnd{MessageID: id, Owned: owned},
		event.ReasoningMessageChunk{MessageID: id[about>>1&1:], Delta: "x", Owned: owned},
		event.SubagentFinished{SubagentRunID: owned.SubagentRunID},
		event.SubagentError{SubagentRunID: owned.SubagentRunID, Message: "m"},
		event.StepFinished{StepName: id, Owned: owned},
		event.ToolCallChunk{ToolCallID: id[about>>1&1:], ToolCallName: []string{"n", ""}[about>>2&1], ParentMessageID: id, Delta: "{", Owned: owned},
		event.ReasoningEncryptedValue{Subtype: []string{"message", "tool-call"}[about>>1&1], EntityID: id, EncryptedValue: "e", Owned: owned},
		event.MessagesSnapshot{Messages: messages(id, int(about>>1&3))},
		event.ActivitySnapshot{MessageID: id, ActivityType: "x", Content: []byte("{}"), Replace: []*bool{nil, new(bool)}[about>>1&1], Owned: owned},
		event.ActivityDelta{MessageID: id, ActivityType: "x", Owned: owned},
		event.StateSnapshot{Snapshot: null, Owned: owned},
		event.StateDelta{Owned: owned},
		event.Raw{Event: null, Owned: owned},
		event.Custom{Name: id, Value: null, Owned: owned},
		nil,
	}
	if int(pair[0]) > 200 {
		return nil, errors.New("failed")
	}
	return events[int(pair[0])%len(events)], nil
}
