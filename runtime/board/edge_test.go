package board_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

// H-02: who is heard of stays online, however long nothing else changes.
func TestH_02_HeartbeatsKeepAnAgentOnline(t *testing.T) {
	d := newDesk(t, board.Options{})
	coder := d.agent("coder")
	_, _, err := coder.Connect(t.Context(), tracker.AuthAgent{}, nil)
	must(t, err)
	for range 10 {
		d.now = d.now.Add(tracker.HeartbeatEvery)
		must(t, coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: "idle"}))
		must(t, d.b.Sweep(t.Context()))
		m, err := d.as("ann").GetMember(t.Context(), "coder")
		must(t, err)
		same(t, "presence", m.Presence, tracker.Online)
	}
	kept := 0
	d.store.Fail = func(c board.Change) error {
		kept += len(c.Members)
		return nil
	}
	for range 10 {
		d.now = d.now.Add(time.Millisecond)
		must(t, coder.Heartbeat(t.Context(), tracker.Heartbeat{Status: "idle"}))
	}
	same(t, "written for heartbeats in a hurry", kept, 0)
}

// What does not change a task is not kept as a change of it.
func TestNothingIsWrittenForNothing(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	d.store.Fail = func(c board.Change) error {
		if !c.Empty() {
			return fmt.Errorf("kept: %+v", c)
		}
		return nil
	}
	_, err := d.as("ann").WatchTask(t.Context(), task.Key, tracker.WatchTask{})
	must(t, err)
	_, err = d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Title: tracker.Some("a"), Status: tracker.Some("todo")})
	must(t, err)
	_, err = d.as("ann").RemoveDependency(t.Context(), task.Key, task.Key)
	must(t, err)
	must(t, d.as("coder").Ack(t.Context(), "unknown"))
}

func TestNobodyWritesForTheArchived(t *testing.T) {
	d := newDesk(t, board.Options{})
	d.chat("general")
	archive := tracker.Some(true)
	_, err := d.as("ann").UpdateMember(t.Context(), "coder", tracker.UpdateMember{Archived: archive})
	must(t, err)
	task := d.task("a")
	_, err = d.as("ann").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: "x"})
	must(t, err)
	_, err = d.as("ann").WatchTask(t.Context(), task.Key, tracker.WatchTask{AgentSlug: "coder"})
	refused(t, err, tracker.CodeInvalid)
	_, err = d.as("ann").UpdateMember(t.Context(), "coder", tracker.UpdateMember{Archived: tracker.Some(false)})
	must(t, err)
	same(t, "events", d.events("coder"), []string(nil))

	_, err = d.as("ann").UpdateChat(t.Context(), "general", tracker.UpdateChat{Archived: archive})
	must(t, err)
	_, err = d.as("ann").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: "x"})
	refused(t, err, tracker.CodeConflict)
	_, err = d.as("ann").UpdateProject(t.Context(), "team-board", tracker.UpdateProject{Archived: archive})
	must(t, err)
	_, err = d.as("ann").CreateTask(t.Context(), tracker.CreateTask{Project: "team-board", Title: "x"})
	refused(t, err, tracker.CodeConflict)
}

// An archived watcher of a task gets nothing.
func TestAWatcherWhoIsArchivedIsNotTold(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	_, err := d.agent("coder").WatchTask(t.Context(), task.Key, tracker.WatchTask{})
	must(t, err)
	_, err = d.as("ann").UpdateMember(t.Context(), "coder", tracker.UpdateMember{Archived: tracker.Some(true)})
	must(t, err)
	_, err = d.as("ann").SendMessage(t.Context(), tracker.SendMessage{TaskID: task.Key, Content: "x"})
	must(t, err)
	_, err = d.as("ann").UpdateMember(t.Context(), "coder", tracker.UpdateMember{Archived: tracker.Some(false)})
	must(t, err)
	same(t, "events", d.events("coder"), []string(nil))
}

// E0-15: a task that waits is not begun by its status either, and one that is closed is not
// freed.
func TestE0_15_ATaskThatWaitsIsNotBegun(t *testing.T) {
	d := newDesk(t, board.Options{})
	first := d.task("first")
	second := d.task("second", func(c *tracker.CreateTask) { c.BlockedBy, c.AssigneeSlug = []string{first.Key}, "coder" })
	_, err := d.agent("coder").UpdateTask(t.Context(), second.Key, tracker.UpdateTask{Status: tracker.Some("in_progress")})
	refused(t, err, tracker.CodeBlocked)
	_, err = d.as("ann").UpdateTask(t.Context(), second.Key, tracker.UpdateTask{Status: tracker.Some("cancelled")})
	must(t, err)
	d.queue("coder")
	_, err = d.as("ann").UpdateTask(t.Context(), first.Key, tracker.UpdateTask{Status: tracker.Some("cancelled")})
	must(t, err)
	same(t, "told of a task that is closed", d.events("coder"), []string(nil))
}

func TestAParentIsOfTheSameProject(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	_, err := d.as("ann").CreateProject(t.Context(), tracker.CreateProject{Slug: "other"})
	must(t, err)
	_, err = d.as("ann").CreateTask(t.Context(), tracker.CreateTask{Project: "other", Title: "b", ParentID: task.ID})
	refused(t, err, tracker.CodeInvalid)
}

func TestListsAreBounded(t *testing.T) {
	d := newDesk(t, board.Options{})
	for range tracker.MaxPage + 1 {
		d.task("a")
	}
	page, err := d.as("ann").ListTasks(t.Context(), tracker.TaskQuery{Paging: tracker.Paging{Limit: 1 << 30}})
	must(t, err)
	same(t, "items", len(page.Items), tracker.MaxPage)
	_, err = d.as("ann").CreateChat(t.Context(), tracker.CreateChat{Slug: "c", Members: slices.Repeat([]string{"ann"}, 1001)})
	refused(t, err, tracker.CodeInvalid)
}

// What stands behind a dependency is looked at only so far.
func TestDependenciesReachOnlySoFar(t *testing.T) {
	d := newDesk(t, board.Options{})
	top, last := d.task("top"), d.task("last")
	wide := func(above string, n int) (all []string, c board.Change) {
		for i := range n {
			id := fmt.Sprintf("%s-%d", above, i)
			all = append(all, id)
			c.Tasks = append(c.Tasks, board.Task{ID: id, Key: id, Project: top.Project.ID})
		}
		return all, c
	}
	must(t, d.store.UpdateBoard(t.Context(), func(r board.Reader) (board.Change, error) {
		root, err := r.Task(top.ID)
		if err != nil {
			return board.Change{}, err
		}
		middle, c := wide("m", 100)
		root.Blockers = middle
		for i := range 100 {
			ids, leaves := wide(middle[i], 100)
			c.Tasks[i].Blockers = ids
			c.Tasks = append(c.Tasks, leaves.Tasks...)
		}
		c.Tasks = append(c.Tasks, root)
		return c, nil
	}))
	_, err := d.as("ann").AddDependency(t.Context(), last.Key, tracker.AddDependency{BlockedBy: top.Key})
	refused(t, err, tracker.CodeInvalid)
}
