package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

// A gate counts the runs that are in it, and holds them until it is opened.
type gate struct {
	mu     sync.Mutex
	order  []string
	inside map[string]int // by thread and by agent
	most   map[string]int
	open   chan struct{}
}

func newGate() *gate {
	return &gate{inside: map[string]int{}, most: map[string]int{}, open: make(chan struct{})}
}

func (g *gate) run(ctx context.Context, r *session.Run) (session.Outcome, error) {
	th, rec := r.Thread(), r.Record()
	keys := []string{"all", "thread " + th.ID, "agent " + rec.Agent}
	g.mu.Lock()
	g.order = append(g.order, rec.ID)
	for _, key := range keys {
		g.inside[key]++
		g.most[key] = max(g.most[key], g.inside[key])
	}
	g.mu.Unlock()
	var err error
	select {
	case <-g.open:
		time.Sleep(time.Second)
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keys {
		g.inside[key]--
	}
	return session.Outcome{}, err
}

func (g *gate) began() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.order, " ")
}

func inThread(thread, run, agent string) session.Input {
	return session.Input{Thread: thread, RunID: run, Agent: agent}
}

func TestE3_08_OneRunOfAThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		g := newGate()
		var streams []*session.Stream
		for i := range 10 {
			streams = append(streams, submit(t, k, inThread("t", fmt.Sprint("r", i), "agent"), g.run))
			synctest.Wait()
		}
		want(t, "began", g.began(), "r0")
		runs, err := k.Runs(t.Context(), ann(), annsThread(), 10)
		if err != nil || runs[9].Status != session.Running || runs[0].Status != session.Queued || !runs[0].Started.IsZero() {
			t.Errorf("%+v, %v", runs, err)
		}
		close(g.open)
		for i, s := range streams {
			items := rest(t, s)
			if e, ok := items[0].Event.(event.RunStarted); !ok || e.RunID != fmt.Sprint("r", i) || len(items) != 2 {
				t.Errorf("%d: %s", i, shown(items))
			}
		}
		want(t, "began", g.began(), "r0 r1 r2 r3 r4 r5 r6 r7 r8 r9")
		if g.most["thread t"] != 1 {
			t.Errorf("%d at once", g.most["thread t"])
		}
	})
}

func TestH_22_RunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		g := newGate()
		var streams []*session.Stream
		for a := range 10 {
			for i := range 10 {
				streams = append(streams, submit(t, k, inThread(fmt.Sprint(a, "/", i), "r", fmt.Sprint(a)), g.run))
			}
		}
		synctest.Wait()
		close(g.open)
		for _, s := range streams {
			want(t, "end", last(rest(t, s)), "success")
		}
		for key, most := range map[string]int{"all": 16, "agent 0": 4, "thread 3/3": 1} {
			if g.most[key] != most {
				t.Errorf("%s: %d at once, want %d", key, g.most[key], most)
			}
		}
	})
}

// Runs of one agent that wait do not hold up those of another.
func TestAgentsWaitForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{PerAgent: 1, PerProcess: 2})
		g := newGate()
		for _, run := range []string{"a1", "a2", "b1", "b2", "a3"} {
			submit(t, k, inThread(run, run, run[:1]), g.run)
			synctest.Wait()
		}
		want(t, "began", g.began(), "a1 b1")
		close(g.open)
		time.Sleep(10 * time.Second)
		got := strings.Fields(g.began())
		if !slices.Contains([]string{"a2 b2", "b2 a2"}, strings.Join(got[2:4], " ")) || got[4] != "a3" {
			t.Errorf("began %q", got)
		}
	})
}

// A run that waits for its agent is not overtaken in its thread by one of another.
func TestRunsOfAThreadKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{PerAgent: 1})
		g := newGate()
		for _, in := range []session.Input{inThread("x", "x", "a"), inThread("t", "t1", "a"), inThread("t", "t2", "b")} {
			submit(t, k, in, g.run)
			synctest.Wait()
		}
		want(t, "began", g.began(), "x")
		close(g.open)
		time.Sleep(10 * time.Second)
		want(t, "began", g.began(), "x t1 t2")
	})
}

func TestQueuesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{PerProcess: 1, QueuePerThread: 2, Queue: 3})
		g := newGate()
		add := func(thread, run string) error {
			s, err := k.Submit(t.Context(), ann(), inThread(thread, run, "agent"), g.run)
			if err == nil {
				t.Cleanup(s.Close)
			}
			return err
		}
		if err := errors.Join(add("t", "r0"), add("t", "r1"), add("t", "r2")); err != nil {
			t.Fatal(err)
		}
		err := add("t", "r3")
		if !errors.Is(err, session.ErrBusy) || !strings.Contains(err.Error(), "2 runs wait in the thread, at most 2") {
			t.Errorf("got %v", err)
		}
		if err := add("u", "r0"); err != nil {
			t.Fatal(err)
		}
		err = add("v", "r0")
		if !errors.Is(err, session.ErrBusy) || !strings.Contains(err.Error(), "3 runs wait, at most 3") {
			t.Errorf("got %v", err)
		}
		if _, err := k.Thread(t.Context(), ann(), session.Ref{Owner: "ann", ID: "v"}); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("a run that was refused left %v", err)
		}
		close(g.open)
		time.Sleep(10 * time.Second)
		if err := add("v", "r0"); err != nil {
			t.Error(err)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sessiontest.Memory{}
		k := opened(t, store, session.Options{Jobs: func(_ session.Ref, r session.Record) []event.Job {
			return []event.Job{{Kind: string(r.Status), Key: r.ID}}
		}})
		g := newGate()
		runs := submit(t, k, inThread("t", "r0", "agent"), g.run)
		waits := submit(t, k, inThread("t", "r1", "agent"), g.run)
		next := submit(t, k, inThread("t", "r2", "agent"), g.run)
		again := submit(t, k, inThread("t", "r1", "agent"), g.run)
		synctest.Wait()
		if err := k.Delete(t.Context(), ann(), annsThread()); !errors.Is(err, session.ErrBusy) {
			t.Errorf("deleted while runs are in it: %v", err)
		}
		for id, want := range map[string]error{"r1": nil, "r9": session.ErrNotFound} {
			if err := k.Cancel(t.Context(), ann(), annsThread(), id); !errors.Is(err, want) {
				t.Errorf("%s: %v", id, err)
			}
		}
		want(t, "one that waited", told(rest(t, waits))+" "+last(rest(t, waitsAgain(t, k, again))), "RUN_STARTED RUN_FINISHED cancelled")
		if r, ok := k.Active(ann(), annsThread()); !ok || r.ID != "r0" {
			t.Errorf("%+v is active", r)
		}
		if err := k.Cancel(t.Context(), ann(), annsThread(), ""); err != nil {
			t.Fatal(err)
		}
		want(t, "one that ran", last(rest(t, runs)), "cancelled")
		if err := k.Cancel(t.Context(), ann(), annsThread(), "r0"); !errors.Is(err, event.ErrNotRunning) {
			t.Errorf("one that has ended: %v", err)
		}
		close(g.open)
		want(t, "the next", last(rest(t, next)), "success")
		synctest.Wait()
		if r, ok := k.Active(ann(), annsThread()); ok {
			t.Errorf("%+v is active", r)
		}
		if err := k.Cancel(t.Context(), ann(), annsThread(), ""); !errors.Is(err, event.ErrNotRunning) {
			t.Errorf("none that runs: %v", err)
		}
		want(t, "began", g.began(), "r0 r2")
		all, err := k.Attach(t.Context(), ann(), annsThread(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		var items []session.Item
		for range 4 {
			i, err := all.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, i)
		}
		want(t, "the thread", told(items), "RUN_STARTED RUN_FINISHED RUN_STARTED RUN_FINISHED")
		if jobs := fmt.Sprint(store.Jobs()); !strings.Contains(jobs, "cancelled r1") || !strings.Contains(jobs, "cancelled r0") || !strings.Contains(jobs, "finished r2") {
			t.Errorf("jobs %s", jobs)
		}
	})
}

// waitsAgain closes a stream of a run that waited, and returns another one.
func waitsAgain(t *testing.T, k *session.Keeper, s *session.Stream) *session.Stream {
	t.Helper()
	items := rest(t, s)
	want(t, "one that was attached", told(items), "RUN_STARTED RUN_FINISHED")
	return submit(t, k, inThread("t", "r1", "agent"), idle)
}

func TestRunsAreBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := opened(t, &sessiontest.Memory{}, session.Options{})
		begun := time.Now()
		s := submit(t, k, inThread("t", "r0", "agent"), func(ctx context.Context, _ *session.Run) (session.Outcome, error) {
			<-ctx.Done()
			return session.Outcome{}, errOwn // whatever it makes of that
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		var code string
		for code == "" {
			i, err := s.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := i.Event.(event.RunError); ok {
				code = e.Code
			}
		}
		if took := time.Since(begun); code != "timeout" || took != 15*time.Minute {
			t.Errorf("%s after %s", code, took)
		}
	})
}

// The end of the program ends all runs, with a code of its own.
func TestE3_25_Shutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sessiontest.Memory{}
		k := opened(t, store, session.Options{})
		g := newGate()
		runs := submit(t, k, inThread("t", "r0", "agent"), g.run)
		waits := submit(t, k, inThread("t", "r1", "agent"), g.run)
		synctest.Wait()
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		want(t, "one that ran", last(rest(t, runs)), "shutdown")
		want(t, "one that waited", last(rest(t, waits)), "shutdown")
		want(t, "began", g.began(), "r0")
		left, err := store.UnfinishedRuns(t.Context(), 10)
		if err != nil || len(left) != 0 {
			t.Errorf("%+v, %v", left, err)
		}
	})
}

func TestH_15_TheSameRunAgain(t *testing.T) {
	k := opened(t, &sessiontest.Memory{}, session.Options{})
	in := input("r", user("u", "hi"))
	in.Also = []byte(`{"tools": [1, 2]}`)
	first := turn(t, k, in, says("a", "hello"))
	never := func(context.Context, *session.Run) (session.Outcome, error) {
		t.Error("run again")
		return session.Outcome{}, nil
	}
	in.Also = []byte(`{"tools":[1,2]}`)
	again := turn(t, k, in, never)
	want(t, "again", shown(again), shown(first))
	turn(t, k, input("other"), says("b", "more"))
	want(t, "later", shown(turn(t, k, in, never)), shown(first))
	for name, spoil := range map[string]func(*session.Input){
		"messages": func(in *session.Input) { in.Messages = append(in.Messages, user("u2", "more")) },
		"also":     func(in *session.Input) { in.Also = []byte(`{"tools":[2,1]}`) },
		"state":    func(in *session.Input) { in.State = []byte("1") },
		"agent":    func(in *session.Input) { in.Agent = "other" },
	} {
		other := in
		spoil(&other)
		if _, err := k.Submit(t.Context(), ann(), other, never); !errors.Is(err, session.ErrDuplicateRun) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want(t, "history", history(t, k, annsThread()), "u user hi\na assistant hello\nb assistant more")
}

// Who has attached to a run that then cannot begin is told.
func TestRunsThatCannotBegin(t *testing.T) {
	store := &sessiontest.Memory{}
	k := opened(t, store, session.Options{})
	begins, fails, refused := make(chan bool), make(chan bool), make(chan error)
	store.Fail = func(session.Change) error {
		begins <- true
		<-fails
		return errOwn
	}
	go func() { refused <- errOf(k.Submit(context.Background(), ann(), input("r", user("u", "hi")), idle)) }()
	<-begins
	attached := submit(t, k, input("r", user("u", "hi")), idle)
	fails <- true
	if err := <-refused; !errors.Is(err, errOwn) {
		t.Errorf("got %v", err)
	}
	items := rest(t, attached)
	want(t, "who attached is told", told(items)+" "+last(items), "RUN_STARTED RUN_ERROR store")
	store.Fail = nil
	want(t, "the same run later", told(turn(t, k, input("r", user("u", "hi")), idle)), "RUN_STARTED RUN_FINISHED")
}

// meeting has those who ask for a run wait until all have asked.
type meeting struct {
	sessiontest.Memory
	asked sync.WaitGroup
	times atomic.Int64
	many  int64
}

func (m *meeting) ThreadRuns(ctx context.Context, ref session.Ref, id string, limit int) ([]session.Record, error) {
	all, err := m.Memory.ThreadRuns(ctx, ref, id, limit)
	if m.times.Add(1) <= m.many {
		m.asked.Done()
		m.asked.Wait()
	}
	return all, err
}

// Of many who submit one run at once, and of whom nobody has found it, one runs it and
// all see it.
func TestTheSameRunAtOnce(t *testing.T) {
	const many = 20
	for _, begins := range []bool{true, false} {
		store := &meeting{many: many}
		store.asked.Add(many)
		k := opened(t, store, session.Options{})
		if !begins {
			store.Fail = func(session.Change) error { return errOwn }
		}
		var wg sync.WaitGroup
		var ran, refused, heard atomic.Int64
		for range many {
			wg.Go(func() {
				s, err := k.Submit(context.Background(), ann(), input("r", user("u", "hi")), func(context.Context, *session.Run) (session.Outcome, error) {
					ran.Add(1)
					return session.Outcome{}, nil
				})
				if err != nil {
					refused.Add(1)
					return
				}
				defer s.Close()
				items, err := read(s)
				if begins && told(items) != "RUN_STARTED RUN_FINISHED" || !errors.Is(err, io.EOF) || len(items) != 2 {
					t.Errorf("%s, %v", shown(items), err)
				}
				heard.Add(1)
			})
		}
		wg.Wait()
		if begins && (ran.Load() != 1 || heard.Load() != many) || !begins && (ran.Load() != 0 || refused.Load() == 0) {
			t.Errorf("begins %t: ran %d times, refused %d, told %d", begins, ran.Load(), refused.Load(), heard.Load())
		}
	}
}

// Who waits for a keeper to be quiet is told when the last run has ended, also one that
// waited for its turn, and no later than they want.
func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, g := opened(t, &sessiontest.Memory{}, session.Options{}), newGate()
		if err := k.Quiet(t.Context()); err != nil {
			t.Error(err)
		}
		first, second := submit(t, k, input("r1"), g.run), submit(t, k, input("r2"), g.run)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := k.Quiet(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while runs go on: %v", err)
		}
		begin := time.Now()
		close(g.open) // each then takes a second
		if err := k.Quiet(t.Context()); err != nil || time.Since(begin) < 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		rest(t, first)
		rest(t, second)
	})
}

// A run that the store does not take says so, at once or when its turn has come.
func TestRunsThatTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sessiontest.Memory{}
		k, g := opened(t, store, session.Options{}), newGate()
		first, second := submit(t, k, input("r1"), g.run), submit(t, k, input("r2"), g.run)
		store.Fail = func(session.Change) error { return errOwn }
		for _, thread := range []string{"t", "u"} { // it waits, and it begins
			in := input("r3")
			in.Thread = thread
			if _, err := k.Submit(t.Context(), ann(), in, idle); !errors.Is(err, errOwn) || event.ErrorOf(err).Code != session.CodeStore {
				t.Errorf("%s: %v", thread, err)
			}
		}
		close(g.open)
		rest(t, first)
		want(t, "whose turn came", last(rest(t, second)), session.CodeStore)
	})
}

// Who waits for a run, and has read of it what is kept by the time that it turns out to have
// been another's, is given the rest and nothing twice.
func TestARunThatWasAnothersIsGivenOnce(t *testing.T) {
	for read := range 3 {
		store := &sessiontest.Memory{}
		k := opened(t, store, session.Options{})
		turn(t, k, input("r", user("u", "hi")), idle)
		found, err := store.ThreadRuns(t.Context(), annsThread(), "r", 1)
		if err != nil {
			t.Fatal(err)
		}
		s := k.StreamOf(annsThread(), "r")
		var items []session.Item
		for range read {
			i, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			items = append(items, i)
		}
		s.TurnTo(found[0])
		want(t, "all of it", told(append(items, rest(t, s)...)), "RUN_STARTED RUN_FINISHED")
		s.Close()
	}
}
