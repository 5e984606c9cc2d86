package router_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/router/routertest"
)

// Every event in every spelling, for every way to listen, from the agent itself or from
// another: what is for a prompt, and what is internal. Nothing else makes an item.
func TestS0_062_E0_12_WhatIsForAPrompt(t *testing.T) {
	// T becomes a turn, H is kept for a prompt, - is internal. Of messages: from another that names nobody, the agent, everybody; from itself likewise.
	type byChat map[router.Listen]string
	chat := byChat{router.All: "HHH---", router.Mentions: "-H----", router.None: "------"}
	comment := byChat{router.All: "-HH---", router.Mentions: "-H----", router.None: "-H----"}
	message := func(in map[string]any, named ...string) map[string]any {
		in["content"], in["mentions"] = "text", named
		return in
	}
	atTask := func() map[string]any {
		return map[string]any{"id": "m", "task_id": "t", "task": map[string]any{"id": "t"}}
	}
	inChat := func() map[string]any { return map[string]any{"id": "m", "chat_id": "c"} }
	for _, c := range []struct {
		name string
		data func() map[string]any
		want byChat
	}{
		{"chat.message", inChat, chat},
		{"message.new", inChat, chat},
		{"task.comment_added", atTask, comment},
		{"task.comment", atTask, comment},
		{"message.new", atTask, comment},
	} {
		for mode, want := range c.want {
			for at, use := range want {
				data := message(c.data(), [][]string{nil, {"ann", me}, {tracker.All}}[at%3]...)
				data["author_slug"] = []string{"ann", me}[at/3]
				for _, tasks := range []router.Listen{router.Assigned, router.All, router.None} {
					check(t, tasks, mode, frame("e", c.name, data), string(use))
				}
			}
		}
	}
	// Of tasks: the agent's by another, by itself; another's by another, by the agent.
	byTasks := map[router.Listen]string{router.Assigned: "TT--", router.All: "TT--", router.None: "----"}
	all := map[string]map[router.Listen]string{"task.assigned": byTasks, "task.status_changed": byTasks, "task.status": byTasks}
	for _, name := range []string{"task.taken", "task.rejected", "agent.status_changed", "resync", "something.new", ""} {
		all[name] = map[router.Listen]string{router.Assigned: "----", router.All: "----", router.None: "----"}
	}
	for name, want := range all {
		for tasks, uses := range want {
			for at, use := range uses {
				about := map[string]any{"id": "t", "task_id": "t", "assignee_slug": []string{me, "bob"}[at/2], "status": "todo"}
				data := map[string]any{
					"task": about, "task_id": "blocker", "assignee_slug": "bob", "actor": map[string]any{"slug": []string{"ann", me}[at%2]},
					"unblocked": []any{about}, "agent_slug": "bob",
				}
				for _, chat := range []router.Listen{router.Mentions, router.All, router.None} {
					check(t, tasks, chat, frame("e", name, data), string(use))
				}
			}
		}
	}
}

// check has one event accepted by a router of its own.
func check(t *testing.T, tasks, chat router.Listen, f tracker.EventFrame, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, func(o *router.Options) { o.TaskListen, o.ChatListen = tasks, chat })
		d.task("t", nil)
		d.change(func() { d.refuse["list"] = tracker.Errorf(tracker.CodeUnavailable, "away") }) // what resync finds is no event's
		d.accept(f)
		got := "-"
		items, err := d.store.Items(t.Context(), router.Query{Agent: me})
		if err != nil || len(items) > 1 {
			t.Fatalf("%d items, %v", len(items), err)
		}
		for _, i := range items {
			got = map[router.State]string{router.Done: "T", router.Heard: "H"}[i.State]
		}
		if got != want {
			t.Errorf("tasks %s, chat %s: %s %s is %q, want %q", tasks, chat, f.Event, f.Data, got, want)
		}
		if ran := len(d.ran()); ran != len(items) && got == "T" || ran > 0 && got != "T" {
			t.Errorf("%s %s: %d turns", f.Event, f.Data, ran)
		}
	})
}

// What the board says in somebody's name is no message of theirs.
func TestSystemCommentsAreNotHeard(t *testing.T) {
	data := map[string]any{"id": "m", "task": map[string]any{"id": "t"}, "author_slug": "ann", "mentions": []string{me, "all"}, "system": true}
	check(t, router.Assigned, router.All, frame("e", "task.comment_added", data), "-")
}

func TestC_08_ListenModes(t *testing.T) {
	store, turns := &routertest.Memory{}, turns{}
	for _, c := range []struct {
		tasks, chat router.Listen
		lang, want  string
	}{
		{"", "", "", ""},
		{router.All, router.All, "ru", ""},
		{router.None, router.None, "en", ""},
		{router.Mentions, "", "", `tasks: "mentions", allowed are [assigned all none]`},
		{"", router.Assigned, "", `chat: "assigned", allowed are [mentions all none]`},
		{"", "", "zh", `lang: "zh", allowed are en and ru`},
	} {
		_, err := router.New(router.Options{
			Agent: me, Store: store, Turns: turns, Tracker: &desk{}, TaskListen: c.tasks, ChatListen: c.chat, Lang: c.lang,
		})
		if got := fmt.Sprint(err); got != c.want && (err != nil || c.want != "") {
			t.Errorf("%+v: got %s", c, got)
		}
	}
	for _, o := range []router.Options{
		{}, {Agent: me, Store: store, Turns: turns}, {Agent: me, Store: store, Turns: turns, Tracker: &desk{}, Parallel: -1},
	} {
		if _, err := router.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
