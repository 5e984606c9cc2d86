package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
)

// asKeeper makes the test program run turns on the database that is its next argument,
// in the name of the round after that, until it is killed.
const asKeeper = "__keeper"

// Each of so many principals has a thread, in which turns of some rounds of tools run.
const (
	crashThreads = 12
	crashRounds  = 3
)

func crashOwner(i int) session.Principal { return session.Principal{Name: fmt.Sprint("p", i)} }

// runUntilKilled runs turns, and acknowledges on a line of its own what a client has been
// told: each number, with the run, and each result of a tool. A line "did" comes before,
// when the tool has done what it does.
func runUntilKilled(path, round string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	db, err := open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	k, err := session.Open(ctx, db, session.Options{Jobs: func(ref session.Ref, r session.Record) []event.Job {
		return []event.Job{{Kind: "ended", Key: ref.Owner + " " + r.ID}}
	}})
	if err != nil {
		return err
	}
	ended := make(chan error)
	for p := range crashThreads {
		go func() { ended <- crashTurns(ctx, k, crashOwner(p), round) }()
	}
	return <-ended
}

func crashTurns(ctx context.Context, k *session.Keeper, p session.Principal, round string) error {
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", round, i)
		said := chat.Message{ID: "u" + id, Role: chat.User, Content: chat.Text("do it")}
		s, err := k.Submit(ctx, p, session.Input{Thread: "t", RunID: id, Agent: p.Name, Messages: []chat.Message{said}}, crashTurn)
		if err != nil {
			return err
		}
		for err == nil {
			var item session.Item
			if item, err = s.Next(ctx); err != nil {
				break
			}
			if item.Number > 0 {
				_, err = fmt.Fprintf(os.Stdout, "number %s %s %d\n", p.Name, id, item.Number)
			}
			if result, ok := item.Event.(event.ToolCallResult); ok && err == nil {
				_, err = fmt.Fprintf(os.Stdout, "result %s %s %s\n", p.Name, id, result.ToolCallID)
			}
		}
		if s.Close(); !errors.Is(err, io.EOF) {
			return err
		}
	}
}

// crashTurn acknowledges what its tools did.
func crashTurn(ctx context.Context, r *session.Run) (session.Outcome, error) {
	return turnOfRounds(ctx, r, os.Stdout)
}

// turnOfRounds streams, calls tools and answers.
func turnOfRounds(ctx context.Context, r *session.Run, did io.Writer) (session.Outcome, error) {
	rec, owner := r.Record(), r.Thread().Owner
	for i := range crashRounds {
		m := fmt.Sprintf("a%s-%d", rec.ID, i)
		for _, e := range []event.Event{
			event.TextMessageStart{MessageID: m}, event.TextMessageContent{MessageID: m, Delta: strings.Repeat("x", 200)},
			event.TextMessageContent{MessageID: m, Delta: "y"}, event.TextMessageEnd{MessageID: m},
		} {
			if err := r.Emit(e); err != nil {
				return session.Outcome{}, err
			}
		}
		call := chat.ToolCall{ID: "c" + m, Type: "function", Function: chat.FunctionCall{Name: "f", Arguments: "{}"}}
		said := chat.Message{ID: m, Role: chat.Assistant, Content: chat.Text(strings.Repeat("x", 200) + "y"), ToolCalls: []chat.ToolCall{call}}
		if err := r.Add(said); err != nil {
			return session.Outcome{}, err
		}
		if _, err := fmt.Fprintf(did, "did %s %s %s\n", owner, rec.ID, call.ID); err != nil {
			return session.Outcome{}, err
		}
		answer := chat.Message{Role: chat.Tool, ToolCallID: call.ID, Content: chat.Text("done")}
		if err := errors.Join(r.Add(answer), r.Commit(ctx)); err != nil {
			return session.Outcome{}, err
		}
	}
	return session.Outcome{}, r.Add(chat.Message{ID: "e" + rec.ID, Role: chat.Assistant, Content: chat.Text("done")})
}

// What a client was told is there after the process was killed under load, every run has
// one end that a client can see, and no tool was called twice for a run.
func TestKeeperKilledUnderLoad(t *testing.T) { everywhere(t, testKeeperKilledUnderLoad) }

func testKeeperKilledUnderLoad(t *testing.T, path string) {
	did, cutOff := map[string]int{}, 0
	for round := range 3 {
		lines := killedAfter(t, asKeeper, path, fmt.Sprint("round", round), 1500)
		told := map[string]bool{}
		for _, line := range lines {
			if call, ok := strings.CutPrefix(line, "did "); ok {
				did[call]++
			} else {
				told[line] = true
			}
		}
		for call, times := range did {
			if times != 1 {
				t.Errorf("%s was done %d times", call, times)
			}
		}
		cutOff += verifyThreads(t, path, told)
	}
	if cutOff == 0 {
		t.Error("no run was cut off: nothing was tested")
	}
}

// verifyThreads opens what was left, which ends the runs that were cut off, and looks at
// all of it; the lines that were told are of it. It returns how many runs were cut off;
// failures are the codes of those that may have failed besides.
func verifyThreads(t *testing.T, path string, told map[string]bool, failures ...string) int {
	t.Helper()
	db := openAt(t, path, store.Options{})
	k, err := session.Open(t.Context(), db, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	found, cutOff := make([]map[string]bool, crashThreads), 0
	for p := range crashThreads {
		wg.Go(func() { found[p] = verifyThread(t, db, k, crashOwner(p), failures) })
	}
	wg.Wait()
	for _, there := range found {
		for line := range there {
			delete(told, line)
		}
	}
	for p := range crashThreads {
		runs, err := k.Runs(t.Context(), crashOwner(p), session.Ref{Owner: crashOwner(p).Name, ID: "t"}, 1000)
		if err != nil {
			t.Error(err)
		}
		for _, r := range runs {
			if r.Code == session.CodeInterrupted {
				cutOff++
			}
		}
	}
	for line := range told {
		t.Errorf("a client was told, and it is not there: %s", line)
	}
	if err := errors.Join(k.Close(), db.Close()); err != nil {
		t.Error(err)
	}
	return cutOff
}

// verifyThread returns what a client of the thread is told now.
func verifyThread(t *testing.T, db *store.DB, k *session.Keeper, p session.Principal, failures []string) map[string]bool {
	ref, ctx := session.Ref{Owner: p.Name, ID: "t"}, t.Context()
	there, interrupted := map[string]bool{}, 0
	var all []event.Event
	for after := int64(0); ; {
		page, err := db.ThreadEvents(ctx, ref, session.EventQuery{After: after, Limit: 1000})
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, kept := range page {
			e, err := event.Decode(kept.Body)
			if err != nil || kept.Number != after+1 {
				t.Errorf("event %d behind %d: %v", kept.Number, after, err)
			}
			after = kept.Number
			there[fmt.Sprintf("number %s %s %d", p.Name, kept.Run, kept.Number)] = true
			if result, ok := e.(event.ToolCallResult); ok {
				there[fmt.Sprintf("result %s %s %s", p.Name, kept.Run, result.ToolCallID)] = true
			}
			if failed, ok := e.(event.RunError); ok && failed.Code == session.CodeInterrupted {
				interrupted++
			}
			all = append(all, e)
		}
		if len(page) == 0 {
			break
		}
	}
	eventtest.Conforms(t, true, all...)
	runs, err := k.Runs(ctx, p, ref, 1000)
	if err != nil {
		t.Error(err)
	}
	for _, r := range runs {
		if r.Code == session.CodeInterrupted {
			interrupted--
		}
		if !r.Status.Ended() || r.Status == session.Failed && r.Code != session.CodeInterrupted && !slices.Contains(failures, r.Code) {
			t.Errorf("run %s of %s is %s %s", r.ID, p.Name, r.Status, r.Code)
		}
	}
	if interrupted != 0 {
		t.Errorf("%s: %d more events than runs that were cut off", p.Name, interrupted)
	}
	return there
}
