package router_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
	"github.com/hutch-run/hutch/runtime/router"
)

// A team is a board with the agent "coder" at it, whose turns do what a test says.
type team struct {
	*desk
	site *boardtest.Site
	seat tracker.Service
	last int64
}

// newTeam makes a team in a bubble.
func newTeam(t *testing.T, change func(*router.Options), turn func(*team, router.Turn) error) *team {
	t.Helper()
	m := &team{site: boardtest.NewSite(t)}
	m.seat = m.site.For(me)
	m.desk = newDesk(t, func(o *router.Options) {
		o.Tracker = m.seat
		if change != nil {
			change(o)
		}
	})
	m.turn = func(_ context.Context, t router.Turn) error { return turn(m, t) }
	return m
}

// make makes a task.
func (m *team) make(in tracker.CreateTask) tracker.TaskOut {
	m.Helper()
	in.Project = "test"
	out, err := m.site.Ann.CreateTask(m.Context(), in)
	m.must(err)
	return out
}

func (m *team) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// status moves a task.
func (m *team) status(who tracker.Service, task string, to tracker.Status) {
	m.Helper()
	_, err := who.UpdateTask(m.Context(), task, tracker.UpdateTask{Status: tracker.Some(string(to))})
	m.must(err)
}

// deliver sends what is in the agent's queue, until nothing is.
func (m *team) deliver() {
	m.Helper()
	for {
		synctest.Wait()
		events, err := m.seat.Events(m.Context(), m.last, 100)
		m.must(err)
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			m.accept(e.Frame("v1"))
			m.must(m.seat.Ack(m.Context(), e.ID))
			m.last = e.Seq
		}
	}
}

// reviews is a turn that brings its task to review, as a model's tools do.
func reviews(m *team, t router.Turn) error {
	ctx := m.Context()
	m.status(m.seat, t.Task.ID, tracker.InProgress)
	step, err := m.seat.AddStep(ctx, t.Task.ID, tracker.AddStep{Title: "look"})
	m.must(err)
	_, err = m.seat.UpdateStep(ctx, t.Task.ID, step.ID, tracker.UpdateStep{Done: tracker.Some(true)})
	m.must(err)
	_, err = m.seat.SendMessage(ctx, tracker.SendMessage{TaskID: t.Task.ID, Content: "done, @coder and @all"})
	m.must(err)
	m.status(m.seat, t.Task.ID, tracker.InReview)
	return nil
}

// On a real board an assigned task is worked on once, whatever the work makes the board tell.
func TestS0_011_ATaskOnABoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, func(o *router.Options) { o.ChatListen = router.All }, reviews)
		task := m.make(tracker.CreateTask{Title: "fix it", Description: "It is broken.", AssigneeSlug: me})
		m.deliver()
		m.r.Connected(t.Context(), tracker.AuthOK{})
		m.deliver()
		m.want("runs", m.ran(), task.ID)
		m.want("items", m.items(), "task.assigned "+task.ID+" done")
		if text := m.turns[0].Text; !strings.HasPrefix(text, "# Task: TE-1 — fix it\n") || !strings.Contains(text, "\nIt is broken.\n") {
			t.Errorf("the prompt is %s", text)
		}
	})
}

// Closing what two tasks wait for wakes both, once each, and nothing else.
func TestC_10_OneTaskBlocksTwo(t *testing.T) {
	for _, to := range []tracker.Status{tracker.Done, tracker.Cancelled} {
		synctest.Test(t, func(t *testing.T) {
			m := newTeam(t, nil, reviews)
			a := m.make(tracker.CreateTask{Title: "a"})
			b := m.make(tracker.CreateTask{Title: "b", AssigneeSlug: me, BlockedBy: []string{a.Key}})
			c := m.make(tracker.CreateTask{Title: "c", AssigneeSlug: me, BlockedBy: []string{a.Key}})
			m.make(tracker.CreateTask{Title: "d", AssigneeSlug: me, BlockedBy: []string{a.Key, b.Key}})
			m.make(tracker.CreateTask{Title: "e", BlockedBy: []string{a.Key}})
			m.make(tracker.CreateTask{Title: "f", AssigneeSlug: "other", BlockedBy: []string{a.Key}})
			m.deliver()
			m.want("runs", m.ran())
			if to == tracker.Done {
				m.status(m.site.Ann, a.ID, tracker.InProgress)
				m.status(m.site.Ann, a.ID, tracker.InReview)
			}
			time.Sleep(time.Second)
			m.status(m.site.Ann, a.ID, to)
			m.deliver()
			if got := m.ran(); len(got) != 2 || !slices.Contains(got, b.ID) || !slices.Contains(got, c.ID) {
				t.Errorf("%s: the runs are %v, want %s and %s", to, got, b.ID, c.ID)
			}
		})
	}
}

// A failed turn leaves a task on the board that anybody can take, and a comment.
func TestE1_12_AFailureOnABoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, nil, func(m *team, t router.Turn) error {
			m.status(m.seat, t.Task.ID, tracker.InProgress)
			return errors.New("the model is away")
		})
		task := m.make(tracker.CreateTask{Title: "fix it", AssigneeSlug: me})
		m.deliver()
		m.r.Connected(t.Context(), tracker.AuthOK{})
		m.deliver()
		now, err := m.site.Ann.GetTask(t.Context(), task.ID)
		m.must(err)
		if now.Status != tracker.Todo || now.Assignee != nil {
			t.Errorf("the task is %s, of %v", now.Status, now.Assignee)
		}
		talk, err := m.site.Ann.ListMessages(t.Context(), tracker.MessageQuery{TaskID: task.ID})
		m.must(err)
		if !slices.ContainsFunc(talk.Items, func(o tracker.MessageOut) bool {
			return strings.Contains(o.Content, "I could not finish this: the model is away") && strings.Contains(o.Content, "is free again")
		}) {
			t.Errorf("the comments are %+v", talk.Items)
		}
		m.want("runs", m.ran(), task.ID)
	})
}

// Agents that take free tasks by themselves have each once, and none that they rejected.
func TestC_45_FreeTasksOnABoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, func(o *router.Options) { o.TaskListen = router.All }, func(m *team, t router.Turn) error {
			if t.Task.Title == "not me" {
				_, err := m.seat.RejectTask(m.Context(), t.Task.ID, tracker.RejectTask{Reason: "I cannot"})
				return err
			}
			return reviews(m, t)
		})
		one := m.make(tracker.CreateTask{Title: "not me", Priority: "high"})
		two := m.make(tracker.CreateTask{Title: "me"})
		for range 10 {
			m.deliver()
			time.Sleep(time.Minute)
		}
		m.want("runs", m.ran(), one.ID, two.ID)
		m.want("items", m.items(), "task.free "+one.ID+" done", "task.free "+two.ID+" done")
		got, err := m.site.Ann.GetTask(t.Context(), two.ID)
		m.must(err)
		if got.Status != tracker.InReview || *got.AssigneeSlug != me {
			t.Errorf("the task is %s, of %v", got.Status, got.AssigneeSlug)
		}
	})
}

// After a while without any event the board's tasks are found, those in progress too.
func TestE0_17_TasksOfABoardAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTeam(t, nil, reviews)
		one := m.make(tracker.CreateTask{Title: "todo", AssigneeSlug: me})
		two := m.make(tracker.CreateTask{Title: "taken"})
		_, err := m.seat.TakeTask(t.Context(), two.ID, tracker.TakeTask{})
		m.must(err)
		m.make(tracker.CreateTask{Title: "backlog", AssigneeSlug: me, Status: "backlog"})
		m.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		if got := m.ran(); len(got) != 2 || !slices.Contains(got, one.ID) || !slices.Contains(got, two.ID) {
			t.Errorf("the runs are %v", got)
		}
		time.Sleep(time.Second)
		m.deliver() // the events that tell of it come late
		if got := m.ran(); len(got) != 2 {
			t.Errorf("the runs are %v", got)
		}
	})
}

// What an agent assigns to itself in a turn is told to nobody, and is worked on after it.
func TestE0_12_WhatATurnGivesTheAgentItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		part := ""
		m := newTeam(t, nil, func(m *team, t router.Turn) error {
			if part == "" {
				sub, err := m.seat.CreateTask(m.Context(), tracker.CreateTask{Project: "test", Title: "a part", ParentID: t.Task.ID, AssigneeSlug: me})
				m.must(err)
				part = sub.ID
			}
			return reviews(m, t)
		})
		whole := m.make(tracker.CreateTask{Title: "whole", AssigneeSlug: me})
		m.deliver()
		synctest.Wait()
		m.want("runs", m.ran(), whole.ID, part)
	})
}

// breaksAfterTake is a tracker that does something when a task was taken.
type breaksAfterTake struct {
	router.Tracker
	then func()
}

func (b *breaksAfterTake) TakeTask(ctx context.Context, id string, in tracker.TakeTask) (tracker.TaskOut, error) {
	out, err := b.Tracker.TakeTask(ctx, id, in)
	if b.then != nil {
		b.then()
		b.then = nil
	}
	return out, err
}

// A task that was taken, and given back before its turn could begin, is taken again: an old
// answer is not believed.
func TestATaskIsTakenAnewBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taking := &breaksAfterTake{}
		m := newTeam(t, func(o *router.Options) {
			o.TaskListen = router.All
			taking.Tracker, o.Tracker = o.Tracker, taking
		}, func(m *team, t router.Turn) error {
			now, err := m.site.Ann.GetTask(m.Context(), t.Task.ID)
			m.must(err)
			if now.Assignee == nil || now.Assignee.Slug != me {
				m.Errorf("the turn is about a task of %v", now.Assignee)
			}
			return reviews(m, t)
		})
		taking.then = func() { m.breaks(errors.New("the disk is full")) }
		task := m.make(tracker.CreateTask{Title: "free"})
		time.Sleep(10 * time.Minute)
		_, err := m.seat.ReleaseTask(m.Context(), task.ID, tracker.ReleaseTask{})
		m.must(err)
		m.breaks(nil)
		m.wait(10 * time.Minute)
		m.want("runs", m.ran(), task.ID)
	})
}
