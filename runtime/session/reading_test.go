package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/protocol/event/eventtest"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// reading fails one of the next reads: 1 is the first.
type reading struct {
	sessiontest.Memory
	fails atomic.Int64
}

func (r *reading) err() error {
	if r.fails.Add(-1) == 0 {
		return errOwn
	}
	return nil
}

func (r *reading) Thread(ctx context.Context, ref session.Ref) (session.Thread, error) {
	if err := r.err(); err != nil {
		return session.Thread{}, err
	}
	return r.Memory.Thread(ctx, ref)
}

func (r *reading) Threads(ctx context.Context, q session.ThreadQuery) ([]session.Thread, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Memory.Threads(ctx, q)
}

func (r *reading) ThreadMessages(ctx context.Context, ref session.Ref, q session.MessageQuery) ([]session.Stored, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Memory.ThreadMessages(ctx, ref, q)
}

func (r *reading) ThreadKnows(ctx context.Context, ref session.Ref, ids []string) (map[string]int64, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Memory.ThreadKnows(ctx, ref, ids)
}

func (r *reading) ThreadEvents(ctx context.Context, ref session.Ref, q session.EventQuery) ([]session.Kept, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Memory.ThreadEvents(ctx, ref, q)
}

func (r *reading) ThreadRuns(ctx context.Context, ref session.Ref, id string, limit int) ([]session.Record, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Memory.ThreadRuns(ctx, ref, id, limit)
}

func (r *reading) UnfinishedRuns(ctx context.Context, limit int) ([]session.Unfinished, error) {
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.Memory.UnfinishedRuns(ctx, limit)
}

// Whichever read of the store fails, who asked is told so, nothing is half done, and the
// same works later.
func TestReadsThatFail(t *testing.T) {
	eve := session.Principal{Name: "eve", ReadAll: true}
	streamed := func(s *session.Stream, err error) error {
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.Next(context.Background())
		return err
	}
	ctx := context.Background()
	for name, do := range map[string]func(k *session.Keeper) error{
		"append": func(k *session.Keeper) error {
			return streamed(k.Submit(ctx, ann(), input("new", user("v", "x")), idle))
		},
		"again": func(k *session.Keeper) error {
			return streamed(k.Submit(ctx, ann(), input("r", user("u", "hi")), idle))
		},
		"attach":   func(k *session.Keeper) error { return streamed(k.Attach(ctx, ann(), annsThread(), 0)) },
		"run":      func(k *session.Keeper) error { return streamed(k.AttachRun(ctx, ann(), annsThread(), "r")) },
		"follow":   func(k *session.Keeper) error { _, err := k.Follow(ctx, ann(), annsThread()); return err },
		"find":     func(k *session.Keeper) error { _, err := k.Find(ctx, eve, "t"); return err },
		"messages": func(k *session.Keeper) error { _, err := k.Messages(ctx, ann(), annsThread(), "u", 5); return err },
		"runs":     func(k *session.Keeper) error { _, err := k.Runs(ctx, ann(), annsThread(), 5); return err },
		"threads":  func(k *session.Keeper) error { _, err := k.Threads(ctx, ann(), false, session.Thread{}, 5); return err },
		"cancel": func(k *session.Keeper) error {
			if err := k.Cancel(ctx, ann(), annsThread(), "r"); !errors.Is(err, event.ErrNotRunning) {
				return err
			}
			if err := k.Cancel(ctx, ann(), annsThread(), ""); !errors.Is(err, event.ErrNotRunning) {
				return err
			}
			return nil
		},
		"replace": func(k *session.Keeper) error {
			in := input("new", user("v", "x"))
			in.Mode = session.Replace
			return streamed(k.Submit(ctx, ann(), in, idle))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := int64(1); ; n++ {
				store := &reading{}
				turn(t, opened(t, store, session.Options{}), input("r", user("u", "hi")), idle)
				k := opened(t, store, session.Options{}) // that has read nothing
				store.fails.Store(n)
				err := do(k)
				if store.fails.Load() > 0 { // there are no more reads
					if err != nil || n < 2 {
						t.Errorf("%d reads, %v", n-1, err)
					}
					return
				}
				if !errors.Is(err, errOwn) {
					t.Errorf("read %d failed: %v", n, err)
				}
				if h := history(t, k, annsThread()); h != "u user hi" {
					t.Errorf("read %d failed and left\n%s", n, h)
				}
				if err := do(k); err != nil {
					t.Errorf("read %d had failed, and later: %v", n, err)
				}
			}
		})
	}
	store := &reading{}
	store.fails.Store(1)
	if _, err := session.Open(ctx, store, session.Options{}); !errors.Is(err, errOwn) {
		t.Errorf("opened: %v", err)
	}
}

// A thread with more events than are read at once is told whole; what a later version has
// kept is passed over, and what is no event ends the stream.
func TestLongThreadsAreTold(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	const steps = 400
	turn(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		for i := range steps {
			emits(t, r, event.StepStarted{StepName: fmt.Sprint(i)}, event.StepFinished{StepName: fmt.Sprint(i)})
		}
		return session.Outcome{}, nil
	})
	turn(t, k, input("r2"), idle)
	one, err1 := k.AttachRun(t.Context(), ann(), annsThread(), "r")
	all, err2 := k.Attach(t.Context(), ann(), annsThread(), 0)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	defer all.Close()
	if n := len(rest(t, one)); n != 2*steps+2 {
		t.Errorf("%d events of the run", n)
	}
	eventtest.Conforms(t, true, events(next(t, all, 2*steps+4))...)
	for body, wanted := range map[string]string{`{"type":"LATER"}`: "RUN_STARTED RUN_FINISHED", `{"type":`: ""} {
		ref := session.Ref{Owner: "ann", ID: body}
		in := inThread(body, "r", "agent")
		turn(t, k, in, idle)
		th, err := store.Thread(t.Context(), ref)
		if err == nil {
			_, err = store.CommitThread(t.Context(), session.Change{Ref: ref, Head: th.Head, At: th.Updated, Events: []session.Kept{{Run: "r", Body: []byte(body)}}})
		}
		if err != nil {
			t.Fatal(err)
		}
		later := opened(t, store, session.Options{})
		s, err := later.Attach(t.Context(), ann(), ref, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if wanted == "" {
			if _, err := s.Next(t.Context()); err == nil || errors.Is(err, session.ErrNotFound) {
				t.Errorf("%s: %v", body, err)
			}
			continue
		}
		items := next(t, s, 2)
		turn(t, later, inThread(body, "r2", "agent"), idle)
		want(t, body, told(append(items, next(t, s, 2)...)), wanted+" "+wanted)
	}
}

// Who asks for a run while it is cancelled that waited is told that it was, and nothing is
// run in its place.
func TestAskedForWhileItIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{}
		k := opened(t, store, session.Options{})
		g := newGate()
		submit(t, k, input("first", user("u", "hi")), g.run)
		synctest.Wait()
		waits := submit(t, k, input("r"), g.run)
		goes := make(chan bool)
		store.set(func(h *hooked) {
			h.commits = func(c session.Change) {
				if len(c.Runs) > 0 && c.Runs[0].Status == session.Cancelled {
					<-goes
				}
			}
		})
		done := make(chan error, 1)
		go func() { done <- k.Cancel(t.Context(), ann(), annsThread(), "r") }()
		synctest.Wait()
		again := submit(t, k, input("r"), g.run)
		if _, err := k.Submit(t.Context(), ann(), input("r", user("v", "other")), g.run); !errors.Is(err, session.ErrDuplicateRun) {
			t.Errorf("another input: %v", err)
		}
		close(goes)
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, s := range []*session.Stream{waits, again} {
			items := rest(t, s)
			want(t, "told", told(items)+" "+last(items), "RUN_STARTED RUN_FINISHED cancelled")
		}
		close(g.open)
		want(t, "began", g.began(), "first")
	})
}

// A thread is busy with a run that waits alone, and with one that runs alone; who may not
// read it does not learn of either.
func TestBusyThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{PerAgent: 1})
		g := newGate()
		other := session.Ref{Owner: "ann", ID: "x"}
		runs := submit(t, k, inThread("x", "r", "agent"), g.run)
		synctest.Wait()
		waits := submit(t, k, input("r", user("u", "hi")), idle)
		for _, ref := range []session.Ref{other, annsThread()} {
			if err := k.Delete(t.Context(), ann(), ref); !errors.Is(err, session.ErrBusy) {
				t.Errorf("%s: %v", ref.ID, err)
			}
		}
		if r, ok := k.Active(session.Principal{Name: "bob"}, other); ok {
			t.Errorf("bob learns of %+v", r)
		}
		if err := k.Cancel(t.Context(), ann(), session.Ref{Owner: "ann", ID: "none"}, ""); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("cancel in no thread: %v", err)
		}
		close(g.open)
		rest(t, runs)
		rest(t, waits)
	})
}

// What is committed is there, be it the state alone; without news nothing is written, and
// who listens learns up to which number all is kept.
func TestCommitsSayWhatIsKept(t *testing.T) {
	commits := 0
	store := &sessiontest.Memory{Committed: func(session.Change) { commits++ }}
	k := opened(t, store, session.Options{})
	items := turn(t, k, input("r", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		err := errors.Join(r.SetState([]byte(`{"n":1}`)), r.Commit(ctx))
		if th, err := store.Thread(ctx, annsThread()); err != nil || string(th.State) != `{"n":1}` {
			t.Errorf("%s, %v", th.State, err)
		}
		emits(t, r, textStart("a"), textMore("a", "hello"), textEnd("a"))
		return session.Outcome{}, errors.Join(err, r.Commit(ctx), r.Commit(ctx), r.Commit(ctx))
	})
	if commits != 4 {
		t.Errorf("%d commits", commits)
	}
	var numbers []string
	for _, i := range items {
		if i.Event == nil {
			numbers = append(numbers, fmt.Sprint(i.Number))
		}
	}
	want(t, "numbers alone", strings.Join(numbers, " "), "2 5")
}

// A commit that was kept, and said not to be, cuts off who listens to the thread: they would
// miss what they were not sent.
func TestListenersOfDoubtfulCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &doubting{}
		k := opened(t, store, session.Options{})
		turn(t, k, input("r0", user("u0", "hi")), idle)
		all, err := k.Attach(t.Context(), ann(), annsThread(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		next(t, all, 2)
		s := submit(t, k, input("r1", user("u1", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
			store.doubts = true
			err := errors.Join(r.Add(assistant("a", "", "c")), r.Add(answer("", "c", "done")), r.Commit(ctx))
			store.doubts = false
			return session.Outcome{}, err
		})
		if _, err := read(s); err == nil {
			t.Error("the run went on")
		}
		for err == nil {
			_, err = all.Next(t.Context())
		}
		if !errors.Is(err, session.ErrSlow) {
			t.Errorf("who listened: %v", err)
		}
		turn(t, k, input("r2"), idle)
		again, err := k.Attach(t.Context(), ann(), annsThread(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		items := next(t, again, 10)
		want(t, "told", told(items), "RUN_STARTED RUN_FINISHED RUN_STARTED c=done RUN_ERROR RUN_STARTED RUN_FINISHED")
		eventtest.Conforms(t, true, events(items)...)
	})
}

// A thread is bounded in bytes as well, whatever its messages are; a single turn that is
// larger stays whole.
func TestThreadsAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{Thread: session.Bounds{Bytes: 20_000}})
		for i := range 30 {
			turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), strings.Repeat("x", 1000))), says(fmt.Sprint("a", i), "hello"))
			synctest.Wait()
			if th, err := k.Thread(t.Context(), ann(), annsThread()); err != nil || th.Bytes > 20_000 || i > 20 && th.Bytes < 15_000 {
				t.Fatalf("%d bytes after %d turns, %v", th.Bytes, i+1, err)
			}
		}
		turn(t, k, input("large", user("large", strings.Repeat("x", 30_000))), says("end", "hello"))
		synctest.Wait()
		want(t, "one turn", strings.ReplaceAll(history(t, k, annsThread()), "x", ""), "large user \nend assistant hello")
	})
}

// twice has a run come and end while another one of its id looks for it.
type twice struct {
	sessiontest.Memory
	between func()
}

func (s *twice) ThreadRuns(ctx context.Context, ref session.Ref, id string, limit int) ([]session.Record, error) {
	all, err := s.Memory.ThreadRuns(ctx, ref, id, limit)
	if do := s.between; do != nil {
		s.between = nil
		do()
	}
	return all, err
}

// A run that was looked for in vain, and has come and ended by the time it is to begin, is
// not run again: its events are given, or another input is refused.
func TestRunsThatCameBetween(t *testing.T) {
	for _, same := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := &twice{}
			k := opened(t, store, session.Options{})
			first, second := input("r", user("u", "hi")), input("r", user("u", "hi"))
			if !same {
				second = input("r", user("v", "other"))
			}
			store.between = func() { turn(t, k, first, says("a", "hello")) }
			s, err := k.Submit(t.Context(), ann(), second, func(context.Context, *session.Run) (session.Outcome, error) {
				t.Error("run again")
				return session.Outcome{}, nil
			})
			if !same {
				if !errors.Is(err, session.ErrDuplicateRun) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			want(t, "told", told(rest(t, s)), "RUN_STARTED a=hello RUN_FINISHED")
			want(t, "the next", told(turn(t, k, input("r2"), idle)), "RUN_STARTED RUN_FINISHED")
		})
	}
}

// What is wrong with an input that waited is said when its turn has come.
func TestInputsThatDoNotFitLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		g := newGate()
		first := submit(t, k, input("first", user("u", "hi")), g.run)
		synctest.Wait()
		in := input("r", user("u", "hi"), assistant("x", "made up"))
		in.Mode = session.Replace
		s := submit(t, k, in, idle)
		close(g.open)
		rest(t, first)
		items := rest(t, s)
		e, ok := items[len(items)-1].Event.(event.RunError)
		if !ok || e.Code != session.CodeInvalid || !strings.Contains(e.Message, `messages[1], id "x"`) {
			t.Errorf("%s", shown(items))
		}
		if r := waitEnded(t, k, "r"); r.Status != session.Failed || r.Code != session.CodeInvalid {
			t.Errorf("%+v", r)
		}
	})
}
