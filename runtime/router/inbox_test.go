package router_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/router"
)

// An event that comes again, whenever that is, starts no second run: not after a restart
// either, before which nobody acknowledged it.
func TestE0_4_RedeliveryStartsNoSecondRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		e := assigned("e1", d.task("t1", nil))
		hold := make(chan struct{})
		d.turn = func(context.Context, router.Turn) error { <-hold; return nil }
		d.accept(e)
		d.accept(e) // while it runs
		close(hold)
		synctest.Wait()
		d.accept(e) // after it has
		if err := d.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("the router ended with %v", err)
		}
		d.start()
		d.accept(e) // after a restart
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		d.want("items", d.items(), "task.assigned t1 done")
		d.want("runs", d.ran(), "t1")
	})
}

// What was accepted and not begun when the program ended is begun by the next one.
func TestE0_4_WhatWaitsOutlivesTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		if err := d.stop(); err == nil {
			t.Error("it ended without a reason")
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		d.want("runs", d.ran())
		d.start()
		d.want("runs", d.ran(), "t1")
	})
}

// An event is acknowledged when it is durable, and not before.
func TestE0_5_AcceptedIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		e := assigned("e1", d.task("t1", nil))
		broken := errors.New("the disk is full")
		d.breaks(broken)
		if err := d.r.Accept(t.Context(), e); !errors.Is(err, broken) {
			t.Errorf("accepted with %v", err)
		}
		synctest.Wait()
		d.want("runs", d.ran())
		d.breaks(nil)
		d.accept(e)
		d.want("runs", d.ran(), "t1")
	})
}

// What was not accepted for so long that the tracker sends it no more is found in its tasks,
// though the connection never ended.
func TestWhatIsSentNoMoreIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e0", d.task("again", nil)))
		d.breaks(errors.New("the disk is full"))
		for n, task := range []tracker.TaskOut{d.task("new", nil), d.edit("again", func(*tracker.TaskOut) {})} {
			if d.r.Accept(t.Context(), assigned(fmt.Sprint("e", n+1), task)) == nil {
				t.Error("accepted")
			}
		}
		d.wait(time.Hour)
		d.want("runs", d.ran(), "again")
		d.breaks(nil)
		d.wait(time.Hour)
		d.want("runs", slices.Sorted(slices.Values(d.ran())), "again", "again", "new")
	})
}

// A store that fails later keeps a turn from beginning, and its end from being forgotten.
func TestAStoreThatFailsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		fail := func(on bool) {
			if d.breaks(nil); on {
				d.breaks(errors.New("the disk is full"))
			}
		}
		d.change(func() { d.down = true })
		d.accept(assigned("e1", d.task("t1", nil)))
		fail(true)
		d.change(func() { d.down = false })
		d.wait(time.Hour)
		d.want("runs while nothing can be kept", d.ran())
		fail(false)
		ended := make(chan struct{})
		d.change(func() { d.turn = func(context.Context, router.Turn) error { <-ended; return nil } })
		d.wait(time.Hour)
		d.want("runs", d.ran(), "t1")
		fail(true)
		close(ended)
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned t1 running")
		fail(false)
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned t1 done")
		d.want("runs", d.ran(), "t1")
	})
}

// One task at a time is worked on once, in order; several tasks up to the limit.
func TestE0_6_OneTaskSeriallyOthersInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.Parallel = 3 })
		of := map[string]int{}
		d.turn = func(ctx context.Context, turn router.Turn) error {
			d.mu.Lock()
			of[turn.Thread]++
			if of[turn.Thread] > 1 {
				d.Errorf("%s has two turns at once", turn.Thread)
			}
			d.mu.Unlock()
			time.Sleep(time.Minute)
			d.mu.Lock()
			defer d.mu.Unlock()
			of[turn.Thread]--
			return nil
		}
		for n := range 5 {
			for id := range 4 {
				name := fmt.Sprint("t", id)
				if n == 0 {
					d.task(name, nil)
				}
				d.accept(assigned(fmt.Sprint(name, "-", n), d.edit(name, func(*tracker.TaskOut) {})))
				time.Sleep(50 * time.Second)
			}
		}
		if s := d.r.State(); s.Status != tracker.Busy || len(s.CurrentTasks) == 0 || s.Type != tracker.FrameHeartbeat {
			t.Errorf("the agent is %+v", s)
		}
		d.wait(time.Hour)
		if d.most != 2 && d.most != 3 {
			t.Errorf("%d turns were there at once", d.most)
		}
		if s := d.r.State(); s.Status != tracker.Idle || s.CurrentTasks == nil || len(s.CurrentTasks) != 0 {
			t.Errorf("the agent is %+v", s)
		}
		for _, i := range d.items() {
			if !strings.HasSuffix(i, "done") && !strings.Contains(i, "dropped: the turn for another item of the task serve") {
				t.Error(i)
			}
		}
	})
}

func TestParallelIsALimit(t *testing.T) {
	for _, most := range []int{0, 1, 5} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, func(o *router.Options) { o.Parallel = most })
			d.turn = func(context.Context, router.Turn) error { time.Sleep(time.Minute); return nil }
			for n := range 12 {
				d.accept(assigned(fmt.Sprint("e", n), d.task(fmt.Sprint("t", n), nil)))
			}
			d.wait(time.Hour)
			if want := max(most, map[int]int{0: 2}[most]); d.most != want || len(d.ran()) != 12 {
				t.Errorf("%d at once, want %d; %d runs", d.most, want, len(d.ran()))
			}
		})
	}
}

// What waits for the same task becomes one turn, which sees it all.
func TestE0_11_WhatWaitsForATaskIsOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		hold := make(chan struct{})
		d.turn = func(context.Context, router.Turn) error { <-hold; return nil }
		d.task("t1", nil)
		for n := range 4 {
			d.accept(assigned(fmt.Sprint("e", n), d.edit("t1", func(*tracker.TaskOut) {})))
		}
		d.want("runs", d.ran(), "t1")
		d.edit("t1", func(*tracker.TaskOut) {}) // the turn does something
		hold <- struct{}{}
		synctest.Wait()
		d.want("runs", d.ran(), "t1") // it has seen the others
		d.accept(assigned("e9", d.edit("t1", func(*tracker.TaskOut) {})))
		close(hold)
		synctest.Wait()
		d.want("runs", d.ran(), "t1", "t1") // but not what came later
	})
}

// A tracker whose clock is behind assigns a task again all the same: its version is greater.
func TestATrackersClockMayBeBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("t1", nil)))
		again := assigned("e2", d.edit("t1", func(*tracker.TaskOut) {}))
		again.TS = again.TS.Add(-time.Hour)
		d.accept(again)
		d.want("runs", d.ran(), "t1", "t1")
	})
}

// What a tracker calls a task by is a name, or stands for none: it is on the terminals of
// people, in the inbox and in the thread's name.
func TestNamesThatAreNone(t *testing.T) {
	for _, id := range []string{"", "t1\n12:00:00  coder  done", "\x1b[2J", strings.Repeat("x", tracker.MaxRef+1)} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			task := d.task("t1", nil)
			d.edit("t1", func(t *tracker.TaskOut) {
				t.ID, t.Key = id, "T1\n12:00:00  coder  \x1b[2Jdone"+strings.Repeat("x", 1000)
			})
			d.accept(assigned("e1", task))
			d.r.Connected(t.Context(), tracker.AuthOK{})
			d.wait(time.Hour)
			if len(d.turns) != 1 || d.turns[0].Thread != "task:t1" || len(d.turns[0].Title) > 1000 || strings.ContainsAny(d.turns[0].Title, "\n\x1b") {
				t.Errorf("the turns are %+v", d.turns)
			}
			for _, line := range d.trail {
				if strings.ContainsAny(line, "\n\x1b") || len(line) > 1000 {
					t.Errorf("told was %q", line)
				}
			}
			d.accept(assigned("e2", d.task("t\x1b[2J", nil)))
			d.want("items", d.items(), "task.assigned t1 done", "task.assigned t\x1b[2J dropped: its data cannot be read: a task is named with spaces or with what is not seen")
		})
	}
}

// That is so of events that say neither when they happened nor what the task was like.
func TestE0_11_WithoutTimesAndVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.task("t1", nil)
		d.change(func() { d.down = true })
		for _, id := range []string{"e1", "e2", "e3"} {
			f := frame(id, tracker.EventTaskAssigned, map[string]any{"id": "t1"})
			f.TS = time.Time{}
			d.accept(f)
		}
		d.change(func() { d.down = false })
		d.wait(time.Hour)
		d.want("runs", d.ran(), "t1")
		if got := d.items(); !strings.HasPrefix(got[2], "task.assigned t1 dropped: the turn for another item of the task serves it: ") {
			t.Errorf("the items are %q", got)
		}
	})
}

// What an agent assigns to itself is work; what it takes in a turn is worked on there.
func TestE0_12_WhatAnAgentDoesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		own := func(id string, task tracker.TaskOut) tracker.EventFrame {
			return frame(id, tracker.EventTaskAssigned, tracker.TaskAssigned{Task: task, Actor: tracker.MemberRef{Slug: me}})
		}
		d.accept(own("e1", d.task("part", nil)))
		d.accept(own("e2", d.task("taken", func(t *tracker.TaskOut) { t.Status = tracker.InProgress })))
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		d.want("runs", d.ran(), "part")
		d.want("items", d.items(), "task.assigned part done", "task.assigned taken dropped: the agent took it in a turn, which works on it")
	})
}

// A task that waits for others does not begin before the last of them is closed, and then
// once, with a prompt that is about it.
func TestE0_15_C_10_BlockedTasksWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		for _, id := range []string{"b", "c"} {
			d.accept(assigned("e-"+id, d.task(id, func(t *tracker.TaskOut) { t.Blocked, t.BlockedBy = true, []string{"A"} })))
		}
		d.task("other", func(t *tracker.TaskOut) { slug := "bob"; t.AssigneeSlug = &slug })
		d.wait(24*time.Hour + time.Second)
		d.want("runs", d.ran())
		d.want("items", d.items(), "task.assigned b accepted: the task waits for A", "task.assigned c accepted: the task waits for A")
		for _, id := range []string{"b", "c"} {
			d.edit(id, func(t *tracker.TaskOut) { t.Blocked = false })
		}
		slug := func(s string) tracker.Unblocked {
			return tracker.Unblocked{TaskID: s, Key: strings.ToUpper(s), AssigneeSlug: me}
		}
		closed := frame("e9", tracker.EventTaskStatus, tracker.TaskStatus{
			TaskID: "a", Key: "A", To: tracker.Done, Unblocked: []tracker.Unblocked{slug("b"), slug("c"), {TaskID: "other", AssigneeSlug: "bob"}, {TaskID: "d"}},
		})
		d.accept(closed)
		d.accept(closed)
		d.want("runs", slices.Sorted(slices.Values(d.ran())), "b", "c")
		for _, turn := range d.turns {
			if want := fmt.Sprintf("# Task: %s — title of %s\n", strings.ToUpper(turn.Task.ID), turn.Task.ID); !strings.HasPrefix(turn.Text, want) {
				t.Errorf("the prompt is %s, want it to begin with %s", turn.Text, want)
			}
		}
	})
}

// What was found before the event came that tells of it has its turn, and no other.
func TestE0_15_AnEventThatComesLateIsSeenAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("b", func(t *tracker.TaskOut) { t.Blocked = true })))
		d.edit("b", func(t *tracker.TaskOut) { t.Blocked = false })
		late := frame("e2", tracker.EventTaskStatus, tracker.TaskStatus{TaskID: "a", Unblocked: []tracker.Unblocked{{TaskID: "b", AssigneeSlug: me}}})
		d.wait(time.Hour) // somebody looks
		d.want("runs", d.ran(), "b")
		d.accept(late)
		d.want("runs", d.ran(), "b")
		late.ID, late.TS = "e3", time.Now()
		d.accept(late)
		d.want("runs", d.ran(), "b", "b")
	})
}

// A task of the agent that nobody had told it of begins when it is unblocked.
func TestS0_013_AnUnblockedTaskBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.task("b", func(t *tracker.TaskOut) { t.BlockedBy = []string{"A", "C"} })
		d.accept(frame("e1", "task.status", map[string]any{"task_id": "a", "to": "done", "unblocked": []any{map[string]any{"task_id": "b", "assignee_slug": me}}}))
		d.want("items", d.items(), "task.unblocked b done")
		if text := d.turns[0].Text; !strings.Contains(text, "What this task waited for (A, C) is done or cancelled") {
			t.Errorf("the prompt is %s", text)
		}
	})
}

// A task in the backlog never begins, however it is assigned, until it leaves it.
func TestE1_13_TheBacklogNeverStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("t1", func(t *tracker.TaskOut) { t.Status = tracker.Backlog })))
		d.r.Connected(t.Context(), tracker.AuthOK{})
		d.wait(24 * time.Hour)
		d.want("items", d.items(), "task.assigned t1 accepted: the task is in the backlog: it begins when it is moved to todo")
		d.edit("t1", func(t *tracker.TaskOut) { t.Status = tracker.Todo })
		d.accept(frame("e2", tracker.EventTaskStatus, tracker.TaskStatus{TaskID: "t1", From: tracker.Backlog, To: tracker.Todo}))
		d.want("runs", d.ran(), "t1")
	})
}

// Between the event and the turn a task may have changed hands, or have ended.
func TestE1_13_WhatChangedBeforeTheTurn(t *testing.T) {
	for _, c := range []struct {
		change func(*tracker.TaskOut)
		want   string
	}{
		{func(t *tracker.TaskOut) { slug := "bob"; t.AssigneeSlug = &slug }, "the task is bob's"},
		{func(t *tracker.TaskOut) { t.AssigneeSlug = nil }, "the task is nobody's"},
		{func(t *tracker.TaskOut) { t.AssigneeSlug, t.Assignee = nil, &tracker.MemberRef{Slug: "bob"} }, "the task is bob's"},
		{func(t *tracker.TaskOut) { t.Status = tracker.Cancelled }, "the task is cancelled"},
		{func(t *tracker.TaskOut) { t.Status = tracker.Done }, "the task is done"},
		{func(t *tracker.TaskOut) { t.Status = tracker.InReview }, "the task is in_review"},
		{nil, "the tracker says: no task t1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			d.change(func() { d.down = true })
			d.accept(assigned("e1", d.task("t1", nil)))
			if c.change != nil {
				d.edit("t1", c.change)
			} else {
				d.change(func() { delete(d.tasks, "t1") })
			}
			d.change(func() { d.down = false })
			d.wait(time.Hour)
			d.want("items", d.items(), "task.assigned t1 dropped: "+c.want)
			d.want("runs", d.ran())
			d.want("given back", d.released)
		})
	}
}

// What the agent may not read for now is waited for: people mend scopes.
func TestATaskThatMayNotBeReadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.change(func() { d.refuse["get"] = tracker.Errorf(tracker.CodeForbidden, "no") })
		d.accept(assigned("e1", d.task("t1", nil)))
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned t1 accepted: the agent may not read the task: give its token the scope tasks:read and let it into the project")
		d.change(func() { delete(d.refuse, "get") })
		d.wait(time.Hour)
		d.want("runs", d.ran(), "t1")
	})
}

// A task that changes hands while it is worked on is worked on to the end, and whoever
// watches is told.
func TestE1_13_WhatChangesDuringTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		hold := make(chan struct{})
		d.turn = func(ctx context.Context, _ router.Turn) error { <-hold; return ctx.Err() }
		d.accept(assigned("e1", d.task("t1", nil)))
		slug := "bob"
		d.accept(assigned("e2", d.edit("t1", func(t *tracker.TaskOut) { t.AssigneeSlug = &slug })))
		d.accept(frame("e3", tracker.EventTaskStatus, tracker.TaskStatus{TaskID: "t1", To: tracker.Cancelled}))
		for _, said := range []string{"T1 the task was given to bob while it is worked on", "T1 the task is cancelled while it is worked on"} {
			if !d.said(said) {
				t.Errorf("%q is not among %q", said, d.trail)
			}
		}
		close(hold)
		synctest.Wait()
		d.want("items", d.items(), "task.assigned t1 done")
		if !d.said("T1 the task was given to bob while it was worked on") {
			t.Errorf("the trail is %q", d.trail)
		}
	})
}

// More than is ever queued is worked off, each once.
func TestTenThousandItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 10_000
		d := newDesk(t, func(o *router.Options) { o.MaxOpen, o.Keep = count, 2*count })
		if err := d.stop(); err == nil {
			t.Error("it ended without a reason")
		}
		for n := range count {
			if err := d.r.Accept(t.Context(), assigned(fmt.Sprint("e", n), d.task(fmt.Sprint("t", n), nil))); err != nil {
				t.Fatal(err)
			}
		}
		late := assigned("late", d.task("late", nil))
		if err := d.r.Accept(t.Context(), late); !errors.Is(err, router.ErrFull) {
			t.Errorf("one more is accepted with %v", err)
		}
		if err := d.r.Accept(t.Context(), assigned("e7", *d.tasks["t7"])); err != nil {
			t.Errorf("one that is there is refused: %v", err)
		}
		d.start()
		synctest.Wait()
		once := map[string]int{}
		for _, id := range d.ran() {
			once[id]++
		}
		if len(once) != count || len(d.ran()) != count {
			t.Errorf("%d runs of %d tasks", len(d.ran()), len(once))
		}
		d.accept(late)
		if got := d.ran(); got[len(got)-1] != "late" {
			t.Error("what was refused does not come in later")
		}
	})
}
