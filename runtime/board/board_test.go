package board_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// A desk is a board with a project "team-board", the human "ann", and the agents "coder",
// "other" and "third".
type desk struct {
	*testing.T
	b     *board.Board
	store *boardtest.Memory
	now   time.Time
}

func newDesk(t *testing.T, o board.Options) *desk {
	t.Helper()
	d := &desk{T: t, store: &boardtest.Memory{Again: true}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	o.Now = func() time.Time { return d.now }
	d.b = board.New(d.store, o)
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent, "other": tracker.Agent, "third": tracker.Agent} {
		_, err := d.b.Ensure(t.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
		must(t, err)
	}
	_, err := d.as("ann").CreateProject(t.Context(), tracker.CreateProject{Slug: "team-board", Name: "Team Board"})
	must(t, err)
	return d
}

func allScopes() []string {
	return []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksTake, tracker.TasksAssign, tracker.TasksForce, tracker.StepsRead,
		tracker.StepsWrite, tracker.MessagesRead, tracker.MessagesWrite, tracker.ProjectsRead, tracker.MembersRead,
		tracker.MembersSelf, tracker.FilesRead, tracker.FilesWrite, tracker.Admin,
	}
}

// as is the board for a member who may do everything, or everything but what is named.
func (d *desk) as(slug string, without ...string) tracker.Service {
	scopes := slices.DeleteFunc(allScopes(), func(s string) bool { return slices.Contains(without, s) })
	return d.b.For(tracker.Caller{Slug: slug, Scopes: scopes})
}

func (d *desk) agent(slug string) tracker.Service {
	return d.as(slug, tracker.Admin, tracker.TasksAssign, tracker.TasksForce)
}

func (d *desk) task(title string, with ...func(*tracker.CreateTask)) tracker.TaskOut {
	d.Helper()
	c := tracker.CreateTask{Project: "team-board", Title: title}
	for _, w := range with {
		w(&c)
	}
	t, err := d.as("ann").CreateTask(d.Context(), c)
	must(d.T, err)
	return t
}

// events are the names of the events in a queue, which it empties.
func (d *desk) events(slug string) (names []string) {
	d.Helper()
	for _, e := range d.queue(slug) {
		names = append(names, e.Name)
	}
	return names
}

func (d *desk) queue(slug string) []tracker.Event {
	d.Helper()
	all, err := d.as(slug).Events(d.Context(), 0, tracker.MaxPage)
	must(d.T, err)
	for _, e := range all {
		must(d.T, d.as(slug).Ack(d.Context(), e.ID))
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused wants an error of that code, and returns its details.
func refused(t testing.TB, err error, code string) map[string]any {
	t.Helper()
	var e *tracker.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e.Details
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

func TestNobodyWithoutAMember(t *testing.T) {
	d := newDesk(t, board.Options{})
	_, err := d.as("ghost").ListTasks(t.Context(), tracker.TaskQuery{})
	refused(t, err, tracker.CodeForbidden)
	_, err = d.as("ann").UpdateMember(t.Context(), "third", tracker.UpdateMember{Archived: tracker.Some(true)})
	must(t, err)
	_, err = d.as("third").ListTasks(t.Context(), tracker.TaskQuery{})
	refused(t, err, tracker.CodeForbidden)
	_, err = d.as("ann").UpdateMember(t.Context(), "me", tracker.UpdateMember{Archived: tracker.Some(true)})
	refused(t, err, tracker.CodeConflict)
}

func TestNothingIsKeptOfWhatFails(t *testing.T) {
	d := newDesk(t, board.Options{})
	broken := errors.New("the disk is gone")
	d.store.Fail = func(board.Change) error { return broken }
	_, err := d.as("ann").CreateTask(t.Context(), tracker.CreateTask{Project: "team-board", Title: "a", AssigneeSlug: "coder"})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	d.store.Fail = nil
	same(t, "events", d.events("coder"), []string(nil))
	same(t, "the next key", d.task("b").Key, "TB-1")
}

func TestListTasksFilters(t *testing.T) {
	d := newDesk(t, board.Options{})
	one := d.task("Одна задача", func(c *tracker.CreateTask) { c.Labels, c.Type = []string{"x", "y"}, "bug" })
	two := d.task("two", func(c *tracker.CreateTask) { c.Labels, c.Priority, c.AssigneeSlug = []string{"x"}, "high", "coder" })
	three := d.task("three", func(c *tracker.CreateTask) { c.ParentID, c.Status = one.Key, "backlog" })
	for name, c := range map[string]struct {
		q    tracker.TaskQuery
		want []string
	}{
		"all":        {tracker.TaskQuery{}, []string{three.Key, two.Key, one.Key}},
		"project":    {tracker.TaskQuery{Project: "team-board"}, []string{three.Key, two.Key, one.Key}},
		"statuses":   {tracker.TaskQuery{Statuses: []string{"backlog", "done"}}, []string{three.Key}},
		"assignee":   {tracker.TaskQuery{Assignee: "coder"}, []string{two.Key}},
		"me":         {tracker.TaskQuery{Assignee: "me"}, nil},
		"nobody":     {tracker.TaskQuery{Assignee: "none"}, []string{three.Key, one.Key}},
		"label":      {tracker.TaskQuery{Labels: []string{"x"}}, []string{two.Key, one.Key}},
		"all labels": {tracker.TaskQuery{Labels: []string{"y", "x"}}, []string{one.Key}},
		"type":       {tracker.TaskQuery{Type: "bug"}, []string{one.Key}},
		"priority":   {tracker.TaskQuery{Priority: "high"}, []string{two.Key}},
		"parent":     {tracker.TaskQuery{Parent: one.Key}, []string{three.Key}},
		"creator":    {tracker.TaskQuery{Creator: "coder"}, nil},
		"watcher":    {tracker.TaskQuery{Watcher: "coder"}, []string{two.Key}},
		"text":       {tracker.TaskQuery{Text: "ОДНА"}, []string{one.Key}},
		"key":        {tracker.TaskQuery{Text: "tb-2"}, []string{two.Key}},
		"percent":    {tracker.TaskQuery{Text: "%"}, nil},
		"ready":      {tracker.TaskQuery{Ready: true}, []string{two.Key, one.Key}},
		"not ready":  {tracker.TaskQuery{Ready: true, Statuses: []string{"done"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := d.as("ann").ListTasks(t.Context(), c.q)
			must(t, err)
			var got []string
			for _, task := range page.Items {
				got = append(got, task.Key)
			}
			same(t, "keys", got, c.want)
		})
	}
	first, err := d.as("ann").ListTasks(t.Context(), tracker.TaskQuery{Paging: tracker.Paging{Limit: 2}})
	must(t, err)
	second, err := d.as("ann").ListTasks(t.Context(), tracker.TaskQuery{Paging: tracker.Paging{Limit: 2, Cursor: first.NextCursor}})
	must(t, err)
	same(t, "pages", []any{len(first.Items), len(second.Items), second.NextCursor}, []any{2, 1, ""})
	_, err = d.as("ann").ListTasks(t.Context(), tracker.TaskQuery{Paging: tracker.Paging{Cursor: "!"}})
	refused(t, err, tracker.CodeInvalid)
}

func TestE1_16_Delete(t *testing.T) {
	d := newDesk(t, board.Options{})
	parent := d.task("parent")
	child := d.task("child", func(c *tracker.CreateTask) { c.ParentID = parent.Key })
	waits := d.task("waits", func(c *tracker.CreateTask) { c.BlockedBy, c.AssigneeSlug = []string{child.Key}, "coder" })
	refused(t, d.as("ann").DeleteTask(t.Context(), parent.Key), tracker.CodeConflict)
	refused(t, d.agent("coder").DeleteTask(t.Context(), child.Key), tracker.CodeForbidden)
	d.queue("coder")
	must(t, d.as("ann").DeleteTask(t.Context(), child.Key))
	_, err := d.as("ann").GetTask(t.Context(), child.Key)
	refused(t, err, tracker.CodeNotFound)
	got := d.get(waits.Key)
	same(t, "waits", []any{got.Blocked, got.BlockedBy}, []any{false, []string{}})
	same(t, "told", d.events("coder"), []string{tracker.EventTaskStatus})
	must(t, d.as("ann").DeleteTask(t.Context(), parent.Key))
}

func TestAParentIsNotItsOwnChild(t *testing.T) {
	d := newDesk(t, board.Options{})
	a := d.task("a")
	b := d.task("b", func(c *tracker.CreateTask) { c.ParentID = a.Key })
	for _, ref := range []string{a.Key, b.Key} {
		_, err := d.as("ann").UpdateTask(t.Context(), a.Key, tracker.UpdateTask{ParentID: tracker.Some(ref)})
		refused(t, err, tracker.CodeCycle)
	}
	last := b
	for range 30 {
		last = d.task("deeper", func(c *tracker.CreateTask) { c.ParentID = last.Key })
	}
	_, err := d.as("ann").CreateTask(t.Context(), tracker.CreateTask{Project: "team-board", Title: "too deep", ParentID: last.Key})
	refused(t, err, tracker.CodeInvalid)
}

func TestWaitReturnsAtAnEvent(t *testing.T) {
	d := newDesk(t, board.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.as("coder").Wait(ctx, 0) }()
	d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" })
	must(t, <-done)
	must(t, d.as("coder").Wait(ctx, 0))
	ended, end := context.WithCancel(t.Context())
	end()
	if err := d.as("coder").Wait(ended, 5); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// E1-7: a task is not done before its parts are.
func TestE1_07_ATaskIsDoneAfterItsParts(t *testing.T) {
	d := newDesk(t, board.Options{})
	parent := d.task("parent")
	child := d.task("child", func(c *tracker.CreateTask) { c.ParentID = parent.Key })
	for _, to := range []string{"in_progress", "in_review"} {
		_, err := d.as("ann").UpdateTask(t.Context(), parent.Key, tracker.UpdateTask{Status: tracker.Some(to)})
		must(t, err)
	}
	finish := tracker.UpdateTask{Status: tracker.Some("done")}
	_, err := d.as("ann").UpdateTask(t.Context(), parent.Key, finish)
	same(t, "open", refused(t, err, tracker.CodeConflict)["open_subtasks"], []string{child.Key})
	_, err = d.as("ann").UpdateTask(t.Context(), child.Key, tracker.UpdateTask{Status: tracker.Some("cancelled")})
	must(t, err)
	_, err = d.as("ann").UpdateTask(t.Context(), parent.Key, finish)
	must(t, err)
}

// E0-10: a task shows whether the agent that has it is there.
func TestE0_10_AHolderWhoHasLeftIsSeen(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a")
	coder := d.agent("coder")
	_, _, err := coder.Connect(t.Context(), tracker.AuthAgent{}, nil)
	must(t, err)
	_, err = coder.TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	must(t, err)
	same(t, "there", d.get(task.Key).Assignee.Presence, tracker.Online)
	d.now = d.now.Add(tracker.OfflineAfter + time.Second)
	must(t, d.b.Sweep(t.Context()))
	same(t, "gone", d.get(task.Key).Assignee.Presence, tracker.Offline)
	_, err = d.agent("other").TakeTask(t.Context(), task.Key, tracker.TakeTask{})
	same(t, "said", refused(t, err, tracker.CodeTaken)["holder_presence"], "offline")
}
