package router_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/router"
)

// A turn that fails gives its task back with the reason, and says so at the task.
func TestE1_12_AFailedTurnGivesTheTaskBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(_ context.Context, turn router.Turn) error {
			d.edit(turn.Task.ID, func(t *tracker.TaskOut) { t.Status = tracker.InProgress })
			return errors.New("the model is away:\n\x1b[31m" + strings.Repeat("x", 5000))
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		if len(d.released) != 1 || !strings.HasPrefix(d.released[0], "t1: the model is away: [31mxxx") || len(d.released[0]) > 600 {
			t.Errorf("given back as %q", d.released)
		}
		if got := *d.tasks["t1"]; got.Status != tracker.Todo || got.AssigneeSlug != nil {
			t.Errorf("the task is %s, of %v", got.Status, got.AssigneeSlug)
		}
		run := d.turns[0].RunID
		if got := d.comments[run+"-failed"]; !strings.HasPrefix(got, "t1: I could not finish this: the model is away") || !strings.Contains(got, run) || !strings.Contains(got, "is free again") || len(d.comments) != 1 {
			t.Errorf("comments %q", d.comments)
		}
		items, err := d.r.Items(t.Context(), router.Query{})
		if err != nil || len(items) != 1 || items[0].State != router.Failed || items[0].Owed != "" || items[0].Open() {
			t.Errorf("the item is %+v, %v", items, err)
		}
	})
}

// A tracker that is away when a turn fails is told later, after a restart too, and once.
func TestE1_12_TheTrackerIsToldLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(context.Context, router.Turn) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.down = true
			return errors.New("no")
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned t1 failed: no")
		_ = d.stop()
		d.start()
		d.wait(time.Hour)
		d.want("given back", d.released)
		d.change(func() { d.down = false })
		d.change(func() { d.refuse["send"] = tracker.Errorf(tracker.CodeUnavailable, "away") })
		d.wait(time.Hour)
		d.want("given back", d.released, "t1: no") // and the comment is missing
		d.change(func() { delete(d.refuse, "send") })
		d.wait(time.Hour)
		d.want("given back", d.released, "t1: no")
		if len(d.comments) != 1 {
			t.Errorf("comments %q", d.comments)
		}
		d.want("runs", d.ran(), "t1")
	})
}

// What is not the agent's any more, or is handed over, is not given back, and what the
// tracker refuses is not asked for again.
func TestE1_12_WhatIsNotGivenBack(t *testing.T) {
	for _, c := range []struct {
		name           string
		change         func(*desk, *tracker.TaskOut)
		released, said int
	}{
		{"reassigned", func(_ *desk, t *tracker.TaskOut) { slug := "bob"; t.AssigneeSlug = &slug }, 0, 1},
		{"in review", func(_ *desk, t *tracker.TaskOut) { t.Status = tracker.InReview }, 0, 1},
		{"done", func(_ *desk, t *tracker.TaskOut) { t.Status = tracker.Done }, 0, 1},
		{"deleted", func(d *desk, t *tracker.TaskOut) { delete(d.tasks, t.ID) }, 0, 0},
		{"release refused", func(d *desk, t *tracker.TaskOut) { d.refuse["release"] = tracker.Errorf(tracker.CodeForbidden, "no") }, 0, 1},
		{"comment refused", func(d *desk, t *tracker.TaskOut) { d.refuse["send"] = tracker.Errorf(tracker.CodeForbidden, "no") }, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				d.turn = func(context.Context, router.Turn) error {
					d.edit("t1", func(t *tracker.TaskOut) { c.change(d, t) })
					return errors.New("no")
				}
				d.accept(assigned("e1", d.task("t1", nil)))
				d.wait(time.Hour)
				items, err := d.r.Items(t.Context(), router.Query{Open: true})
				if err != nil || len(items) != 0 {
					t.Errorf("open are %+v, %v", items, err)
				}
				for _, said := range d.comments {
					if strings.Contains(said, "is free again") {
						t.Errorf("it is said to be free: %s", said)
					}
				}
				if len(d.released) != c.released || len(d.comments) != c.said {
					t.Errorf("given back %q, comments %q", d.released, d.comments)
				}
			})
		})
	}
}

// A task that is the agent's once more, for another item, is not given back for the old one.
func TestE1_12_ATaskThatIsAssignedAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(context.Context, router.Turn) error {
			d.change(func() { d.down = true })
			return errors.New("no")
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		hold := make(chan struct{})
		d.turn = func(context.Context, router.Turn) error { <-hold; return nil }
		d.wait(time.Second)
		d.accept(assigned("e2", d.edit("t1", func(*tracker.TaskOut) {})))
		d.change(func() { d.down = false })
		d.wait(time.Hour)
		d.want("given back", d.released)
		if len(d.comments) != 1 {
			t.Errorf("comments %q", d.comments)
		}
		close(hold)
		synctest.Wait()
		d.want("items", d.items(), "task.assigned t1 failed: no", "task.assigned t1 done")
	})
}

// A turn that panics fails, and nothing else does.
func TestAPanicIsAFailedTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.Lang = "ru" })
		d.turn = func(context.Context, router.Turn) error { panic("secret") }
		d.accept(assigned("e1", d.task("t1", nil)))
		d.turn = nil
		d.accept(assigned("e2", d.task("t2", nil)))
		d.want("items", d.items(), "task.assigned t1 failed: сбой в программе, которая выполняет агента", "task.assigned t2 done")
		for _, c := range d.comments {
			if strings.Contains(c, "secret") || !strings.Contains(c, "Не удалось завершить: сбой") {
				t.Error(c)
			}
		}
	})
}

// What panics around a turn does not end the router.
func TestPanicsOfWhoIsToldAreSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.Parallel = 1 })
		calls := 0
		d.o.Tools = func() []router.Tool {
			if calls++; calls == 1 {
				panic("tools")
			}
			return nil
		}
		_ = d.stop()
		d.start()
		d.accept(assigned("e1", d.task("t1", nil)))
		d.wait(time.Hour)
		d.want("runs", d.ran())
		d.accept(assigned("e2", d.task("t2", nil)))
		d.want("runs", d.ran(), "t2")
	})
}

// An item that was running when the program died runs once more in the same thread, under
// another id, and its prompt says so. After that it has failed.
func TestE0_4_AfterACrashOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(ctx context.Context, _ router.Turn) error {
			d.breaks(errors.New("the program has died")) // nothing is kept any more
			<-ctx.Done()
			return ctx.Err()
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		die := func() {
			synctest.Wait()
			_ = d.stop()
			d.breaks(nil)
			d.start()
		}
		die()
		d.want("items", d.items(), "task.assigned t1 running")
		first, second := d.turns[0], d.turns[1]
		if first.Thread != second.Thread || first.RunID == second.RunID || second.Item.Attempt != 2 {
			t.Errorf("%+v, then %+v", first, second)
		}
		if said := "Earlier work on this task was interrupted."; strings.Contains(first.Text, said) || !strings.Contains(second.Text, said) {
			t.Errorf("the prompts are\n%s\n%s", first.Text, second.Text)
		}
		die()
		d.want("items", d.items(), "task.assigned t1 failed: the program that runs the agent ended during the work, twice")
		d.want("given back", d.released, "t1: the program that runs the agent ended during the work, twice")
		d.want("runs", d.ran(), "t1", "t1")
		failed, _ := d.r.Items(t.Context(), router.Query{})
		if _, err := d.r.Retry(t.Context(), failed[0].ID); err != nil { // and then it may crash once more
			t.Error(err)
		}
		die()
		d.want("runs", d.ran(), "t1", "t1", "t1", "t1")
	})
}

// What ended before the program died, and was not noted, has no second turn.
func TestE0_4_WhatWasReadyBeforeACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(ctx context.Context, _ router.Turn) error {
			d.breaks(errors.New("the program has died"))
			d.edit("t1", func(t *tracker.TaskOut) { t.Status = tracker.InReview })
			return nil
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		_ = d.stop()
		d.breaks(nil)
		d.start()
		d.want("items", d.items(), "task.assigned t1 done: the task is in_review")
		d.want("runs", d.ran(), "t1")
	})
}

// A program that ends in order interrupts its turns as often as it likes.
func TestARestartIsNoCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(ctx context.Context, _ router.Turn) error { <-ctx.Done(); return ctx.Err() }
		d.accept(assigned("e1", d.task("t1", nil)))
		for range 4 {
			_ = d.stop()
			d.want("items", d.items(), "task.assigned t1 accepted: it was interrupted, and is begun again")
			d.start()
		}
		if got := d.turns[4]; got.Item.Attempt != 5 || !strings.Contains(got.Text, "was interrupted") {
			t.Errorf("the last turn is %+v", got)
		}
		d.want("given back", d.released)
	})
}

// A turn that there was no room for is asked for again, as the same run, until there is.
func TestATurnThatWasNotBegunIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		busy := 5
		d.turn = func(context.Context, router.Turn) error {
			if busy--; busy >= 0 {
				return errors.Join(router.ErrNotBegun, errors.New("busy"))
			}
			return nil
		}
		d.accept(assigned("e1", d.task("t1", nil)))
		d.want("runs", d.ran(), "t1")
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned t1 done")
		for _, turn := range d.turns {
			if turn.RunID != d.turns[0].RunID || strings.Contains(turn.Text, "interrupted") || strings.Contains(turn.Text, "worked on before") {
				t.Errorf("the turn is %+v", turn)
			}
		}
		if len(d.turns) != 6 {
			t.Errorf("%d turns", len(d.turns))
		}
	})
}

// A failed item can be tried again, by whom it was given back too, with a task that is free.
func TestE0_18_AFailedItemIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(context.Context, router.Turn) error { return errors.New("no") }
		d.accept(assigned("e1", d.task("t1", nil)))
		failed, err := d.r.Items(t.Context(), router.Query{States: []router.State{router.Failed}})
		if err != nil || len(failed) != 1 {
			t.Fatal(failed, err)
		}
		id := failed[0].ID
		d.turn = nil
		if _, err := d.r.Retry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		d.want("items", d.items(), "task.assigned t1 done")
		d.want("taken", d.taken, "t1")
		if text := d.turns[1].Text; !strings.Contains(text, "This task has been worked on before.") {
			t.Errorf("the prompt is %s", text)
		}
		if _, err := d.r.Retry(t.Context(), id); err == nil || !strings.Contains(err.Error(), "is done: only one that failed") {
			t.Errorf("what is done is tried again: %v", err)
		}
		if _, err := d.r.Retry(t.Context(), "nothing"); !errors.Is(err, router.ErrNotFound) {
			t.Errorf("what is not there is tried again: %v", err)
		}
	})
}

// One that is retried in the store, by another program, is found; one whose task is another's
// by then is dropped.
func TestE0_18_ARetryElsewhereIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.turn = func(context.Context, router.Turn) error { return errors.New("no") }
		d.accept(assigned("e1", d.task("t1", nil)))
		slug := "bob"
		d.edit("t1", func(t *tracker.TaskOut) { t.AssigneeSlug = &slug })
		failed, _ := d.r.Items(t.Context(), router.Query{States: []router.State{router.Failed}})
		if _, err := router.Retry(t.Context(), d.store, me, failed[0].ID); err != nil {
			t.Fatal(err)
		}
		d.wait(2 * time.Minute)
		d.want("items", d.items(), "task.assigned t1 dropped: the task is bob's")
		d.want("runs", d.ran(), "t1")
	})
}
