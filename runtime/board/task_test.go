package board_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

func TestS1_024_TaskIsFoundByEveryName(t *testing.T) {
	d := newDesk(t, board.Options{})
	made := d.task("one")
	same(t, "key", made.Key, "TB-1")
	for _, ref := range []string{made.ID, strings.ToUpper(made.ID), "TB-1", "tb-1", "#1", "1", " TB-1 "} {
		got, err := d.as("coder").GetTask(t.Context(), ref)
		must(t, err)
		same(t, ref, got, made)
	}
	for _, ref := range []string{"", "TB-2", "2", "#0", "-1", "TB-1'; drop table task; --", "../1", strings.Repeat("9", 200), "TB-1\x00"} {
		_, err := d.as("coder").GetTask(t.Context(), ref)
		refused(t, err, tracker.CodeNotFound)
	}
	_, err := d.as("ann").CreateProject(t.Context(), tracker.CreateProject{Slug: "team"})
	must(t, err)
	_, err = d.as("ann").CreateTask(t.Context(), tracker.CreateTask{Project: "team", Title: "one"})
	must(t, err)
	_, err = d.as("coder").GetTask(t.Context(), "#1")
	same(t, "candidates", refused(t, err, tracker.CodeAmbiguous)["candidates"], []string{"TB-1", "TE-1"})
}

func TestCreateTaskChecksEverything(t *testing.T) {
	d := newDesk(t, board.Options{})
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		change func(*tracker.CreateTask)
		code   string
	}{
		"no title":          {func(c *tracker.CreateTask) { c.Title = " " }, tracker.CodeInvalid},
		"long title":        {func(c *tracker.CreateTask) { c.Title = long(tracker.MaxTitle + 1) }, tracker.CodeInvalid},
		"two lines":         {func(c *tracker.CreateTask) { c.Title = "a\nb" }, tracker.CodeInvalid},
		"no UTF-8":          {func(c *tracker.CreateTask) { c.Title = "a\xff" }, tracker.CodeInvalid},
		"zero":              {func(c *tracker.CreateTask) { c.Description = "a\x00" }, tracker.CodeInvalid},
		"long description":  {func(c *tracker.CreateTask) { c.Description = long(tracker.MaxDescription + 1) }, tracker.CodeInvalid},
		"type":              {func(c *tracker.CreateTask) { c.Type = "story" }, tracker.CodeInvalid},
		"priority":          {func(c *tracker.CreateTask) { c.Priority = "asap" }, tracker.CodeInvalid},
		"status":            {func(c *tracker.CreateTask) { c.Status = "blocked" }, tracker.CodeInvalid},
		"status of the end": {func(c *tracker.CreateTask) { c.Status = "done" }, tracker.CodeInvalid},
		"label":             {func(c *tracker.CreateTask) { c.Labels = []string{"a,b"} }, tracker.CodeInvalid},
		"labels":            {func(c *tracker.CreateTask) { c.Labels = make([]string, tracker.MaxLabels+1) }, tracker.CodeInvalid},
		"project":           {func(c *tracker.CreateTask) { c.Project = "nowhere" }, tracker.CodeNotFound},
		"assignee":          {func(c *tracker.CreateTask) { c.AssigneeSlug = "nobody" }, tracker.CodeInvalid},
		"parent":            {func(c *tracker.CreateTask) { c.ParentID = "TB-99" }, tracker.CodeNotFound},
		"blocker":           {func(c *tracker.CreateTask) { c.BlockedBy = []string{"TB-99"} }, tracker.CodeNotFound},
		"blockers":          {func(c *tracker.CreateTask) { c.BlockedBy = make([]string, tracker.MaxBlockers+1) }, tracker.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			in := tracker.CreateTask{Project: "team-board", Title: "fine"}
			c.change(&in)
			_, err := d.as("ann").CreateTask(t.Context(), in)
			refused(t, err, c.code)
			var e *tracker.Error
			if errors.As(err, &e) && e.Code == tracker.CodeNotFound && e.Hint == "" {
				t.Errorf("%q does not say what there is", e.Message)
			}
		})
	}
	same(t, "the next key", d.task("after all that").Key, "TB-1")
	d.task("at the limit", func(c *tracker.CreateTask) {
		c.Title, c.Description = long(tracker.MaxTitle), long(tracker.MaxDescription)
	})
}

func TestE1_01_OneOfManyTakesATask(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("for one")
	const agents = 100
	for i := range agents {
		_, err := d.b.Ensure(t.Context(), tracker.CreateMember{Slug: fmt.Sprintf("agent-%d", i)})
		must(t, err)
	}
	var wg sync.WaitGroup
	errs := make([]error, agents)
	for i := range agents {
		wg.Go(func() {
			_, errs[i] = d.agent(fmt.Sprintf("agent-%d", i)).TakeTask(t.Context(), task.Key, tracker.TakeTask{})
		})
	}
	wg.Wait()
	got, err := d.as("ann").GetTask(t.Context(), task.ID)
	must(t, err)
	same(t, "status", got.Status, tracker.InProgress)
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			same(t, "assignee", *got.AssigneeSlug, fmt.Sprintf("agent-%d", i))
			continue
		}
		same(t, "holder", refused(t, err, tracker.CodeTaken)["holder"], *got.AssigneeSlug)
	}
	same(t, "winners", won, 1)

	d.queue("coder")
	again, err := d.agent(*got.AssigneeSlug).TakeTask(t.Context(), task.ID, tracker.TakeTask{AgentSlug: *got.AssigneeSlug})
	must(t, err)
	same(t, "taken again", again, got)
	same(t, "events of nothing", d.events("coder"), []string(nil))
}

func TestTakeIsRefused(t *testing.T) {
	d := newDesk(t, board.Options{})
	blocker := d.task("first")
	blocked := d.task("second", func(c *tracker.CreateTask) { c.BlockedBy = []string{blocker.Key} })
	_, err := d.agent("coder").TakeTask(t.Context(), blocked.Key, tracker.TakeTask{})
	same(t, "waits for", refused(t, err, tracker.CodeBlocked)["blocked_by"], []string{blocker.Key})
	_, err = d.agent("coder").TakeTask(t.Context(), blocker.Key, tracker.TakeTask{AgentSlug: "other"})
	refused(t, err, tracker.CodeForbidden)
	got, err := d.as("coder", tracker.Admin).TakeTask(t.Context(), blocker.Key, tracker.TakeTask{AgentSlug: "other"})
	must(t, err)
	same(t, "for another", got.AssigneeSlug, "other")

	_, err = d.as("ann").UpdateTask(t.Context(), blocker.Key, tracker.UpdateTask{Status: tracker.Some("cancelled")})
	must(t, err)
	_, err = d.agent("other").TakeTask(t.Context(), blocker.Key, tracker.TakeTask{})
	refused(t, err, tracker.CodeTransition)
	_, err = d.as("ann").UpdateProject(t.Context(), "team-board", tracker.UpdateProject{Archived: tracker.Some(true)})
	must(t, err)
	_, err = d.agent("coder").TakeTask(t.Context(), blocked.Key, tracker.TakeTask{})
	refused(t, err, tracker.CodeConflict)
}

// H-25: all moves from all statuses.
func TestH_25_MovesOfATask(t *testing.T) {
	allowed := map[tracker.Status][]tracker.Status{
		tracker.Backlog:    {tracker.Todo, tracker.Cancelled},
		tracker.Todo:       {tracker.InProgress, tracker.Cancelled},
		tracker.InProgress: {tracker.InReview, tracker.Cancelled},
		tracker.InReview:   {tracker.Done, tracker.InProgress, tracker.Cancelled},
		tracker.Done:       {tracker.Todo, tracker.Cancelled},
		tracker.Cancelled:  nil,
	}
	d := newDesk(t, board.Options{})
	for _, from := range tracker.Statuses() {
		for _, to := range tracker.Statuses() {
			task := d.task("moves")
			if from != tracker.Todo {
				_, err := d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some(string(from)), Force: true})
				must(t, err)
			}
			got, err := d.agent("coder").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some(string(to))})
			switch {
			case from == to || slices.Contains(allowed[from], to):
				must(t, err)
				same(t, "status", got.Status, to)
			default:
				same(t, string(from), refused(t, err, tracker.CodeTransition)["allowed"], allowed[from])
				_, err = d.agent("coder").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some(string(to)), Force: true})
				refused(t, err, tracker.CodeForbidden)
			}
		}
	}
}

func TestC_01_ReviewIsTakenAsInReview(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	_, err := d.agent("coder").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	got, err := d.agent("coder").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some("review")})
	must(t, err)
	same(t, "status", got.Status, "in_review")
	for _, spelling := range []string{"review", "inreview", "in_review", "In-Review"} {
		page, err := d.as("coder").ListTasks(t.Context(), tracker.TaskQuery{Statuses: []string{spelling}})
		must(t, err)
		same(t, spelling, page.Items, []tracker.TaskOut{got})
	}
}

// C-41: setting in_progress again is an idempotent success without a second event.
func TestC_41_TheSameStatusAgainIsNothing(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	taken, err := d.agent("coder").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	_, err = d.as("other").WatchTask(t.Context(), task.Key, tracker.WatchTask{})
	must(t, err)
	d.queue("other")
	got, err := d.agent("coder").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some("inprogress")})
	must(t, err)
	same(t, "version", got.Version, taken.Version+1) // of the watcher
	same(t, "events", d.events("other"), []string(nil))
}

func TestRequireReview(t *testing.T) {
	d := newDesk(t, board.Options{RequireReview: true})
	task := d.task("a")
	_, err := d.agent("coder").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	_, err = d.agent("coder").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some("review")})
	must(t, err)
	_, err = d.agent("coder").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some("done")})
	refused(t, err, tracker.CodeForbidden)
	_, err = d.agent("other").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some("done")})
	must(t, err)
}

func TestC_12_RejectGivesATaskBack(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	_, err := d.agent("coder").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	_, err = d.as("other").WatchTask(t.Context(), task.Key, tracker.WatchTask{})
	must(t, err)
	d.queue("other")
	_, err = d.agent("coder").RejectTask(t.Context(), task.Key, tracker.RejectTask{Reason: " \n"})
	refused(t, err, tracker.CodeInvalid)
	_, err = d.agent("other").RejectTask(t.Context(), task.Key, tracker.RejectTask{Reason: "not mine"})
	refused(t, err, tracker.CodeTaken)
	out, err := d.agent("coder").RejectTask(t.Context(), task.Key, tracker.RejectTask{Reason: "no access"})
	must(t, err)
	same(t, "answer", out, map[string]any{"ok": true, "reason": "no access"})
	got, err := d.as("ann").GetTask(t.Context(), task.Key)
	must(t, err)
	same(t, "task", []any{got.Status, got.Assignee, got.RejectedBy}, []any{"todo", nil, []string{"coder"}})
	same(t, "events", d.events("other"), []string{tracker.EventTaskStatus, tracker.EventTaskRejected})
	comments, err := d.as("ann").ListMessages(t.Context(), tracker.MessageQuery{TaskID: task.Key})
	must(t, err)
	same(t, "comment", []any{comments.Items[0].Content, comments.Items[0].System}, []any{"rejected by coder: no access", true})
}

// C-12: what is rejected in review is begun anew, what was never begun stays as it is, and
// what is nobody's can be rejected by whom it was offered to.
func TestC_12_WhatCanBeRejected(t *testing.T) {
	for _, c := range []struct {
		status    tracker.Status
		mine      bool
		want      tracker.Status
		otherwise string
	}{
		{tracker.InReview, true, tracker.Todo, ""},
		{tracker.InProgress, true, tracker.Todo, ""},
		{tracker.Todo, true, tracker.Todo, ""},
		{tracker.Backlog, true, tracker.Backlog, ""},
		{tracker.Todo, false, tracker.Todo, ""},
		{tracker.Backlog, false, "", tracker.CodeConflict},
		{tracker.InReview, false, "", tracker.CodeConflict},
		{tracker.Done, true, "", tracker.CodeConflict},
		{tracker.Cancelled, true, "", tracker.CodeConflict},
	} {
		t.Run(fmt.Sprintf("%s, mine: %t", c.status, c.mine), func(t *testing.T) {
			d := newDesk(t, board.Options{})
			task := d.task("a", func(in *tracker.CreateTask) {
				if c.mine {
					in.AssigneeSlug = "coder"
				}
			})
			_, err := d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some(string(c.status)), Force: true})
			must(t, err)
			_, err = d.agent("coder").RejectTask(t.Context(), task.Key, tracker.RejectTask{Reason: "no"})
			if c.otherwise != "" {
				refused(t, err, c.otherwise)
				return
			}
			must(t, err)
			got := d.get(task.Key)
			same(t, "task", []any{got.Status, got.Assignee, got.RejectedBy}, []any{c.want, nil, []string{"coder"}})
		})
	}
}

func TestE1_12_ReleasePutsATaskBack(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	_, err := d.agent("coder").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	_, err = d.agent("other").ReleaseTask(t.Context(), task.Key, tracker.ReleaseTask{})
	refused(t, err, tracker.CodeTaken)
	got, err := d.agent("coder").ReleaseTask(t.Context(), task.Key, tracker.ReleaseTask{Reason: "the run failed"})
	must(t, err)
	same(t, "task", []any{got.Status, got.Assignee, got.RejectedBy}, []any{"todo", nil, []string{}})
	again, err := d.agent("coder").ReleaseTask(t.Context(), task.Key, tracker.ReleaseTask{})
	must(t, err)
	same(t, "again", again, got)
}

func TestH_05_ACircleIsRefusedWithItsPath(t *testing.T) {
	d := newDesk(t, board.Options{})
	a, b, c := d.task("a"), d.task("b"), d.task("c")
	for _, pair := range [][2]string{{a.Key, b.Key}, {b.Key, c.Key}} {
		_, err := d.as("ann").AddDependency(t.Context(), pair[0], tracker.AddDependency{BlockedBy: pair[1]})
		must(t, err)
	}
	_, err := d.as("ann").AddDependency(t.Context(), c.Key, tracker.AddDependency{BlockedBy: a.Key})
	same(t, "path", refused(t, err, tracker.CodeCycle)["path"], []string{c.Key, a.Key, b.Key, c.Key})
	_, err = d.as("ann").UpdateTask(t.Context(), a.Key, tracker.UpdateTask{BlockedBy: tracker.Some([]string{a.Key})})
	same(t, "itself", refused(t, err, tracker.CodeCycle)["path"], []string{a.Key, a.Key})
	got, err := d.as("ann").GetTask(t.Context(), a.Key)
	must(t, err)
	same(t, "a", []any{got.BlockedBy, got.Blocked}, []any{[]string{b.Key}, true})
	ready, err := d.as("ann").ListTasks(t.Context(), tracker.TaskQuery{Ready: true})
	must(t, err)
	same(t, "ready", ready.Items[0].Key, c.Key)
	same(t, "ready ones", len(ready.Items), 1)
	got, err = d.as("ann").RemoveDependency(t.Context(), a.Key, b.Key)
	must(t, err)
	same(t, "a", []any{got.BlockedBy, got.Blocked}, []any{[]string{}, false})
}

// An agent that has its own task wait no more is told that it does not, as it is when it
// closes what the task waited for.
func TestWhoFreesItsOwnTaskIsTold(t *testing.T) {
	d := newDesk(t, board.Options{})
	a := d.task("a")
	free := map[string]func(string) error{
		"remove": func(b string) error {
			_, err := d.agent("coder").RemoveDependency(t.Context(), b, a.Key)
			return err
		},
		"update": func(b string) error {
			_, err := d.agent("coder").UpdateTask(t.Context(), b, tracker.UpdateTask{BlockedBy: tracker.Some([]string{})})
			return err
		},
	}
	for name, do := range free {
		b := d.task("b", func(c *tracker.CreateTask) { c.BlockedBy, c.AssigneeSlug = []string{a.Key}, "coder" })
		d.queue("coder")
		must(t, do(b.Key))
		got := d.queue("coder")
		same(t, name, len(got), 1)
		var data tracker.TaskStatus
		must(t, json.Unmarshal(got[0].Data, &data))
		same(t, name, data.Unblocked, []tracker.Unblocked{{TaskID: b.ID, Key: b.Key, AssigneeSlug: "coder"}})
	}
}

// C-10, E0-15: closing the last blocker tells the assignees of what it held, once each.
func TestC_10_ClosingTheLastBlockerTellsWhoWaited(t *testing.T) {
	d := newDesk(t, board.Options{})
	a, z := d.task("a"), d.task("z")
	b := d.task("b", func(c *tracker.CreateTask) { c.BlockedBy, c.AssigneeSlug = []string{a.Key}, "coder" })
	c := d.task("c", func(c *tracker.CreateTask) { c.BlockedBy, c.AssigneeSlug = []string{a.Key, z.Key}, "other" })
	_, err := d.agent("coder").TakeTask(t.Context(), a.Key, tracker.TakeTask{})
	must(t, err)
	for _, slug := range []string{"coder", "other", "third"} {
		d.queue(slug)
	}
	_, err = d.as("coder").UpdateTask(t.Context(), a.Key, tracker.UpdateTask{Status: tracker.Some("done"), Force: true})
	must(t, err)
	got := d.queue("coder")
	same(t, "told, though it did it itself", len(got), 1)
	var data tracker.TaskStatus
	must(t, json.Unmarshal(got[0].Data, &data))
	same(t, "unblocked", data.Unblocked, []tracker.Unblocked{{TaskID: b.ID, Key: b.Key, AssigneeSlug: "coder"}})
	same(t, "one that still waits", d.events("other"), []string(nil))
	_, err = d.as("ann").UpdateTask(t.Context(), z.Key, tracker.UpdateTask{Status: tracker.Some("cancelled")})
	must(t, err)
	got = d.queue("other")
	same(t, "told", len(got), 1)
	must(t, json.Unmarshal(got[0].Data, &data))
	same(t, "unblocked", data.Unblocked, []tracker.Unblocked{{TaskID: c.ID, Key: c.Key, AssigneeSlug: "other", CancelledBlockers: []string{z.Key}}})
	same(t, "somebody else", d.events("third"), []string(nil))
	_, err = d.as("ann").UpdateTask(t.Context(), a.Key, tracker.UpdateTask{Status: tracker.Some("todo")})
	must(t, err)
	reopened, err := d.as("ann").GetTask(t.Context(), b.Key)
	must(t, err)
	same(t, "blocked again", reopened.Blocked, true)
}

func TestE1_05_VersionsAreChecked(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	got, err := d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Title: tracker.Some("b"), Version: task.Version})
	must(t, err)
	same(t, "version", got.Version, task.Version+1)
	_, err = d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Title: tracker.Some("c"), Version: task.Version})
	same(t, "version", refused(t, err, tracker.CodeVersion)["version"], got.Version)
	_, err = d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Title: tracker.Some("c"), IfMatch: task.Version})
	refused(t, err, tracker.CodePrecondition)
	same(t, "unchanged", d.get(task.Key).Title, "b")
}

func (d *desk) get(ref string) tracker.TaskOut {
	d.Helper()
	t, err := d.as("ann").GetTask(d.Context(), ref)
	must(d.T, err)
	return t
}

// E1-6: what is left out stays, what is null is cleared.
func TestE1_06_OmittedIsNotNull(t *testing.T) {
	d := newDesk(t, board.Options{})
	parent := d.task("parent")
	task := d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug, c.ParentID, c.Labels = "coder", parent.Key, []string{"x"} })
	var u tracker.UpdateTask
	must(t, json.Unmarshal([]byte(`{"title":"b","assignee_slug":null,"parent_id":null}`), &u))
	got, err := d.as("ann").UpdateTask(t.Context(), task.Key, u)
	must(t, err)
	same(t, "task", []any{got.Title, got.Assignee, got.ParentID, got.Labels}, []any{"b", nil, nil, []string{"x"}})
	must(t, json.Unmarshal([]byte(`{"title":null}`), &u))
	_, err = d.as("ann").UpdateTask(t.Context(), task.Key, u)
	refused(t, err, tracker.CodeInvalid)
}

func TestE1_15_AKeyMakesARepeatHarmless(t *testing.T) {
	d := newDesk(t, board.Options{})
	c := tracker.CreateTask{Project: "team-board", Title: "once", IdempotencyKey: "k1"}
	first, err := d.as("ann").CreateTask(t.Context(), c)
	must(t, err)
	again, err := d.as("ann").CreateTask(t.Context(), c)
	must(t, err)
	same(t, "again", again, first)
	c.Title = "something else"
	_, err = d.as("ann").CreateTask(t.Context(), c)
	refused(t, err, tracker.CodeReused)
	others, err := d.as("coder").CreateTask(t.Context(), c)
	must(t, err)
	same(t, "of another member", others.Number, first.Number+1)
	c.IdempotencyKey = strings.Repeat("k", tracker.MaxKey+1)
	_, err = d.as("ann").CreateTask(t.Context(), c)
	refused(t, err, tracker.CodeInvalid)

	d.now = d.now.Add(25 * time.Hour)
	must(t, d.b.Sweep(t.Context()))
	c.IdempotencyKey = "k1"
	_, err = d.as("ann").CreateTask(t.Context(), c)
	must(t, err)
}

func TestE1_10_ActivitySaysWhoDidWhat(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	_, err := d.agent("coder").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	_, err = d.agent("coder").AddStep(t.Context(), task.Key, tracker.AddStep{Title: "one"})
	must(t, err)
	page, err := d.as("ann").TaskActivity(t.Context(), task.Key, tracker.Paging{Limit: 2})
	must(t, err)
	rest, err := d.as("ann").TaskActivity(t.Context(), task.Key, tracker.Paging{Cursor: page.NextCursor})
	must(t, err)
	var got []string
	for _, a := range append(page.Items, rest.Items...) {
		got = append(got, a.Actor.Slug+" "+a.Action)
	}
	same(t, "log", got, []string{"coder step_added", "coder taken", "ann created"})
	same(t, "changes", page.Items[1].Changes["status"], map[string]any{"from": "todo", "to": "in_progress"})
}
