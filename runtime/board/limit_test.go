package board_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

// some returns n different words.
func some(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("word-", i))
	}
	return all
}

// Each size is taken as large as it may be, and refused if it is one larger.
func TestSizesAtTheirLimits(t *testing.T) {
	d := newDesk(t, board.Options{})
	ann, coder, long := d.as("ann"), d.agent("coder"), func(n int) string { return strings.Repeat("x", n) }
	task := d.task("about").Key
	d.chat("general")
	slugs := 0
	slug := func() string { slugs++; return fmt.Sprint("s", slugs) }
	held := func() string { return d.task("held", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" }).Key }
	keys := func(n int) (all []string) {
		for range n {
			all = append(all, d.task("blocker").Key)
		}
		return all
	}
	create := func(change func(*tracker.CreateTask)) error {
		in := tracker.CreateTask{Project: "team-board", Title: "t"}
		change(&in)
		_, err := ann.CreateTask(t.Context(), in)
		return err
	}
	update := func(u tracker.UpdateTask) error { _, err := ann.UpdateTask(t.Context(), task, u); return err }
	for name, c := range map[string]struct {
		most int
		try  func(n int) error
	}{
		"title of a task": {tracker.MaxTitle, func(n int) error { return update(tracker.UpdateTask{Title: tracker.Some(long(n))}) }},
		"description of a task": {tracker.MaxDescription, func(n int) error {
			return update(tracker.UpdateTask{Description: tracker.Some(long(n))})
		}},
		"label":              {tracker.MaxLabel, func(n int) error { return update(tracker.UpdateTask{Labels: tracker.Some([]string{long(n)})}) }},
		"labels":             {tracker.MaxLabels, func(n int) error { return update(tracker.UpdateTask{Labels: tracker.Some(some(n))}) }},
		"labels of a new":    {tracker.MaxLabels, func(n int) error { return create(func(c *tracker.CreateTask) { c.Labels = some(n) }) }},
		"blockers":           {tracker.MaxBlockers, func(n int) error { return update(tracker.UpdateTask{BlockedBy: tracker.Some(keys(n))}) }},
		"blockers of a new":  {tracker.MaxBlockers, func(n int) error { return create(func(c *tracker.CreateTask) { c.BlockedBy = keys(n) }) }},
		"an idempotency key": {tracker.MaxKey, func(n int) error { return create(func(c *tracker.CreateTask) { c.IdempotencyKey = long(n) }) }},
		"title of a step": {tracker.MaxTitle, func(n int) error {
			_, err := ann.AddStep(t.Context(), task, tracker.AddStep{Title: long(n)})
			return err
		}},
		"message": {tracker.MaxMessage, func(n int) error {
			_, err := ann.SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: long(n)})
			return err
		}},
		"mentions": {tracker.MaxMentions, func(n int) error {
			_, err := ann.SendMessage(t.Context(), tracker.SendMessage{TaskID: task, Content: "x", Mentions: some(n)})
			return err
		}},
		"reason of a reject": {tracker.MaxReason, func(n int) error {
			_, err := coder.RejectTask(t.Context(), held(), tracker.RejectTask{Reason: long(n)})
			return err
		}},
		"reason of a release": {tracker.MaxReason, func(n int) error {
			_, err := coder.ReleaseTask(t.Context(), held(), tracker.ReleaseTask{Reason: long(n)})
			return err
		}},
		"slug": {tracker.MaxSlug, func(n int) error {
			_, err := ann.CreateMember(t.Context(), tracker.CreateMember{Slug: long(n)})
			return err
		}},
		"name of a member": {tracker.MaxName, func(n int) error {
			_, err := ann.CreateMember(t.Context(), tracker.CreateMember{Slug: slug(), Name: long(n)})
			return err
		}},
		"capability": {tracker.MaxLabel, func(n int) error {
			_, err := ann.CreateMember(t.Context(), tracker.CreateMember{Slug: slug(), Capabilities: []string{long(n)}})
			return err
		}},
		"capabilities": {tracker.MaxLabels, func(n int) error {
			_, err := ann.CreateMember(t.Context(), tracker.CreateMember{Slug: slug(), Capabilities: some(n)})
			return err
		}},
		"name of a project": {tracker.MaxName, func(n int) error {
			_, err := ann.UpdateProject(t.Context(), "team-board", tracker.UpdateProject{Name: tracker.Some(long(n))})
			return err
		}},
		"description of a project": {tracker.MaxDescription, func(n int) error {
			_, err := ann.UpdateProject(t.Context(), "team-board", tracker.UpdateProject{Description: tracker.Some(long(n))})
			return err
		}},
		"name of a chat": {tracker.MaxName, func(n int) error {
			_, err := ann.CreateChat(t.Context(), tracker.CreateChat{Slug: slug(), Name: long(n)})
			return err
		}},
		"name of a file": {tracker.MaxFilename, func(n int) error {
			_, err := ann.UploadFile(t.Context(), tracker.UploadFile{TaskID: task, Filename: long(n), Content: []byte("x")})
			return err
		}},
		"task of a heartbeat": {tracker.MaxRef, func(n int) error {
			return coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: tracker.Busy, CurrentTasks: []string{long(n)}})
		}},
		"tasks of a heartbeat": {tracker.MaxCurrent, func(n int) error {
			return coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: tracker.Busy, CurrentTasks: some(n)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, c.try(c.most))
			refused(t, c.try(c.most+1), tracker.CodeInvalid)
		})
	}
}
