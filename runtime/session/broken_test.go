package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// hooked is a store that calls what is set before or after it does as it is told.
type hooked struct {
	sessiontest.Memory
	mu       sync.Mutex
	messages func(session.MessageQuery) error
	commits  func(session.Change)
	events   func()
	swept    func()
}

func (h *hooked) set(do func(h *hooked)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do(h)
}

func (h *hooked) ThreadMessages(ctx context.Context, ref session.Ref, q session.MessageQuery) ([]session.Stored, error) {
	h.mu.Lock()
	hook := h.messages
	h.mu.Unlock()
	if hook != nil {
		if err := hook(q); err != nil {
			return nil, err
		}
	}
	return h.Memory.ThreadMessages(ctx, ref, q)
}

func (h *hooked) CommitThread(ctx context.Context, c session.Change, jobs ...event.Job) (session.Committed, error) {
	h.mu.Lock()
	hook := h.commits
	h.mu.Unlock()
	if hook != nil {
		hook(c)
	}
	return h.Memory.CommitThread(ctx, c, jobs...)
}

func (h *hooked) ThreadEvents(ctx context.Context, ref session.Ref, q session.EventQuery) ([]session.Kept, error) {
	all, err := h.Memory.ThreadEvents(ctx, ref, q)
	h.mu.Lock()
	hook := h.events
	h.mu.Unlock()
	if hook != nil {
		hook()
	}
	return all, err
}

func (h *hooked) SweepThreads(ctx context.Context, before session.Ages, limit int) (int64, []session.Ref, error) {
	n, gone, err := h.Memory.SweepThreads(ctx, before, limit)
	h.mu.Lock()
	hook := h.swept
	h.mu.Unlock()
	if hook != nil {
		hook()
	}
	return n, gone, err
}

// next takes so many items with events, of a stream that goes on.
func next(t *testing.T, s *session.Stream, events int) (items []session.Item) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for len(items) < events {
		i, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("%v behind %s", err, shown(items))
		}
		if i.Event != nil {
			items = append(items, i)
		}
	}
	return items
}

// A store that panics takes nothing else down: neither who submits, nor who listens, nor
// the runs that follow.
func TestStoresThatPanic(t *testing.T) {
	for _, at := range []string{"begin", "record", "end", "end of one that waits", "begin of one that waited"} {
		t.Run(at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &sessiontest.Memory{}
				k := opened(t, store, session.Options{})
				breaks := func() { store.Fail = func(session.Change) error { panic("own") } }
				g := newGate()
				ends := submit(t, k, input("first", user("u", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
					out, err := g.run(ctx, r)
					if at == "end" {
						breaks()
					}
					return out, err
				})
				synctest.Wait()
				wanted := "RUN_STARTED RUN_FINISHED"
				switch at {
				case "record":
					breaks()
					if _, err := k.Submit(t.Context(), ann(), input("r"), idle); err == nil {
						t.Error("recorded")
					}
					store.Fail = nil
				case "end of one that waits":
					waits := submit(t, k, input("r"), idle)
					breaks()
					if err := k.Cancel(t.Context(), ann(), annsThread(), "r"); err != nil {
						t.Error(err)
					}
					want(t, "the one that waited", last(rest(t, waits)), "cancelled")
					store.Fail = nil
				case "end":
					wanted = "RUN_STARTED RUN_ERROR"
				case "begin of one that waited":
					waits := submit(t, k, input("r"), idle)
					store.Fail = func(c session.Change) error {
						if len(c.Runs) > 0 && c.Runs[0].Status == session.Running {
							panic("own")
						}
						return nil
					}
					defer func() {
						want(t, "the one that waited", told(rest(t, waits))+" "+last(rest(t, submit(t, k, input("r"), idle))), "RUN_STARTED RUN_ERROR internal")
					}()
				}
				close(g.open)
				want(t, "the first", told(rest(t, ends)), wanted)
				synctest.Wait()
				if at == "begin" {
					panics, goes := make(chan bool), make(chan bool)
					store.Fail = func(session.Change) error { panics <- true; <-goes; panic("own") }
					refused := make(chan error)
					go func() { refused <- errOf(k.Submit(context.Background(), ann(), input("r"), idle)) }()
					<-panics
					attached := submit(t, k, input("r"), idle)
					goes <- true
					if err := <-refused; err == nil {
						t.Error("begun")
					}
					want(t, "who attached", last(rest(t, attached)), "internal")
				}
				store.Fail = nil
				want(t, "the next", told(turn(t, k, input("next"), idle)), "RUN_STARTED RUN_FINISHED")
			})
		})
	}
}

// What breaks behind the end of a run is no second end of it, and nothing to the run that
// has begun by then.
func TestBrokenBehindTheEnd(t *testing.T) {
	for _, logs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store, log := &hooked{}, &logged{breaks: !logs}
			k := opened(t, store, session.Options{Thread: session.Bounds{Messages: 2}, Logger: slog.New(log)})
			turn(t, k, input("r0", user("u0", "hi")), says("a0", "hello"))
			synctest.Wait()
			all, err := k.Attach(t.Context(), ann(), annsThread(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer all.Close()
			next(t, all, 5)
			store.set(func(h *hooked) {
				h.messages = func(q session.MessageQuery) error {
					if !q.Last {
						panic("own")
					}
					return nil
				}
			})
			turn(t, k, input("r1", user("u1", "hi")), says("a1", "hello"))
			synctest.Wait()
			store.set(func(h *hooked) { h.messages = nil })
			turn(t, k, input("r2"), idle)
			seen := told(next(t, all, 7))
			if strings.Contains(seen, "RUN_ERROR") || strings.Count(seen, "RUN_FINISHED") != 2 {
				t.Errorf("told %s", seen)
			}
			if r := waitEnded(t, k, "r1"); r.Status != session.Finished {
				t.Errorf("%+v", r)
			}
			if logs && !strings.Contains(log.text(), "was not trimmed") {
				t.Errorf("logged is %s", log.text())
			}
		})
	}
}

// logged keeps what is logged, or panics once it is told of a thread that was not trimmed.
type logged struct {
	slog.Handler
	breaks bool
	mu     sync.Mutex
	all    []string
}

func (*logged) Enabled(context.Context, slog.Level) bool { return true }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all = append(l.all, r.Message); l.breaks && strings.Contains(r.Message, "was not trimmed") {
		panic("own")
	}
	return nil
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "; ")
}

// What was trimmed is shown to no model any more.
func TestTrimmedIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{Thread: session.Bounds{Messages: 10}})
		for i := range 7 {
			turn(t, k, input(fmt.Sprint("r", i), user(fmt.Sprint("u", i), "hi")), says(fmt.Sprint("a", i), "hello"))
			synctest.Wait()
		}
		turn(t, k, input("last"), func(_ context.Context, r *session.Run) (session.Outcome, error) {
			want(t, "what the model sees", lines(r.Messages()), history(t, k, annsThread()))
			return session.Outcome{}, nil
		})
	})
}

// The sweeper goes on after a panic.
func TestTheSweeperGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{}
		var times atomic.Int64
		store.swept = func() {
			if times.Add(1) == 1 {
				panic("own")
			}
		}
		k := opened(t, store, session.Options{SweepEvery: time.Hour, KeepThreads: 2 * time.Hour})
		turn(t, k, input("r", user("u", "hi")), idle)
		time.Sleep(5 * time.Hour)
		if _, err := k.Thread(t.Context(), ann(), annsThread()); !errors.Is(err, session.ErrNotFound) || times.Load() < 4 {
			t.Errorf("swept %d times, %v", times.Load(), err)
		}
	})
}

// What a runner leaves running behind its end can neither say nor keep anything.
func TestNothingIsKeptBehindTheEnd(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	var left *session.Run
	turn(t, k, input("r1", user("u1", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
		left = r
		return session.Outcome{}, nil
	})
	turn(t, k, input("r2", user("u2", "hi")), func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		emits(t, r, textStart("a"), textMore("a", "hello"), textEnd("a"))
		for _, err := range []error{left.Add(assistant("late", "late")), left.Add(answer("late", "c", "late")), left.Emit(textStart("late")), left.SetState([]byte("1")), left.Commit(ctx, event.Job{Kind: "late"})} {
			if !errors.Is(err, session.ErrOrder) {
				t.Errorf("got %v", err)
			}
		}
		return session.Outcome{}, r.Add(assistant("a", "hello"))
	})
	want(t, "history", history(t, k, annsThread()), "u1 user hi\nu2 user hi\na assistant hello")
	kept := turn(t, k, input("r2", user("u2", "hi")), nil)
	want(t, "the run as it is kept", told(kept), "RUN_STARTED a=hello RUN_FINISHED")
}

// A history that was replaced is known to the run, or the run does not begin.
func TestReplacedHistoriesAreKnown(t *testing.T) {
	store := &hooked{}
	k := opened(t, store, session.Options{})
	turn(t, k, input("r1", user("u1", "one")), says("a1", "first"))
	in := input("r2", user("u1", "one"), user("u2", "two"))
	in.Mode = session.Replace
	reads := 0
	store.set(func(h *hooked) {
		h.messages = func(q session.MessageQuery) error {
			if q.Last {
				reads++
				return errOwn
			}
			return nil
		}
	})
	if _, err := k.Submit(t.Context(), ann(), in, idle); !errors.Is(err, errOwn) || reads == 0 {
		t.Errorf("%v after %d reads", err, reads)
	}
	want(t, "history", history(t, opened(t, &store.Memory, session.Options{}), annsThread()), "u1 user one\na1 assistant first")
	store.set(func(h *hooked) { h.messages = nil })
	turn(t, k, in, func(_ context.Context, r *session.Run) (session.Outcome, error) {
		want(t, "what the model sees", lines(r.Messages()), "u1 user one\nu2 user two")
		return session.Outcome{}, nil
	})
}

// A listener that does not read holds no more than its bytes, whatever the events are.
func TestSlowReadersOfLargeEvents(t *testing.T) {
	large := strings.Repeat("x", 200)
	for _, e := range []event.Event{
		event.StateSnapshot{Snapshot: []byte(`"` + large + `"`)}, event.StateDelta{Delta: []event.Patch{{Op: "add", Path: "/a", Value: []byte(`"` + large + `"`)}}},
		event.MessagesSnapshot{Messages: []chat.Message{user("u", large)}}, event.Custom{Name: "n", Value: []byte(`"` + large + `"`)},
		event.Raw{Event: []byte(`"` + large + `"`)}, event.ActivitySnapshot{MessageID: "m", ActivityType: "t", Content: []byte(`{"a":"` + large + `"}`)},
		event.ReasoningEncryptedValue{Subtype: "message", EntityID: "m", EncryptedValue: large},
	} {
		k := opened(t, &sessiontest.Memory{}, session.Options{BufferBytes: 100 * 400})
		s := submit(t, k, input("r", user("u", "hi")), func(_ context.Context, r *session.Run) (session.Outcome, error) {
			for range 100 {
				emits(t, r, e)
			}
			return session.Outcome{}, nil
		})
		waitEnded(t, k, "r")
		if items, err := read(s); !errors.Is(err, session.ErrSlow) {
			t.Errorf("%s: %d items, %v", e.Type(), len(items), err)
		}
	}
}

// Without a store a run keeps the state that it was given.
func TestStatelessRunsKeepTheirState(t *testing.T) {
	k := opened(t, nil, session.Options{})
	in := input("r", user("u", "hi"))
	in.State = []byte(`{"n":1}`)
	turn(t, k, in, func(ctx context.Context, r *session.Run) (session.Outcome, error) {
		err := errors.Join(r.Add(assistant("a", "x")), r.Commit(ctx))
		want(t, "state", string(r.Thread().State), `{"n":1}`)
		return session.Outcome{}, err
	})
}
