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

// After a connect the open tasks that no event came for begin, once; a tracker that is away
// then is asked later.
func TestE0_17_TasksAreListedAfterEachConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("known", nil)))
		for _, s := range tracker.Statuses() {
			d.task(string(s), func(t *tracker.TaskOut) { t.Status = s })
		}
		d.task("blocked", func(t *tracker.TaskOut) { t.Blocked = true })
		d.task("free", func(t *tracker.TaskOut) { t.AssigneeSlug = nil })
		d.task("bobs", func(t *tracker.TaskOut) { slug := "bob"; t.AssigneeSlug = &slug })
		d.change(func() { d.down = true })
		d.r.Connected(t.Context(), tracker.AuthOK{})
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned known done")
		d.change(func() { d.down = false })
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned known done", "task.found in_progress done", "task.found todo done")
		for range 3 {
			d.r.Connected(t.Context(), tracker.AuthOK{})
			d.wait(time.Hour)
		}
		_ = d.stop()
		d.start()
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		if got := len(d.ran()); got != 3 {
			t.Errorf("%d runs: %v", got, d.ran())
		}
	})
}

// After a connect what waits looks at its task, of which an event may have been missed.
func TestE0_17_WhatWaitsLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("t1", func(t *tracker.TaskOut) { t.Blocked = true })))
		d.edit("t1", func(t *tracker.TaskOut) { t.Blocked = false })
		d.wait(time.Second)
		d.want("runs", d.ran())
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		d.want("runs", d.ran(), "t1")
	})
}

// A list of many pages is read whole.
func TestE0_17_AllPagesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		const count = 2*tracker.MaxPage + 7
		for n := range count {
			d.task(fmt.Sprintf("t%04d", n), nil)
		}
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		if got := len(d.ran()); got != count {
			t.Errorf("%d runs of %d", got, count)
		}
	})
}

// An event that comes behind the list which had its task makes no second turn.
func TestE0_17_ListAndEventTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		e := assigned("e1", d.task("t1", nil))
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		d.accept(e)
		d.want("runs", d.ran(), "t1")
		d.r.Connected(t.Context(), tracker.AuthOK{})
		d.accept(assigned("e2", d.task("t2", nil)))
		d.want("runs", d.ran(), "t1", "t2")
	})
}

// When events were lost, a task that was assigned anew may be among them.
func TestH_04_WhatWasLostIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("again", nil)))
		d.accept(assigned("e2", d.task("same", nil)))
		d.accept(assigned("e3", d.task("begun", nil)))
		d.edit("again", func(*tracker.TaskOut) {})
		d.edit("begun", func(t *tracker.TaskOut) { t.Status = tracker.InProgress })
		d.task("new", nil)
		d.r.Connected(t.Context(), tracker.AuthOK{})
		synctest.Wait()
		d.want("runs", d.ran(), "again", "same", "begun", "new")
		d.accept(frame("e4", tracker.EventResync, tracker.Resync{Dropped: 3, Reason: "overflow"}))
		d.accept(frame("e5", tracker.EventResync, nil))
		d.want("runs", d.ran(), "again", "same", "begun", "new", "again")
		if got := d.items(); len(got) != 5 {
			t.Errorf("the items are %q", got)
		}
	})
}

// An event whose data is none is seen in the inbox, does not come again, and has the tasks
// listed.
func TestAnEventThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.task("t1", nil)
		for n, data := range []string{`{"task":{"id":7}}`, `[`, `{"task":{}}`, `{}`, ``, `{"id":"` + strings.Repeat("x", tracker.MaxRef+1) + `"}`} {
			f := frame(fmt.Sprint("e", n), tracker.EventTaskAssigned, nil)
			f.Data = []byte(data)
			d.accept(f)
		}
		items, _ := d.r.Items(t.Context(), router.Query{States: []router.State{router.Dropped}})
		if len(items) != 6 || slices.ContainsFunc(items, func(i router.Item) bool { return !strings.HasPrefix(i.Why, "its data cannot be read: ") }) {
			t.Errorf("the items are %q", d.items())
		}
		d.want("runs", d.ran(), "t1")
		for _, f := range []tracker.EventFrame{{Event: "task.assigned"}, {ID: strings.Repeat("x", 257)}, {ID: "e", Data: make([]byte, 1<<20+1)}} {
			if err := d.r.Accept(t.Context(), f); !errors.Is(err, router.ErrEvent) {
				t.Errorf("%.20q of %d bytes is accepted with %v", f.ID, len(f.Data), err)
			}
		}
	})
}

func TestS1_060_TheTaskIsInTheDataOrIsIt(t *testing.T) {
	for _, data := range []string{
		`{"task":{"id":"t1","key":"TE-1","assignee_slug":"coder"}}`,
		`{"id":"t1","key":"TE-1","assignee":{"slug":"coder"}}`,
		`{"task_id":"t1"}`, `{"task":null,"id":"t1"}`, `{"task":"text","id":"t1","assignee_slug":null}`, `{"key":"t1"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, nil)
			d.task("t1", nil)
			f := frame("e1", tracker.EventTaskAssigned, nil)
			f.Data = []byte(data)
			d.accept(f)
			d.want(data, d.ran(), "t1")
		})
	}
}

// An idle agent that listens to all tasks takes free ones by itself, one after the other,
// the most urgent first, if they suit it and it has not had them.
func TestC_45_C_12_FreeTasksAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) {
			o.TaskListen, o.Capabilities, o.Parallel = router.All, []string{"bug", "go"}, 3
		})
		begin := time.Now()
		free := func(id string, change func(*tracker.TaskOut)) {
			d.task(id, func(t *tracker.TaskOut) {
				t.AssigneeSlug, t.Type, t.CreatedAt = nil, "bug", begin
				if change != nil {
					change(t)
				}
			})
		}
		d.turn = func(_ context.Context, turn router.Turn) error {
			time.Sleep(time.Minute)
			if turn.Task.ID == "urgent" {
				return errors.New("no") // it is free again, and not for this agent
			}
			d.edit(turn.Task.ID, func(t *tracker.TaskOut) { t.Status = tracker.InReview })
			return nil
		}
		free("old", func(t *tracker.TaskOut) { t.CreatedAt = begin.Add(-time.Hour) })
		free("young", nil)
		free("urgent", func(t *tracker.TaskOut) { t.Priority, t.Type, t.Labels = "urgent", "task", []string{"web", "go"} })
		free("unfit", func(t *tracker.TaskOut) { t.Type, t.Labels = "task", []string{"web"} })
		free("rejected", func(t *tracker.TaskOut) { t.RejectedBy = []string{"bob", me} })
		free("blocked", func(t *tracker.TaskOut) { t.Blocked = true })
		free("backlog", func(t *tracker.TaskOut) { t.Status = tracker.Backlog })
		d.wait(24 * time.Hour)
		d.want("runs", d.ran(), "urgent", "old", "young")
		d.want("taken", d.taken, "urgent", "old", "young")
		if got := d.items(); len(got) != 3 {
			t.Errorf("the items are %q", got)
		}
		if d.most != 1 {
			t.Errorf("%d at once", d.most)
		}
	})
}

// A task that another takes first is left to it.
func TestS0_012_S0_048_ATakenTaskIsNotAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.TaskListen = router.All })
		hold := make(chan struct{})
		d.turn = func(context.Context, router.Turn) error { <-hold; return nil }
		d.accept(assigned("e1", d.task("mine", nil)))
		d.task("free", func(t *tracker.TaskOut) { t.AssigneeSlug = nil })
		d.change(func() { d.refuse["take"] = tracker.Errorf(tracker.CodeTaken, "bob has it") })
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned mine running")
		close(hold)
		d.wait(time.Hour)
		d.want("items", d.items(), "task.assigned mine done", "task.free free dropped: the tracker says: bob has it")
		d.want("runs", d.ran(), "mine")
	})
}

// A tracker that tells an agent of what it takes itself tells nothing new.
func TestC_45_ItsOwnTakeIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.TaskListen = router.All })
		d.turn = func(_ context.Context, turn router.Turn) error {
			return d.r.Accept(context.Background(), frame("e1", tracker.EventTaskAssigned, tracker.TaskAssigned{Task: turn.Task, Actor: tracker.MemberRef{Slug: me}}))
		}
		d.task("free", func(t *tracker.TaskOut) { t.AssigneeSlug = nil })
		d.wait(time.Minute)
		d.want("items", d.items(), "task.free free done")
	})
}

// A task that the agent rejects after it was found is not taken.
func TestE1_24_ARejectedTaskIsNotOfferedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.TaskListen = router.All })
		d.task("free", func(t *tracker.TaskOut) { t.AssigneeSlug = nil })
		d.change(func() { d.refuse["get"] = tracker.Errorf(tracker.CodeUnavailable, "away") })
		d.wait(time.Hour)
		d.want("items", d.items(), "task.free free accepted")
		d.edit("free", func(t *tracker.TaskOut) { t.RejectedBy = []string{me} })
		d.change(func() { delete(d.refuse, "get") })
		d.wait(time.Hour)
		d.want("items", d.items(), "task.free free dropped: the agent has rejected the task")
		d.want("taken", d.taken)
		slug := me
		d.accept(assigned("e1", d.edit("free", func(t *tracker.TaskOut) { t.AssigneeSlug = &slug }))) // somebody insists
		d.want("runs", d.ran(), "free")
	})
}

// What an event tells of is left alone from then on.
func TestC_45_EventsSayWhatIsFreeNoMore(t *testing.T) {
	for _, c := range []struct {
		name string
		data any
	}{
		{"task.taken", tracker.TaskTaken{TaskID: "second", AgentSlug: "bob"}},
		{"task.assigned", map[string]any{"task": map[string]any{"id": "second", "assignee_slug": "bob"}}},
		{"task.status", map[string]any{"task_id": "second", "to": "cancelled"}},
		{"task.rejected", map[string]any{"task_id": "other"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, func(o *router.Options) { o.TaskListen = router.All })
			hold := make(chan struct{})
			d.turn = func(context.Context, router.Turn) error { <-hold; return nil }
			for _, id := range []string{"first", "second"} {
				d.task(id, func(t *tracker.TaskOut) { t.AssigneeSlug = nil })
			}
			d.wait(time.Minute)
			synctest.Wait()
			d.accept(frame("e1", c.name, c.data))
			listed := d.listed["none"]
			close(hold) // so the agent is idle, and knows what is free from before
			synctest.Wait()
			want := []string{"first"}
			if c.name == "task.rejected" {
				want = append(want, "second")
			}
			d.want(c.name, d.taken, want...)
			if d.listed["none"] != listed {
				t.Errorf("%s: free tasks were listed again", c.name)
			}
		})
	}
}

// An agent that listens to no tasks asks for none.
func TestNoTasksIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.TaskListen = router.None })
		d.task("t1", nil)
		d.task("free", func(t *tracker.TaskOut) { t.AssigneeSlug = nil })
		d.r.Connected(t.Context(), tracker.AuthOK{})
		d.wait(24 * time.Hour)
		d.want("items", d.items())
		if len(d.listed) != 0 {
			t.Errorf("it has listed tasks: %v", d.listed)
		}
	})
}

// What has ended is kept for a time, and up to a number; what is open always.
func TestOldItemsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.Keep, o.KeepFor = 3, 48*time.Hour })
		d.accept(assigned("waits", d.task("waits", func(t *tracker.TaskOut) { t.Status = tracker.Backlog })))
		for n := range 5 {
			d.accept(assigned(fmt.Sprint("e", n), d.task(fmt.Sprint("t", n), nil)))
		}
		d.wait(3 * time.Hour)
		if got := d.items(); len(got) != 4 || !strings.HasPrefix(got[0], "task.assigned waits accepted") {
			t.Errorf("there are %q", got)
		}
		d.wait(49 * time.Hour)
		if got := d.items(); len(got) != 1 {
			t.Errorf("there are %q", got)
		}
	})
}

// Comments and messages for a prompt are kept whole, for who makes turns of them.
func TestS0_014_CommentsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		data := tracker.TaskComment{MessageOut: tracker.MessageOut{ID: "m", AuthorSlug: "ann", Content: "@coder look", Mentions: []string{me}}, Task: tracker.TaskShort{ID: "t1", Key: "TE-1", Title: "title"}}
		d.accept(frame("e1", tracker.EventTaskComment, data))
		d.accept(frame("e2", tracker.EventChatMessage, map[string]any{"chat_id": "c1", "author_slug": "ann", "content": "hey", "mentions": []string{me}}))
		items, err := d.r.Items(t.Context(), router.Query{States: []router.State{router.Heard}})
		if err != nil || len(items) != 2 {
			t.Fatalf("%+v, %v", items, err)
		}
		if i := items[0]; i.Task != "t1" || i.Key != "TE-1" || !strings.Contains(string(i.Data), "@coder look") || i.Open() {
			t.Errorf("the comment is %+v", i)
		}
		if i := items[1]; i.Chat != "c1" || i.Task != "" || !strings.Contains(string(i.Data), "hey") {
			t.Errorf("the message is %+v", i)
		}
		d.accept(frame("e3", tracker.EventChatMessage, map[string]any{"chat_id": "c1", "content": strings.Repeat("x", 200<<10), "mentions": []string{me}}))
		long, _ := d.r.Items(t.Context(), router.Query{Latest: true, Limit: 1})
		if i := long[0]; i.State != router.Heard || len(i.Data) != 0 || i.Why == "" {
			t.Errorf("a long message is %+v", i)
		}
		d.want("runs", d.ran())
	})
}
