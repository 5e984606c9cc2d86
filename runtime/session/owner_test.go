package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// To anybody but its owner a thread is not there: they can neither read it nor change
// it, and a thread of the same id is theirs to make.
func TestE3_15_ThreadsOfOthers(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	turn(t, k, input("r", user("u", "secret")), says("a", "hello"))
	bob := session.Principal{Name: "bob"}
	ctx, ref := t.Context(), annsThread()
	none := session.Ref{Owner: "ann", ID: "none"}
	for name, ask := range map[string]func(session.Ref) error{
		"find":     func(r session.Ref) error { _, err := k.Find(ctx, bob, r.ID); return err },
		"thread":   func(r session.Ref) error { _, err := k.Thread(ctx, bob, r); return err },
		"messages": func(r session.Ref) error { _, err := k.Messages(ctx, bob, r, "", 10); return err },
		"runs":     func(r session.Ref) error { _, err := k.Runs(ctx, bob, r, 10); return err },
		"attach":   func(r session.Ref) error { _, err := k.Attach(ctx, bob, r, 0); return err },
		"cancel":   func(r session.Ref) error { return k.Cancel(ctx, bob, r, "r") },
		"delete":   func(r session.Ref) error { return k.Delete(ctx, bob, r) },
	} {
		there, absent := ask(ref), ask(none)
		if !errors.Is(there, session.ErrNotFound) || absent == nil {
			t.Errorf("%s: %v", name, there)
		}
		if got, expected := there.Error(), "thread \"t\": not found"; got != expected {
			t.Errorf("%s: %s, want %s", name, got, expected)
		}
	}
	if all, err := k.Threads(ctx, bob, false, session.Thread{}, 10); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := k.Threads(ctx, bob, true, session.Thread{}, 10); !errors.Is(err, session.ErrReadOnly) {
		t.Errorf("all threads: %v", err)
	}
	s, err := k.Submit(ctx, bob, input("r", user("u", "bob's")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "what bob's model sees", lines(r.Messages()), "u user bob's")
		return session.Outcome{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rest(t, s)
	want(t, "ann's", history(t, k, ref), "u user secret\na assistant hello")
	want(t, "bob's", history(t, k, session.Ref{Owner: "bob", ID: "t"}), "u user bob's")
}

// The scope threads:read opens all threads, to be read.
func TestC_25_ThreadsRead(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	turn(t, k, input("r", user("u", "secret")), says("a", "hello"))
	eve := session.Principal{Name: "eve", ReadAll: true}
	ctx, ref := t.Context(), annsThread()
	found, err1 := k.Find(ctx, eve, "t")
	messages, err2 := k.Messages(ctx, eve, ref, "", 10)
	runs, err3 := k.Runs(ctx, eve, ref, 10)
	all, err4 := k.Threads(ctx, eve, true, session.Thread{}, 10)
	own, err5 := k.Threads(ctx, eve, false, session.Thread{}, 10)
	s, err6 := k.Attach(ctx, eve, ref, 0)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if found.Ref != ref || len(messages) != 2 || len(runs) != 1 || len(all) != 1 || len(own) != 0 {
		t.Errorf("%v, %v, %v, %v, %v", found.Ref, messages, runs, all, own)
	}
	if err := k.Cancel(ctx, eve, ref, "r"); !errors.Is(err, session.ErrReadOnly) {
		t.Errorf("cancel: %v", err)
	}
	if err := k.Delete(ctx, eve, ref); !errors.Is(err, session.ErrReadOnly) {
		t.Errorf("delete: %v", err)
	}
	if _, err := k.Find(ctx, eve, "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("find: %v", err)
	}
}

// With no store the input is all there is, and nothing is left after a run.
func TestC_35_Stateless(t *testing.T) {
	k := opened(t, nil, session.Options{})
	history := []chat.Message{
		{ID: "s", Role: chat.System, Content: chat.Text("be kind")}, user("u1", "one"),
		assistant("a1", "", "c1"), answer("x", "c1", "done"), assistant("a2", "first"), user("u2", "two"),
	}
	for _, run := range []string{"r1", "r2", "r1"} { // an id is free again, too
		in := input(run, history...)
		in.State = []byte(`{"n":1}`)
		items := turn(t, k, in, func(ctx context.Context, r *session.Run) (session.Outcome, error) {
			want(t, "what the model sees", lines(r.Messages()), lines(history))
			want(t, "state", string(r.Thread().State), `{"n":1}`)
			err := errors.Join(r.Add(assistant("a3", "", "c2")), r.Add(answer("", "c2", "ok")), r.Commit(ctx))
			want(t, "after a step", lines(r.Messages()), lines(history)+"\na3 assistant calls c2\na3:c2:result tool of c2 ok")
			return session.Outcome{}, errors.Join(err, r.Add(assistant("a4", "second")))
		})
		want(t, "told", told(items), "RUN_STARTED c2=ok a4=second RUN_FINISHED")
		for _, i := range items {
			if i.Number != 0 {
				t.Errorf("the number %d, and nothing is kept", i.Number)
			}
		}
	}
	for _, err := range []error{
		errOf(k.Thread(t.Context(), ann(), annsThread())),
		errOf(k.Messages(t.Context(), ann(), annsThread(), "", 10)),
		errOf(k.Attach(t.Context(), ann(), annsThread(), 0)),
		k.Delete(t.Context(), ann(), annsThread()),
	} {
		if !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

// Without a store, too, a thread has one run at a time.
func TestStatelessRunsWait(t *testing.T) {
	k := opened(t, nil, session.Options{})
	began, end := make(chan bool), make(chan bool)
	holds := func(context.Context, *session.Run) (session.Outcome, error) {
		began <- true
		<-end
		return session.Outcome{}, nil
	}
	first := submit(t, k, input("r1", user("u", "one")), holds)
	<-began
	if _, err := k.Submit(t.Context(), ann(), input("r1", user("u", "one")), idle); !errors.Is(err, session.ErrDuplicateRun) {
		t.Errorf("the same run: %v", err)
	}
	second := submit(t, k, input("r2", user("u", "two")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "what the model sees", lines(r.Messages()), "u user two")
		return session.Outcome{}, nil
	})
	end <- true
	want(t, "first", told(rest(t, first)), "RUN_STARTED RUN_FINISHED")
	want(t, "second", told(rest(t, second)), "RUN_STARTED RUN_FINISHED")
}

// Threads in which nothing happens leave memory: at once if nothing is kept of them, and
// otherwise when there are too many or they are too large.
func TestIdleThreadsLeaveMemory(t *testing.T) {
	for name, c := range map[string]struct {
		store   session.Store
		cache   session.Bounds
		threads int
	}{
		"stateless": {nil, session.Bounds{}, 0},
		"number":    {&sessiontest.Memory{}, session.Bounds{Messages: 3}, 3},
		"bytes":     {&sessiontest.Memory{}, session.Bounds{Bytes: 10_000}, 1},
		"room":      {&sessiontest.Memory{}, session.Bounds{}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := opened(t, c.store, session.Options{Cache: c.cache})
				for i := range 6 {
					in := inThread(fmt.Sprint(i), "r", "agent")
					in.Messages = []chat.Message{user("u", strings.Repeat("x", 5000))}
					turn(t, k, in, idle)
				}
				synctest.Wait()
				if threads, bytes := k.Live(); threads != c.threads || c.cache.Bytes > 0 && bytes > c.cache.Bytes {
					t.Errorf("%d threads, %d bytes", threads, bytes)
				}
			})
		})
	}
}
