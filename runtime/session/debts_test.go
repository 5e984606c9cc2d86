package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// Who attaches when the end of a run could not be kept, and before the thread goes on, is
// told of that end all the same: once, whether they follow the run or the thread.
func TestAttachedAfterALostEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sessiontest.Memory{}
		k := opened(t, store, session.Options{})
		begun, end := make(chan bool), make(chan bool)
		s := submit(t, k, input("r", user("u", "hi")), func(context.Context, *session.Run) (session.Outcome, error) {
			begun <- true
			<-end
			store.Fail = func(session.Change) error { return errOwn }
			return session.Outcome{}, nil
		})
		<-begun
		one, err1 := k.AttachRun(t.Context(), ann(), annsThread(), "r")
		all, err2 := k.Attach(t.Context(), ann(), annsThread(), 0)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		defer all.Close()
		end <- true
		want(t, "who listened", last(rest(t, s)), session.CodeStore)
		synctest.Wait()
		items := rest(t, one)
		want(t, "who was about to", told(items)+" "+last(items), "RUN_STARTED RUN_ERROR store")
		items = next(t, all, 2)
		follows, err := k.Follow(t.Context(), ann(), annsThread())
		if err != nil {
			t.Fatal(err)
		}
		defer follows.Close()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if i, err := follows.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who follows the thread from now on is told %+v, %v", i, err)
		}
		store.Fail = nil
		turn(t, k, input("r2"), idle)
		items = append(items, next(t, all, 2)...)
		want(t, "the thread", told(items), "RUN_STARTED RUN_ERROR RUN_STARTED RUN_FINISHED")
		eventtest.Conforms(t, true, events(items)...)
	})
}

// A run that waits, is cancelled, and whose end cannot be kept, is ended by the next run:
// with the jobs of that. So is one whose beginning was kept though the store said it was
// not.
func TestDebtsAreStoredLater(t *testing.T) {
	for _, name := range []string{"cancelled while it waits", "begun after all", "recorded after all"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &doubting{}
				k := opened(t, store, session.Options{Jobs: func(_ session.Ref, r session.Record) []event.Job {
					return []event.Job{{Kind: "ended", Key: r.ID}}
				}})
				g := newGate()
				first := submit(t, k, input("first", user("u", "hi")), g.run)
				synctest.Wait()
				switch name {
				case "cancelled while it waits":
					waits := submit(t, k, input("r"), idle)
					store.Fail = func(session.Change) error { return errOwn }
					if err := k.Cancel(t.Context(), ann(), annsThread(), "r"); err != nil {
						t.Fatal(err)
					}
					want(t, "the one that waited", last(rest(t, waits)), "cancelled")
					store.Fail = nil
				case "recorded after all":
					store.doubts = true
					if _, err := k.Submit(t.Context(), ann(), input("r"), idle); !errors.Is(err, errOwn) {
						t.Fatal(err)
					}
					store.doubts = false
				}
				close(g.open)
				rest(t, first)
				if name == "begun after all" {
					store.doubts = true
					if _, err := k.Submit(t.Context(), ann(), input("r"), idle); !errors.Is(err, errOwn) {
						t.Fatal(err)
					}
					store.doubts = false
				}
				turn(t, k, input("next"), idle)
				if left, err := store.UnfinishedRuns(t.Context(), 10); err != nil || len(left) != 0 {
					t.Errorf("left are %+v, %v", left, err)
				}
				if jobs := fmt.Sprint(store.Jobs()); !strings.Contains(jobs, "ended r ") {
					t.Errorf("jobs %s", jobs)
				}
				all, err := k.Attach(t.Context(), ann(), annsThread(), 0)
				if err != nil {
					t.Fatal(err)
				}
				defer all.Close()
				n := 4
				if name == "begun after all" {
					n = 6
				}
				eventtest.Conforms(t, true, events(next(t, all, n))...)
			})
		})
	}
}

// A run that was recorded though the store said that it was not, and whose turn comes at
// that moment, is run.
func TestRecordedAfterAllAndBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recording{}
		k := opened(t, store, session.Options{PerAgent: 1})
		turn(t, k, input("before", user("u", "hi")), idle)
		g := newGate()
		first := submit(t, k, inThread("x", "first", "agent"), g.run)
		synctest.Wait()
		store.recorded = func() { // the agent is free, and the second run is about to begin
			close(g.open)
			rest(t, first)
		}
		want(t, "the second", told(turn(t, k, input("second"), idle)), "RUN_STARTED RUN_FINISHED")
		want(t, "the next", told(turn(t, k, input("third"), idle)), "RUN_STARTED RUN_FINISHED")
	})
}

// recording says that it did not keep that a run waits, which it did.
type recording struct {
	sessiontest.Memory
	recorded func()
}

func (s *recording) CommitThread(ctx context.Context, c session.Change, jobs ...event.Job) (session.Committed, error) {
	done, err := s.Memory.CommitThread(ctx, c, jobs...)
	if len(c.New) == 1 && c.New[0].Status == session.Queued {
		s.recorded()
		return done, errOwn
	}
	return done, err
}

// Debts are remembered up to a number, while the store fails for long.
func TestDebtsAreBounded(t *testing.T) {
	store := &sessiontest.Memory{Fail: func(session.Change) error { return errOwn }}
	k := opened(t, store, session.Options{})
	for i := range 1200 {
		if _, err := k.Submit(t.Context(), ann(), inThread(fmt.Sprint(i%50), fmt.Sprint(i), "agent"), idle); !errors.Is(err, errOwn) {
			t.Fatal(err)
		}
	}
	if n := k.Debts(); n != 1000 {
		t.Errorf("%d debts", n)
	}
	store.Fail = nil
	for i := range 50 {
		turn(t, k, inThread(fmt.Sprint(i), "r", "agent"), idle)
	}
	if n := k.Debts(); n != 0 {
		t.Errorf("%d debts are left", n)
	}
}

// A debt that comes while others are paid is paid later.
func TestDebtsThatComeWhileOthersArePaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{}
		k := opened(t, store, session.Options{})
		g := newGate()
		first := submit(t, k, input("first", user("u", "hi")), g.run)
		synctest.Wait()
		second, third := submit(t, k, input("second"), idle), submit(t, k, input("third"), idle)
		begins, goes := make(chan bool, 1), make(chan bool)
		store.set(func(h *hooked) {
			h.commits = func(c session.Change) {
				if len(c.Runs) > 0 && c.Runs[0].Status == session.Running {
					begins <- true
					<-goes
				}
			}
		})
		close(g.open)
		<-begins
		if err := k.Cancel(t.Context(), ann(), annsThread(), "third"); err != nil { // and the thread is busy for too long
			t.Fatal(err)
		}
		store.set(func(h *hooked) { h.commits = nil })
		close(goes)
		want(t, "ends", last(rest(t, first))+" "+last(rest(t, second))+" "+last(rest(t, third)), "success success cancelled")
		turn(t, k, input("next"), idle)
		if left, err := store.UnfinishedRuns(t.Context(), 10); err != nil || len(left) != 0 {
			t.Errorf("left are %+v, %v", left, err)
		}
	})
}

// The debts of a thread go with it.
func TestDebtsGoWithTheirThreads(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	turn(t, k, input("r", user("u", "hi")), idle)
	store.Fail = func(session.Change) error { return errOwn }
	if _, err := k.Submit(t.Context(), ann(), input("r2"), idle); !errors.Is(err, errOwn) || k.Debts() != 1 {
		t.Fatal(err, k.Debts())
	}
	store.Fail = nil
	if err := k.Delete(t.Context(), ann(), annsThread()); err != nil || k.Debts() != 0 {
		t.Errorf("%v, %d debts", err, k.Debts())
	}
}

// Two keepers never have one store, but if they had: what one keeps the other sees before
// it adds to it, as each change names the head that it was made for.
func TestTheHeadIsAFence(t *testing.T) {
	store := &sessiontest.Memory{}
	one, two := opened(t, store, session.Options{}), opened(t, store, session.Options{})
	turn(t, one, input("r1", user("u1", "hi")), says("a1", "one"))
	turn(t, two, input("r2", user("u2", "hi")), says("a2", "two"))
	turn(t, one, input("r3", user("u3", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "what the model sees", lines(r.Messages()), "u1 user hi\na1 assistant one\nu2 user hi\na2 assistant two\nu3 user hi")
		return session.Outcome{}, nil
	})
}
