package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// emits sends events, and fails the test if one is refused.
func emits(t testing.TB, r *session.Run, all ...event.Event) {
	t.Helper()
	for _, e := range all {
		if err := r.Emit(e); err != nil {
			t.Error(err)
		}
	}
}

func textStart(id string) event.Event { return event.TextMessageStart{MessageID: id} }
func textMore(id, delta string) event.Event {
	return event.TextMessageContent{MessageID: id, Delta: delta}
}
func textEnd(id string) event.Event { return event.TextMessageEnd{MessageID: id} }

// told is what a client makes of events: the texts of messages, and how runs went.
func told(items []session.Item) string {
	var all []string
	texts := map[string]string{}
	for _, e := range events(items) {
		switch e := e.(type) {
		case event.TextMessageContent:
			texts[e.MessageID] += e.Delta
		case event.TextMessageEnd:
			all = append(all, e.MessageID+"="+texts[e.MessageID])
		case event.ToolCallResult:
			all = append(all, e.ToolCallID+"="+e.Content.String())
		case event.RunStarted, event.RunFinished, event.RunError:
			all = append(all, string(e.Type()))
		}
	}
	return strings.Join(all, " ")
}

// Whenever somebody attaches, and behind whichever number, what they get is the rest of
// what there is: no gap and nothing twice.
func TestE3_09_AttachedAtAnyTime(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	const runs, rounds = 3, 6
	speaks := func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		id := r.Record().ID
		for i := range rounds {
			m := fmt.Sprint(id, "-", i)
			emits(t, r, textStart(m), textMore(m, "a"), textMore(m, "b"))
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
			emits(t, r, textMore(m, "c"), textEnd(m))
			if err := errors.Join(r.Add(assistant(m, "abc", "c"+m)), r.Add(answer("", "c"+m, "d")), r.Commit(ctx)); err != nil {
				return session.Outcome{}, err
			}
		}
		return session.Outcome{}, nil
	}
	first := submit(t, k, input("r0", user("u", "hi")), speaks)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() { attachesOften(t, k, runs*rounds*2+runs*2) })
	}
	for i := range runs - 1 {
		submit(t, k, input(fmt.Sprint("r", i+1)), speaks)
	}
	rest(t, first)
	wg.Wait()
}

// attachesOften reads a thread from its beginning, and attaches again ever so often
// behind the last number that it was given, until it has seen so much.
func attachesOften(t *testing.T, k *session.Keeper, words int) {
	var seen []session.Item // up to the last number
	for len(strings.Fields(told(seen))) < words {
		var after int64
		if len(seen) > 0 {
			after = seen[len(seen)-1].Number
		}
		s, err := k.Attach(t.Context(), ann(), annsThread(), after)
		if err != nil {
			t.Error(err)
			return
		}
		for piece := seen; ; {
			i, err := s.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if piece = append(piece, i); i.Number > 0 {
				if i.Number < after {
					t.Errorf("number %d behind %d", i.Number, after)
				}
				seen, after = piece, i.Number
			}
			if rand.IntN(20) == 0 || len(strings.Fields(told(seen))) >= words {
				break
			}
		}
		s.Close()
	}
	eventtest.Conforms(t, true, events(seen)...)
	for _, word := range strings.Fields(told(seen)) {
		if _, text, ok := strings.Cut(word, "="); ok && text != "abc" && text != "d" {
			t.Errorf("heard %s", word)
		}
	}
	if got := len(strings.Fields(told(seen))); got != words {
		t.Errorf("heard %d words, want %d", got, words)
	}
}

// Who attaches in the middle of a message gets it from its start, once.
func TestAttachedInTheMiddle(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	go1, go2 := make(chan bool), make(chan bool)
	s := submit(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		emits(t, r, textStart("a"), textMore("a", "Hel"))
		go1 <- true
		<-go2
		emits(t, r, textMore("a", "lo"), textEnd("a"))
		return session.Outcome{}, r.Add(assistant("a", "Hello"))
	})
	<-go1
	late, err := k.Attach(t.Context(), ann(), annsThread(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	again, err := k.Submit(t.Context(), ann(), input("r", user("u", "hi")), idle)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := k.Submit(t.Context(), ann(), input("r", user("u", "other")), idle); !errors.Is(err, session.ErrDuplicateRun) {
		t.Errorf("another input while it runs: %v", err)
	}
	const wanted = "RUN_STARTED a=Hello RUN_FINISHED"
	var got []session.Item
	for len(got) < 3 {
		i, err := late.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, i)
	}
	go2 <- true
	want(t, "from the start", told(rest(t, s)), wanted)
	want(t, "the same run again", told(rest(t, again)), wanted)
	for {
		i, err := late.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, i); i.Event != nil && i.Event.Type() == event.TypeRunFinished {
			break
		}
	}
	want(t, "in the middle", told(got), wanted)
	want(t, "kept", told(rest(t, submit(t, k, input("r", user("u", "hi")), idle))), wanted)
}

// A stream may be of one run, or begin with the run in progress.
func TestStreamsOfARun(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	turn(t, k, input("r1", user("u1", "hi")), says("a1", "one"))
	go1, go2 := make(chan bool), make(chan bool)
	submit(t, k, input("r2", user("u2", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		err := errors.Join(r.Add(assistant("a2", "two")), r.Commit(ctx))
		go1 <- true
		<-go2
		return session.Outcome{}, errors.Join(err, r.Add(assistant("a3", "three")))
	})
	<-go1
	first, err1 := k.AttachRun(t.Context(), ann(), annsThread(), "r1")
	second, err2 := k.AttachRun(t.Context(), ann(), annsThread(), "r2")
	all, err3 := k.Follow(t.Context(), ann(), annsThread())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Stream{first, second, all} {
		defer s.Close()
	}
	go2 <- true
	want(t, "one that has ended", told(rest(t, first)), "RUN_STARTED a1=one RUN_FINISHED")
	want(t, "one in progress", told(rest(t, second)), "RUN_STARTED a2=two a3=three RUN_FINISHED")
	turn(t, k, input("r3"), says("a4", "four"))
	var items []session.Item
	for strings.Count(told(items), "RUN_FINISHED") < 2 {
		i, err := all.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, i)
	}
	want(t, "all that follow", told(items), "RUN_STARTED a2=two a3=three RUN_FINISHED RUN_STARTED a4=four RUN_FINISHED")
	later, err := k.Follow(t.Context(), ann(), annsThread())
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	turn(t, k, input("r4"), idle)
	if i, err := later.Next(t.Context()); err != nil || i.RunID != "r4" {
		t.Errorf("from now on: %+v, %v", i, err)
	}
	for _, err := range []error{
		errOf(k.AttachRun(t.Context(), ann(), annsThread(), "none")),
		errOf(k.AttachRun(t.Context(), session.Principal{Name: "bob"}, annsThread(), "r1")),
		errOf(k.Follow(t.Context(), session.Principal{Name: "bob"}, annsThread())),
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	page, err := k.Messages(t.Context(), ann(), annsThread(), "a3", 2)
	if err != nil || len(page) != 2 || page[1].ID != "a2" {
		t.Errorf("%v, %v", page, err)
	}
	if _, err := k.Messages(t.Context(), ann(), annsThread(), "none", 2); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A reader that is too slow is cut off and told so; it misses nothing when it attaches
// again, and the run does not wait for it.
func TestSlowReadersAreCutOff(t *testing.T) {
	for name, o := range map[string]session.Options{"events": {Buffer: 10}, "bytes": {BufferBytes: 10_000}} {
		t.Run(name, func(t *testing.T) {
			k := opened(t, &sessiontest.Memory{}, o)
			const deltas, piece = 100, 8 << 10
			slow := submit(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
				emits(t, r, textStart("a"))
				for range deltas {
					emits(t, r, textMore("a", strings.Repeat("x", piece)))
				}
				emits(t, r, textEnd("a"))
				return session.Outcome{}, nil
			})
			waitEnded(t, k, "r")
			items, err := read(slow)
			if !errors.Is(err, session.ErrSlow) || len(items) == 0 || len(items) > deltas/2 {
				t.Errorf("%d items, %v", len(items), err)
			}
			number := items[0].Number
			s, err := k.Attach(t.Context(), ann(), annsThread(), number)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var more []session.Item
			for range 4 {
				i, err := s.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				more = append(more, i)
			}
			want(t, "again", told(more), "a="+strings.Repeat("x", deltas*piece)+" RUN_FINISHED")
		})
	}
}

// An answer that comes all at once in thousands of small pieces, as from a proxy that holds
// it back, cuts nobody off: pieces of one text that wait become one, in their order.
func TestManySmallPiecesCutNobodyOff(t *testing.T) {
	for name, of := range map[string]struct {
		begins, ends func(id string) event.Event
		more         func(id, text string) event.Event
	}{
		"text": {textStart, textEnd, textMore},
		"reasoning": {
			func(id string) event.Event { return event.ReasoningMessageStart{MessageID: id, Role: chat.Reasoning} },
			func(id string) event.Event { return event.ReasoningMessageEnd{MessageID: id} },
			func(id, text string) event.Event { return event.ReasoningMessageContent{MessageID: id, Delta: text} },
		},
		"arguments": {
			func(id string) event.Event { return event.ToolCallStart{ToolCallID: id, ToolCallName: "t"} },
			func(id string) event.Event { return event.ToolCallEnd{ToolCallID: id} },
			func(id, text string) event.Event { return event.ToolCallArgs{ToolCallID: id, Delta: text} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := opened(t, &sessiontest.Memory{}, session.Options{Buffer: 40})
			var said [2]strings.Builder
			s := submit(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
				emits(t, r, of.begins("a"), of.begins("b"))
				for n := range 10_000 {
					text := fmt.Sprint(n, ",")
					at := n / 5000
					said[at].WriteString(text)
					emits(t, r, of.more([]string{"a", "b"}[at], text))
				}
				emits(t, r, of.ends("a"), of.ends("b"))
				return session.Outcome{}, nil
			})
			waitEnded(t, k, "r")
			items, err := read(s)
			if !errors.Is(err, io.EOF) || len(items) > 40 {
				t.Fatalf("%d items, %v", len(items), err)
			}
			var got [2]strings.Builder
			for _, i := range items {
				switch e := i.Event.(type) {
				case event.TextMessageContent:
					got[e.MessageID[0]-'a'].WriteString(e.Delta)
				case event.ReasoningMessageContent:
					got[e.MessageID[0]-'a'].WriteString(e.Delta)
				case event.ToolCallArgs:
					got[e.ToolCallID[0]-'a'].WriteString(e.Delta)
				}
			}
			for at := range said {
				if got[at].String() != said[at].String() {
					t.Errorf("%d: %d bytes, want %d", at, got[at].Len(), said[at].Len())
				}
			}
		})
	}
}

// H10: all that do not read hold no more together than they may, and who reads is not cut
// off for them.
func TestSlowReadersAreBoundedTogether(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{LagBytes: 1 << 20})
	read := make(chan struct{})
	stream := submit(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		emits(t, r, textStart("a"))
		for range 100 {
			emits(t, r, textMore("a", strings.Repeat("x", 10<<10)))
			<-read
		}
		emits(t, r, textEnd("a"))
		return session.Outcome{}, nil
	})
	var slow []*session.Stream
	for range 20 {
		s, err := k.AttachRun(t.Context(), ann(), annsThread(), "r")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Next(t.Context()); err != nil { // it has joined
			t.Fatal(err)
		}
		slow = append(slow, s)
	}
	held, cut := 0, 0
	for {
		i, err := stream.Next(t.Context())
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("who reads is told %v", err)
			}
			break
		}
		if i.Event != nil && i.Event.Type() == event.TypeTextMessageContent {
			select {
			case read <- struct{}{}:
			case <-time.After(10 * time.Second):
				t.Fatal("the run does not go on")
			}
		}
	}
	stream.Close()
	for _, s := range slow {
		for {
			i, err := s.Next(t.Context())
			if err != nil {
				if errors.Is(err, session.ErrSlow) {
					cut++
				}
				break
			}
			if more, ok := i.Event.(event.TextMessageContent); ok {
				held += len(more.Delta)
			}
		}
	}
	if most := 2 << 20; cut == 0 || held > most {
		t.Errorf("%d are cut off, and all hold %d bytes, at most %d", cut, held, most)
	}
}

// waitEnded waits for the end of a run to be kept.
func waitEnded(t testing.TB, k *session.Keeper, id string) session.Record {
	t.Helper()
	for range 10_000 {
		runs, err := k.Runs(context.Background(), ann(), annsThread(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if r.ID == id && r.Status.Ended() {
				return r
			}
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("run %s does not end", id)
	return session.Record{}
}

// A run goes on when nobody listens any more.
func TestE3_09_RunsGoOnAlone(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	gone := make(chan bool)
	s := submit(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		<-gone
		return session.Outcome{}, r.Add(assistant("a", "done"))
	})
	s.Close()
	s.Close()
	close(gone)
	if r := waitEnded(t, k, "r"); r.Status != session.Finished {
		t.Errorf("%+v", r)
	}
	want(t, "history", history(t, k, annsThread()), "u user hi\na assistant done")
}

func TestStreamsEnd(t *testing.T) {
	store := &sessiontest.Memory{}
	k, err := session.Open(t.Context(), store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turn(t, k, input("r", user("u", "hi")), idle)
	if _, err := k.Attach(t.Context(), ann(), session.Ref{Owner: "ann", ID: "none"}, 0); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("attached to nothing: %v", err)
	}
	deleted, err1 := k.Attach(t.Context(), ann(), annsThread(), 2)
	if err1 != nil {
		t.Fatal(err1)
	}
	defer deleted.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if _, err := deleted.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if err := k.Delete(t.Context(), ann(), annsThread()); err != nil {
		t.Fatal(err)
	}
	if _, err := deleted.Next(t.Context()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of a thread that was deleted: %v", err)
	}
	turn(t, k, input("r", user("u", "hi")), idle)
	closed, err2 := k.Attach(t.Context(), ann(), annsThread(), 2)
	if err := errors.Join(err2, k.Close(), k.Close()); err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	if _, err := closed.Next(t.Context()); !errors.Is(err, session.ErrClosed) {
		t.Errorf("of a keeper that was closed: %v", err)
	}
	if _, err := k.Submit(t.Context(), ann(), input("s"), idle); !errors.Is(err, session.ErrClosed) {
		t.Errorf("submitted: %v", err)
	}
}

// What cannot follow is refused, and the run goes on.
func TestE3_03_EventsOutOfOrder(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{TailBytes: 2000})
	items := turn(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		refused := func(is error, all ...event.Event) {
			t.Helper()
			for _, e := range all {
				if err := r.Emit(e); !errors.Is(err, is) {
					t.Errorf("%s: %v, want %v", e.Type(), err, is)
				}
			}
		}
		call, reasoning := event.ToolCallStart{ToolCallID: "c", ToolCallName: "f", ParentMessageID: "a"}, event.ReasoningStart{MessageID: "t"}
		refused(session.ErrOrder,
			event.RunStarted{ThreadID: "t", RunID: "r"}, event.RunFinished{ThreadID: "t", RunID: "r"}, event.RunError{Message: "x"},
			event.ToolCallResult{MessageID: "x", ToolCallID: "c", Content: assistant("x", "y").Content},
			event.TextMessageChunk{MessageID: "x"}, event.ToolCallChunk{ToolCallID: "c", ToolCallName: "f"}, event.ReasoningMessageChunk{MessageID: "x"},
			textMore("a", "x"), textEnd("a"), event.ToolCallArgs{ToolCallID: "c"}, event.ToolCallEnd{ToolCallID: "c"},
			event.ReasoningMessageContent{MessageID: "t"}, event.ReasoningMessageEnd{MessageID: "t"}, event.ReasoningEnd{MessageID: "t"},
			event.StepFinished{StepName: "s"})
		refused(session.ErrInvalid, event.TextMessageStart{}, event.StateSnapshot{Snapshot: []byte("{")}, event.Custom{})
		emits(t, r, textStart("a"), call, event.StepStarted{StepName: "s"}, reasoning, event.ReasoningMessageStart{MessageID: "t", Role: "reasoning"})
		refused(session.ErrOrder, textStart("a"), call, event.StepStarted{StepName: "s"}, reasoning)
		emits(t, r, event.ToolCallEnd{ToolCallID: "c"})
		refused(session.ErrOrder, call)
		for _, m := range []chat.Message{assistant("a", "x"), assistant("a", "", "other")} {
			if err := r.Add(m); !errors.Is(err, session.ErrOrder) {
				t.Errorf("added while it is streamed: %v", err)
			}
		}
		emits(t, r, event.StepStarted{StepName: "s", Owned: event.Owned{SubagentRunID: "b"}}, event.Raw{Event: []byte("1")}, event.SubagentStarted{SubagentRunID: "b", Name: "n"})
		refused(session.ErrLimit, textMore("a", strings.Repeat("x", 2000)))
		return session.Outcome{}, nil
	})
	want(t, "end", last(items), "success")
	kept := shown(turn(t, k, input("r", user("u", "hi")), nil))
	if !strings.Contains(shown(items), `"RAW"`) || strings.Contains(kept, `"RAW"`) || !strings.Contains(kept, `"STEP_STARTED"`) {
		t.Errorf("kept is\n%s", kept)
	}
}

// What a run leaves open is closed before its end, and what it said is kept.
func TestH_16_CutOffRuns(t *testing.T) {
	open := func(r *session.Run) {
		emits(t, r, event.StepStarted{StepName: "s"}, event.ReasoningStart{MessageID: "t"}, event.ReasoningMessageStart{MessageID: "t", Role: "reasoning"},
			event.ReasoningMessageContent{MessageID: "t", Delta: "hm"}, textStart("a"), textMore("a", "Hel"),
			event.ToolCallStart{ToolCallID: "c1", ToolCallName: "f", ParentMessageID: "a"}, event.ToolCallArgs{ToolCallID: "c1", Delta: "{}"}, event.ToolCallEnd{ToolCallID: "c1"},
			event.ToolCallStart{ToolCallID: "c2", ToolCallName: "f", ParentMessageID: "a"}, event.ToolCallArgs{ToolCallID: "c2", Delta: `{"a`},
			event.TextMessageStart{MessageID: "n", Role: "user"}, event.SubagentStarted{SubagentRunID: "b", Name: "n"})
	}
	for name, c := range map[string]struct {
		after   func(ctx context.Context, k *session.Keeper) error
		code    string
		history string
	}{
		"failed":    {func(context.Context, *session.Keeper) error { return errOwn }, "internal", "u user hi\na assistant calls c1 Hel (incomplete)"},
		"succeeded": {func(context.Context, *session.Keeper) error { return nil }, "success", "u user hi\na assistant calls c1 calls c2 Hel (incomplete)"},
		"cancelled": {func(ctx context.Context, k *session.Keeper) error {
			if err := k.Cancel(ctx, ann(), annsThread(), "r"); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}, "cancelled", "u user hi\na assistant calls c1 Hel (incomplete)"},
	} {
		t.Run(name, func(t *testing.T) {
			k := opened(t, &sessiontest.Memory{}, session.Options{})
			do := func(ctx context.Context, r *session.Run) (session.Outcome, error) {
				open(r)
				return session.Outcome{}, c.after(ctx, k)
			}
			items := turn(t, k, input("r", user("u", "hi")), do)
			want(t, "end", last(items), c.code)
			if ends := strings.Contains(shown(items), `"TOOL_CALL_END","toolCallId":"c2"`); ends == (name == "failed") {
				t.Errorf("a call that was cut off ends: %t", ends)
			}
			want(t, "history", history(t, k, annsThread()), c.history)
			kept := rest(t, submit(t, k, input("r", user("u", "hi")), do))
			eventtest.Conforms(t, false, events(kept)...)
			want(t, "end as kept", last(kept), c.code)
		})
	}
}

// An attached stream costs little while nothing happens.
func TestIdleStreamsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		turn(t, k, input("r1", user("u", "hi")), idle)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				s, err := k.Attach(t.Context(), ann(), annsThread(), 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				var all []session.Item
				for strings.Count(told(all), "RUN_FINISHED") < 2 {
					i, err := s.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					all = append(all, i)
				}
				eventtest.Conforms(t, true, events(all)...)
			})
		}
		synctest.Wait()
		turn(t, k, input("r2"), says("a", "hello"))
		wg.Wait()
	})
}
