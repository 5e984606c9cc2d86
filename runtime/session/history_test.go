package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// A call that was handed to the client is answered by the next input, or closed before
// a model is asked again; an answer that comes too late is left out.
func TestE3_02_CallsOfTheClient(t *testing.T) {
	const unanswered = "There is no result: the call was not answered before the conversation went on. Do not assume that it was carried out."
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	items := turn(t, k, input("r1", user("u1", "one")), adds(nil, assistant("a1", "", "server", "c1", "c2"), answer("", "server", "done")))
	finished := items[len(items)-1].Event.(event.RunFinished)
	if got := fmt.Sprint(finished.Outcome.PendingToolCallIDs); got != "[c1 c2]" {
		t.Errorf("pending are %s", got)
	}
	th, err := k.Thread(t.Context(), ann(), annsThread())
	if err != nil || th.Waiting.Run != "r1" || fmt.Sprint(th.Waiting.Client) != "[c1 c2]" {
		t.Errorf("%+v, %v", th.Waiting, err)
	}
	turn(t, k, input("r2", answer("m2", "c2", "yes"), user("u2", "go on")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "left before", fmt.Sprint(r.Waiting().Client), "[c1 c2]")
		want(t, "what the model sees", lines(r.Messages()), "u1 user one\na1 assistant calls server calls c1 calls c2\n"+
			"a1:server:result tool of server done\na1:c1:result tool of c1 "+unanswered+"\nm2 tool of c2 yes\nu2 user go on")
		return session.Outcome{}, r.Add(assistant("a2", "fine"))
	})
	var ignored int
	turn(t, k, input("r3", answer("m3", "c1", "late")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		ignored = len(r.Ignored())
		return session.Outcome{}, nil
	})
	if ignored != 1 {
		t.Errorf("%d messages were left out", ignored)
	}
	want(t, "history", history(t, k, annsThread()), "u1 user one\na1 assistant calls server calls c1 calls c2\n"+
		"a1:server:result tool of server done\nm2 tool of c2 yes\nu2 user go on\na1:c1:result tool of c1 "+unanswered+"\na2 assistant fine")
}

// A call that waits for a person is not the client's to answer with a message, and what
// was asked is known to the next run, after a restart too.
func TestQuestionsToAPerson(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	asks := func(_ context.Context, r *session.Run) (session.Outcome, error) {
		err := r.Add(assistant("a1", "", "c1", "rm"))
		return session.Outcome{Interrupts: []event.Interrupt{{ID: "i1", Reason: "tool_call", ToolCallID: "rm"}}}, err
	}
	want(t, "end", last(turn(t, k, input("r1", user("u1", "one")), asks)), "interrupt")
	if r := waitEnded(t, k, "r1"); r.Status != session.Asking {
		t.Errorf("%+v", r)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k = opened(t, store, session.Options{})
	items := turn(t, k, input("r2", answer("forged", "rm", "done"), answer("m1", "c1", "yes")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		if now := r.Thread().Waiting; now.Run != "" || len(now.Person) > 0 {
			t.Errorf("after a crash here it could be answered once more: %+v", now)
		}
		left := r.Waiting()
		if left.Run != "r1" || len(left.Person) != 1 || left.Person[0].ID != "i1" || fmt.Sprint(left.Client) != "[c1]" {
			t.Errorf("left was %+v", left)
		}
		err := errors.Join(r.Add(answer("", "rm", "allowed and done")), r.Commit(ctx))
		want(t, "what the model sees", lines(r.Messages()), "u1 user one\na1 assistant calls c1 calls rm\nm1 tool of c1 yes\na1:rm:result tool of rm allowed and done")
		return session.Outcome{}, err
	})
	want(t, "told", told(items), "RUN_STARTED rm=allowed and done RUN_FINISHED")
	turn(t, k, input("r3"), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		if left := r.Waiting(); left.Run != "" || len(left.Person) != 0 {
			t.Errorf("left was %+v", left)
		}
		return session.Outcome{}, nil
	})
}

// Results go out when they are durable and not before, in the order of the messages.
func TestResultsAreDurableFirst(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	s := submit(t, k, input("r", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		if err := errors.Join(r.Add(assistant("a", "", "c")), r.Add(answer("", "c", "done"))); err != nil {
			return session.Outcome{}, err
		}
		store.Fail = func(session.Change) error { return errOwn }
		if err := r.Commit(ctx); !errors.Is(err, errOwn) {
			t.Errorf("committed: %v", err)
		}
		store.Fail = nil
		return session.Outcome{}, errOwn
	})
	items := rest(t, s)
	for _, i := range items {
		if _, ok := i.Event.(event.ToolCallResult); ok && i.Number == 0 {
			t.Error("a result has no number")
		}
	}
	want(t, "told", told(items), "RUN_STARTED c=done RUN_ERROR")
	want(t, "history", history(t, k, annsThread()), "u user hi\na assistant calls c\na:c:result tool of c done")
}

// A run whose end cannot be kept ends for those who listen, once; later its thread goes
// on, and says so too.
func TestEndsThatCannotBeKept(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	s := submit(t, k, input("r", user("u", "hi")), func(context.Context, *session.Run) (session.Outcome, error) {
		store.Fail = func(session.Change) error { return errOwn }
		return session.Outcome{}, nil
	})
	items := rest(t, s)
	s.Close() // so that nothing holds the thread
	eventtest.Conforms(t, false, events(items)...)
	want(t, "end", last(items), session.CodeStore)
	if i := items[len(items)-1]; i.Number != 0 {
		t.Errorf("the end has the number %d", i.Number)
	}
	if _, err := k.Submit(t.Context(), ann(), input("r2"), idle); !errors.Is(err, errOwn) {
		t.Errorf("begun: %v", err)
	}
	store.Fail = nil
	want(t, "the run again", told(rest(t, submit(t, k, input("r", user("u", "hi")), idle))), "RUN_STARTED RUN_ERROR")
	turn(t, k, input("r2"), idle)
	all, err := k.Attach(t.Context(), ann(), annsThread(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	items = nil
	for range 4 {
		i, err := all.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, i)
	}
	want(t, "the thread", told(items), "RUN_STARTED RUN_ERROR RUN_STARTED RUN_FINISHED")
	eventtest.Conforms(t, true, events(items)...)
}

// A thread that the store has removed behind the keeper's back begins anew.
func TestThreadsThatWereRemoved(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	turn(t, k, input("r1", user("u", "hi")), says("a", "hello"))
	if err := store.DeleteThread(t.Context(), annsThread()); err != nil {
		t.Fatal(err)
	}
	turn(t, k, input("r1", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "what the model sees", lines(r.Messages()), "u user hi")
		return session.Outcome{}, nil
	})
	store.Fail = func(session.Change) error { return session.ErrConflict }
	if _, err := k.Submit(t.Context(), ann(), input("r2"), idle); !errors.Is(err, session.ErrConflict) {
		t.Errorf("got %v", err)
	}
	store.Fail = nil
}

// What the process before left behind ends as an error that a client can see.
func TestLeftBehind(t *testing.T) {
	store := &sessiontest.Memory{}
	now := time.Now()
	queued := session.Record{ID: "r2", Trigger: session.ByClient, Agent: "agent", Status: session.Queued, Created: now}
	gone, err := session.Open(t.Context(), store, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []session.Ref{annsThread(), {Owner: "bob", ID: "t"}} {
		s, err := gone.Submit(t.Context(), session.Principal{Name: ref.Owner}, input("r1", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
			err := errors.Join(r.Add(assistant("a", "", "c")), r.Add(answer("", "c", "done")), r.Commit(ctx))
			store.Fail = func(session.Change) error { return errOwn } // as if the process ended here
			return session.Outcome{}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		rest(t, s)
		s.Close()
		store.Fail = nil
		th, err := store.Thread(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CommitThread(t.Context(), session.Change{Ref: ref, Head: th.Head, At: now, New: []session.Record{queued}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	k := opened(t, store, session.Options{Jobs: func(ref session.Ref, r session.Record) []event.Job {
		return []event.Job{{Kind: "ended", Key: ref.Owner + r.ID + r.Code}}
	}})
	again := turn(t, k, input("r1", user("u", "hi")), nil)
	want(t, "the run again", told(again)+" "+last(again), "RUN_STARTED c=done RUN_ERROR interrupted")
	for _, id := range []string{"r1", "r2"} {
		if r := waitEnded(t, k, id); r.Status != session.Failed || r.Code != session.CodeInterrupted || r.Ended.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if jobs := fmt.Sprint(store.Jobs()); strings.Count(jobs, session.CodeInterrupted) != 4 {
		t.Errorf("jobs %s", jobs)
	}
	turn(t, k, input("r3", user("u3", "and now?")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "what the model sees", lines(r.Messages()), "u user hi\na assistant calls c\na:c:result tool of c done\nu3 user and now?")
		return session.Outcome{}, nil
	})
}

// A turn costs so many commits, and no more.
func TestCommitsOfATurn(t *testing.T) {
	for rounds := range 4 {
		commits := 0
		k := opened(t, &sessiontest.Memory{Committed: func(session.Change) { commits++ }}, session.Options{})
		turn(t, k, input("r", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
			for i := range rounds {
				id := fmt.Sprint("a", i)
				emits(t, r, textStart(id), textMore(id, "x"), textMore(id, "y"), textEnd(id))
				if err := errors.Join(r.Add(assistant(id, "xy", "c"+id, "d"+id)), r.Add(answer("", "c"+id, "1")), r.Add(answer("", "d"+id, "2")), r.Commit(ctx)); err != nil {
					return session.Outcome{}, err
				}
				r.Messages()
			}
			return session.Outcome{}, r.Add(assistant("end", "done"))
		})
		if commits != 2+rounds {
			t.Errorf("%d commits for %d rounds of tools, want %d", commits, rounds, 2+rounds)
		}
	}
}

// Who has read the last event of a run finds its thread free: a next turn that follows at
// once does not wait, which would cost a commit more.
func TestTheNextTurnDoesNotWait(t *testing.T) {
	const turns = 200
	commits := 0
	k := opened(t, &sessiontest.Memory{Committed: func(session.Change) { commits++ }}, session.Options{})
	for i := range turns {
		turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), "hi")), idle)
	}
	if commits != 2*turns {
		t.Errorf("%d commits for %d turns", commits, turns)
	}
}

// A model is shown the end of a thread, from a message of a user on where it can be.
func TestWindowsAreBounded(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{Window: session.Bounds{Messages: 5}})
	for i := range 12 {
		turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), "hi")), says(fmt.Sprint("a", i), "hello"))
	}
	const last = "u10 user hi\na10 assistant hello\nu11 user hi\na11 assistant hello"
	sees := func(k *session.Keeper, run, last string) {
		t.Helper()
		turn(t, k, input(run), func(_ context.Context, r *session.Run) (session.Outcome, error) {
			want(t, "what the model sees", lines(r.Messages()), last)
			return session.Outcome{}, nil
		})
	}
	sees(k, "seen", last)
	turn(t, k, input("r12", user("u12", strings.Repeat("x", 100))), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		for i := range 6 {
			id := fmt.Sprint("b", i)
			if err := errors.Join(r.Add(assistant(id, "", "c"+id)), r.Add(answer("", "c"+id, "done")), r.Commit(ctx)); err != nil {
				return session.Outcome{}, err
			}
		}
		return session.Outcome{}, nil
	})
	sees(k, "one turn", "u12 user "+strings.Repeat("x", 100)+"\nb4 assistant calls cb4\nb4:cb4:result tool of cb4 done\nb5 assistant calls cb5\nb5:cb5:result tool of cb5 done")
	turn(t, k, input("long", user("u13", strings.Repeat("x", 600<<10)), user("u14", "hi")), idle)
	sees(k, "bytes", "u14 user hi")
}

func TestE3_20_ThreadsAreBounded(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{Thread: session.Bounds{Messages: 40}, EventBytes: 10_000})
	var most, bytes int64
	for i := range 60 {
		turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), "hi")), says(fmt.Sprint("a", i), "hello"))
		if err := trimmed(k, &most, &bytes); err != nil {
			t.Fatal(err)
		}
	}
	if most > 40 || bytes > 10_000 {
		t.Errorf("%d messages, %d bytes of events", most, bytes)
	}
	all := strings.Split(history(t, k, annsThread()), "\n")
	if len(all) < 30 || !strings.HasPrefix(all[0], "u") || all[len(all)-1] != "a59 assistant hello" {
		t.Errorf("%d messages from %s to %s", len(all), all[0], all[len(all)-1])
	}
	kept, err := store.ThreadEvents(t.Context(), annsThread(), session.EventQuery{Limit: 1})
	if err != nil || len(kept) != 1 || !strings.Contains(string(kept[0].Body), "RUN_STARTED") || kept[0].Run == "r0" {
		t.Errorf("the first event is %v, %v", kept, err)
	}
	old := turn(t, k, input("r0", user("u0", "hi")), nil)
	want(t, "a run of which nothing is left", told(old), "RUN_STARTED RUN_FINISHED")
}

// trimmed waits until the thread is trimmed, which the last run does behind its end, and
// takes its largest size.
func trimmed(k *session.Keeper, messages, bytes *int64) error {
	var th session.Thread
	var err error
	for range 1000 {
		if th, err = k.Thread(context.Background(), ann(), annsThread()); err != nil || th.Messages <= 40 && th.EventBytes <= 10_000 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	*messages, *bytes = max(*messages, th.Messages), max(*bytes, th.EventBytes)
	return err
}

func TestE3_20_PrincipalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{Threads: 3})
		s, err := k.Submit(t.Context(), ann(), inThread("0", "r", "agent"), newGate().run)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		attached := map[string]*session.Stream{}
		for _, id := range []string{"1", "2", "3", "4"} {
			time.Sleep(time.Second)
			turn(t, k, inThread(id, "r", "agent"), idle)
			if attached[id], err = k.Attach(t.Context(), ann(), session.Ref{Owner: "ann", ID: id}, 2); err != nil {
				t.Fatal(err)
			}
			defer attached[id].Close()
			ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
			_, _ = attached[id].Next(ctx) // so that it has joined
			stop()
		}
		all, err := k.Threads(t.Context(), ann(), false, session.Thread{}, 10)
		if err != nil || len(all) != 3 || all[0].ID != "4" || all[1].ID != "3" || all[2].ID != "0" {
			t.Errorf("%v, %v", all, err)
		}
		if _, err := attached["1"].Next(t.Context()); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("a stream of a thread that had to go: %v", err)
		}
	})
}

func TestH_30_OldThingsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{KeepThreads: 48 * time.Hour, KeepEvents: 24 * time.Hour})
		turn(t, k, input("r", user("u", "hi")), idle)
		time.Sleep(25 * time.Hour)
		th, err := k.Thread(t.Context(), ann(), annsThread())
		if err != nil || th.EventBytes != 0 || th.Messages != 1 {
			t.Errorf("%+v, %v", th, err)
		}
		time.Sleep(24 * time.Hour)
		if _, err := k.Thread(t.Context(), ann(), annsThread()); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		turn(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
			want(t, "what the model sees", lines(r.Messages()), "u user hi")
			return session.Outcome{}, nil
		})
	})
}

func TestTitles(t *testing.T) {
	for _, c := range []struct {
		title string
		in    []chat.Message
		want  string
	}{
		{"", nil, ""},
		{"", []chat.Message{user("1", " \n "), user("2", " a\tb "), user("3", "c")}, "a b"},
		{"", []chat.Message{user("1", strings.Repeat("é", 100))}, strings.Repeat("é", 60)},
		{"KEY-1 Do it", []chat.Message{user("1", "hi")}, "KEY-1 Do it"},
	} {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		in := input("r1", c.in...)
		in.Title = c.title
		turn(t, k, in, idle)
		turn(t, k, input("r2", user("9", "later")), idle)
		th, err := k.Thread(t.Context(), ann(), annsThread())
		if c.want == "" {
			c.want = "later"
		}
		if err != nil || th.Title != c.want {
			t.Errorf("%q, %v, want %q", th.Title, err, c.want)
		}
	}
}

// What is added to a run is checked as what comes from outside is.
func TestAddIsChecked(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{MessageBytes: 500, StateBytes: 10})
	turn(t, k, input("r", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		for _, c := range []struct {
			err error
			is  error
		}{
			{r.Add(chat.Message{Role: chat.User}), session.ErrInvalid},
			{r.Add(answer("", "none", "x")), session.ErrInvalid},
			{r.Add(user("long", strings.Repeat("x", 600))), session.ErrLimit},
			{r.Add(user("v", "x")), nil},
			{r.Add(nameless()), session.ErrInvalid},
			{r.Add(assistant("w", "", "c")), nil},
			{r.Add(chat.Message{Role: chat.Tool, ToolCallID: "c"}), nil},
			{r.Add(user("v", "x")), session.ErrInvalid},
			{r.SetState([]byte("{")), session.ErrInvalid},
			{r.SetState([]byte(`"0123456789"`)), session.ErrLimit},
			{r.Commit(ctx), nil},
			{r.Commit(ctx), nil},
		} {
			if !errors.Is(c.err, c.is) || c.is == nil && c.err != nil {
				t.Errorf("got %v, want %v", c.err, c.is)
			}
		}
		return session.Outcome{}, nil
	})
	want(t, "history", history(t, k, annsThread()), "u user hi\nv user x\nw assistant calls c\nw:c:result tool of c")
}

// nameless is a message that calls nothing in particular.
func nameless() chat.Message {
	m := assistant("nameless", "", "d")
	m.ToolCalls[0].Function.Name = ""
	return m
}

// A commit that was kept, and said not to be, leaves no gap behind: who listens is cut
// off, and finds all when it attaches again.
func TestCommitsThatWereKeptAfterAll(t *testing.T) {
	store := &doubting{}
	k := opened(t, store, session.Options{})
	s := submit(t, k, input("r1", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		store.doubts = true
		return session.Outcome{}, r.Add(assistant("a", "hello"))
	})
	items, err := read(s)
	if err == nil || last(items) != session.CodeStore {
		t.Errorf("%s, %v", shown(items), err)
	}
	number := items[0].Number
	listens, err := k.Attach(t.Context(), ann(), annsThread(), number)
	if err != nil {
		t.Fatal(err)
	}
	defer listens.Close()
	store.doubts = false
	turn(t, k, input("r2"), idle)
	var all []session.Item
	for strings.Count(told(all), "RUN_FINISHED") < 2 {
		i, err := listens.Next(t.Context())
		if errors.Is(err, session.ErrSlow) {
			if listens, err = k.Attach(t.Context(), ann(), annsThread(), number); err != nil {
				t.Fatal(err)
			}
			defer listens.Close()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, i); i.Number > 0 {
			number = i.Number
		}
	}
	want(t, "told", told(all), "a=hello RUN_FINISHED RUN_STARTED RUN_FINISHED")
}

// doubting keeps what it is given and, while it doubts, says that it did not.
type doubting struct {
	sessiontest.Memory
	doubts bool
}

func (d *doubting) CommitThread(ctx context.Context, c session.Change, jobs ...event.Job) (session.Committed, error) {
	done, err := d.Memory.CommitThread(ctx, c, jobs...)
	if err == nil && d.doubts {
		err = errOwn
	}
	return done, err
}

// Whatever breaks behind a runner, its thread is free again.
func TestBrokenEnds(t *testing.T) {
	broken := true
	k := opened(t, &sessiontest.Memory{}, session.Options{Jobs: func(session.Ref, session.Record) []event.Job {
		if broken {
			panic("own")
		}
		return nil
	}})
	items := turn(t, k, input("r1", user("u", "hi")), says("a", "hello"))
	want(t, "end", last(items), session.CodeStore)
	broken = false
	want(t, "the next", last(turn(t, k, input("r2"), idle)), "success")
	if r := waitEnded(t, k, "r1"); r.Code != session.CodeStore {
		t.Errorf("%+v", r)
	}
}

// Jobs that cause a run and jobs that it causes are kept with it, or not at all.
func TestJobsOfRuns(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	in := input("r", user("u", "hi"))
	in.Jobs = []event.Job{{Kind: "begun", Key: "1"}}
	store.Fail = func(session.Change) error { return errOwn }
	if _, err := k.Submit(t.Context(), ann(), in, idle); !errors.Is(err, errOwn) || len(store.Jobs()) != 0 {
		t.Errorf("%v, %v", err, store.Jobs())
	}
	store.Fail = nil
	turn(t, k, in, func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		return session.Outcome{}, r.Commit(ctx, event.Job{Kind: "step", Key: "1"})
	})
	if jobs := fmt.Sprint(store.Jobs()); len(store.Jobs()) != 2 || !strings.Contains(jobs, "begun") || !strings.Contains(jobs, "step") {
		t.Errorf("jobs %s", jobs)
	}
	in.Jobs = nil
	turn(t, k, in, nil) // they are no part of the input
}

// However long a thread is, a turn that only sends the new message reads as much of it.
func TestLongThreadsAreNotRead(t *testing.T) {
	store := &counting{}
	k := opened(t, store, session.Options{Window: session.Bounds{Messages: 10}})
	var reads []int
	for i := range 100 {
		store.rows = 0
		turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
			if n := len(r.Messages()); n > 10 {
				t.Errorf("turn %d: %d messages", i, n)
			}
			return session.Outcome{}, r.Add(assistant(fmt.Sprint("a", i), "hello"))
		})
		reads = append(reads, store.rows)
	}
	if reads[99] > reads[9] {
		t.Errorf("turn 10 read %d rows, turn 100 read %d", reads[9], reads[99])
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	store.rows = 0
	k = opened(t, store, session.Options{Window: session.Bounds{Messages: 10}})
	turn(t, k, input("r", user("u", "hi")), idle)
	if store.rows > 12 {
		t.Errorf("a turn with nothing in memory read %d rows", store.rows)
	}
}

// counting counts the rows of messages and events that it gives.
type counting struct {
	sessiontest.Memory
	rows int
}

func (c *counting) ThreadMessages(ctx context.Context, ref session.Ref, q session.MessageQuery) ([]session.Stored, error) {
	all, err := c.Memory.ThreadMessages(ctx, ref, q)
	c.rows += len(all)
	return all, err
}

func (c *counting) ThreadEvents(ctx context.Context, ref session.Ref, q session.EventQuery) ([]session.Kept, error) {
	all, err := c.Memory.ThreadEvents(ctx, ref, q)
	c.rows += len(all)
	return all, err
}
