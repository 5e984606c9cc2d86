package session_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// A thread that is removed while a run is about to begin in it takes neither the stream of
// that run with it nor what the run knows.
func TestRemovedWhileARunBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{}
		k := opened(t, store, session.Options{SweepEvery: 100 * time.Hour, KeepThreads: time.Hour})
		turn(t, k, input("r", user("u", "hi")), idle)
		time.Sleep(2 * time.Hour)
		g := newGate()
		var s *session.Stream
		store.swept = sync.OnceFunc(func() { // gone from the store, and the keeper does not know yet
			s = submit(t, k, input("r2", user("u2", "anew")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
				out, err := g.run(ctx, r)
				want(t, "what the model sees", lines(r.Messages()), "u2 user anew")
				want(t, "thread", r.Thread().ID, "t")
				return out, err
			})
			synctest.Wait()
		})
		if err := k.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(g.open)
		want(t, "the run", told(rest(t, s)), "RUN_STARTED RUN_FINISHED")
	})
}

// The stream of a run that is about to begin in a thread which has just been removed is
// not cut off: the run begins in a new one.
func TestRemovedBeforeARunBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{}
		k := opened(t, store, session.Options{SweepEvery: 100 * time.Hour, KeepThreads: time.Hour, Cache: session.Bounds{Bytes: 1}})
		turn(t, k, input("r", user("u", "hi")), idle)
		time.Sleep(2 * time.Hour)
		listens, err := k.Attach(t.Context(), ann(), annsThread(), 2)
		if err != nil {
			t.Fatal(err)
		}
		defer listens.Close()
		goes := make(chan bool)
		var submitted, told sync.WaitGroup
		store.set(func(h *hooked) {
			h.swept = sync.OnceFunc(func() { // gone from the store, and the keeper does not know yet
				store.set(func(h *hooked) { h.commits = func(session.Change) { <-goes } })
				told.Go(func() {
					if _, err := listens.Next(t.Context()); !errors.Is(err, session.ErrNotFound) {
						t.Errorf("who listens to the thread: %v", err)
					}
				})
				submitted.Go(func() {
					items := turn(t, k, input("r2", user("u2", "anew")), idle)
					want(t, "the run", last(items), "success")
				})
				synctest.Wait()
			})
		})
		if err := k.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		told.Wait()
		close(goes)
		submitted.Wait()
	})
}

// A stream that has not read all of its thread when that is deleted ends as others do.
func TestDeletedBeforeItWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		turn(t, k, input("r", user("u", "hi")), idle)
		all, err1 := k.Attach(t.Context(), ann(), annsThread(), 0)
		follows, err2 := k.Follow(t.Context(), ann(), annsThread())
		run, err3 := k.AttachRun(t.Context(), ann(), annsThread(), "r")
		if err := errors.Join(err1, err2, err3, k.Delete(t.Context(), ann(), annsThread())); err != nil {
			t.Fatal(err)
		}
		turn(t, k, input("r", user("u", "hi")), idle) // another thread, of the same id
		for name, s := range map[string]*session.Stream{"thread": all, "follow": follows, "run": run} {
			defer s.Close()
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			if i, err := s.Next(ctx); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s: %+v, %v", name, i, err)
			}
			stop()
		}
	})
}

// A thread that goes while a stream reads it ends the stream, and not with what looks like
// the end of a run.
func TestDeletedWhileItIsRead(t *testing.T) {
	for _, run := range []string{"", "r"} {
		synctest.Test(t, func(t *testing.T) {
			store := &hooked{}
			k := opened(t, store, session.Options{})
			turn(t, k, input("r", user("u", "hi")), idle)
			synctest.Wait()
			s, err := k.Attach(t.Context(), ann(), annsThread(), 0)
			if run != "" {
				s, err = k.AttachRun(t.Context(), ann(), annsThread(), run)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			store.set(func(h *hooked) {
				h.events = sync.OnceFunc(func() {
					if err := k.Delete(t.Context(), ann(), annsThread()); err != nil {
						t.Error(err)
					}
				})
			})
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var why error
			for why == nil {
				_, why = s.Next(ctx)
			}
			if !errors.Is(why, session.ErrNotFound) {
				t.Errorf("run %q: %v", run, why)
			}
		})
	}
}
