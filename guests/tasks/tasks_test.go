package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// A desk is where one agent works on a real board.
type desk struct {
	*testing.T
	tracker http.Handler
	lang    string
}

func (d desk) call(name, args string) sdktest.Result {
	d.Helper()
	return sdktest.Host{Tracker: d.tracker, Config: map[string]string{"lang": d.lang}}.Call(d.T, module, name, args)
}

// wants calls a tool and wants its text to have a part, beginning with ❌ if and only if it
// is an error.
func (d desk) wants(name, args, part string) sdktest.Result {
	d.Helper()
	got := d.call(name, args)
	if !strings.Contains(got.Text, part) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
		d.Errorf("%s %s: got %q (error %t), want %q", name, args, got.Text, got.IsError, part)
	}
	return got
}

func (d desk) task(name, args, part string) (t tracker.Task) {
	d.Helper()
	d.wants(name, args, part).Into(d.T, &t)
	return t
}

func TestS1_023_TasksOnABoard(t *testing.T) {
	site := boardtest.NewSite(t)
	d := desk{T: t, tracker: site.As("coder")}
	one := d.task("create_task", `{"project_slug":"test","title":"First","description":"All of it.","labels":["a","b"],"priority":"high","type":"bug"}`, "✅ Task TE-1 is created")
	if one.Key != "TE-1" || one.Priority != "high" || one.Type != "bug" || one.Creator.Slug != "coder" || len(one.Labels) != 2 || one.Status != "todo" {
		t.Errorf("created %+v", one)
	}
	d.task("create_task", `{"project_id":"test","title":"Second","parent_id":"#1","blocked_by":["TE-1"]}`, "TE-2")
	d.wants("list_tasks", `{"project_id":"test"}`, "Tasks found: 2\n- TE-2: Second (todo)\n- TE-1: First (todo)")
	d.wants("list_tasks", `{"labels":["a","b"]}`, "Tasks found: 1\n- TE-1")
	d.wants("list_tasks", `{"labels":["a","c"]}`, "Tasks found: 0")
	d.wants("list_tasks", `{"ready":true}`, "Tasks found: 1\n- TE-1")
	d.wants("list_tasks", `{"parent_id":"TE-1"}`, "Tasks found: 1\n- TE-2")
	d.wants("list_tasks", `{"q":"SECOND","assignee":"none","type":"task","priority":"medium","status":"todo,review"}`, "Tasks found: 1\n- TE-2")
	d.wants("get_task", `{"task_id":"#1"}`, "TE-1: First (todo)\n\nAll of it.")
	for _, ref := range []string{one.ID, "TE-1", "te-1", "#1", "1"} {
		if got := d.task("get_task", `{"task_id":"`+ref+`"}`, "First"); got.ID != one.ID {
			t.Errorf("%s: got %s", ref, got.ID)
		}
	}
}

// A list that goes on says how.
func TestE1_09_PagesOfTasks(t *testing.T) {
	d := desk{T: t, tracker: boardtest.NewSite(t).As("coder")}
	for range 3 {
		d.call("create_task", `{"project_slug":"test","title":"T"}`)
	}
	text := d.wants("list_tasks", `{"limit":2}`, "Tasks found: 2\n").Text
	_, cursor, ok := strings.Cut(text, "call again with cursor ")
	if !ok {
		t.Fatalf("got %q", text)
	}
	d.wants("list_tasks", `{"limit":2,"cursor":"`+cursor+`"}`, "Tasks found: 1\n- TE-1")
}

func TestS1_026_UpdatesAndAliases(t *testing.T) {
	site := boardtest.NewSite(t)
	d := desk{T: t, tracker: site.As("coder")}
	d.task("create_task", `{"project_slug":"test","title":"First","description":"kept"}`, "TE-1")
	if got := d.task("take_task", `{"task_id":"TE-1","agent_slug":"coder"}`, "✅ Task TE-1 is taken"); got.Status != "in_progress" || got.AssigneeSlug != "coder" {
		t.Errorf("taken %+v", got)
	}
	if got := d.task("update_task", `{"task_id":"#1","status":"review"}`, "✅ Task TE-1 is updated"); got.Status != "in_review" || got.Description != "kept" {
		t.Errorf("updated %+v", got)
	}
	d.wants("list_tasks", `{"status":"review"}`, "- TE-1: First (in_review)")
	if got := d.task("update_task", `{"task_id":"TE-1","title":"New","description":"","labels":["x"],"version":3}`, ""); got.Title != "New" || got.Description != "" || len(got.Labels) != 1 {
		t.Errorf("updated %+v", got)
	}
	d.wants("update_task", `{"task_id":"TE-1","title":"Newer","version":1}`, "❌ Error: ")
	d.wants("update_task", `{"task_id":"TE-1"}`, "❌ Error: nothing is to be changed: give a field")
	d.wants("update_task", `{"task_id":"TE-1","assignee":"a","assignee_slug":"b"}`, "❌ Error: assignee and assignee_slug are two names")
	d.wants("update_task", `{"task_id":"TE-1","status":"finished"}`, "use one of: backlog, todo, in_progress, in_review, done, cancelled")
	if got := d.task("update_task", `{"task_id":"TE-1","assignee_slug":"","labels":[]}`, ""); got.AssigneeSlug != "" || len(got.Labels) != 0 {
		t.Errorf("updated %+v", got)
	}
}

func TestS1_027_OneOfManyTakesATask(t *testing.T) {
	site := boardtest.NewSite(t)
	desk{T: t, tracker: site.As("coder")}.task("create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	texts := map[string]sdktest.Result{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, slug := range []string{"coder", "other"} {
		d := desk{T: t, tracker: site.As(slug)}
		all.Go(func() {
			got := d.call("take_task", `{"task_id":"TE-1"}`)
			mu.Lock()
			defer mu.Unlock()
			texts[slug] = got
		})
	}
	all.Wait()
	winner, loser := "coder", "other"
	if texts[winner].IsError {
		winner, loser = loser, winner
	}
	if texts[winner].IsError || !texts[loser].IsError || !strings.HasPrefix(texts[loser].Text, "❌ Error: ") || !strings.Contains(texts[loser].Text, winner) {
		t.Errorf("%s: %q, %s: %q", winner, texts[winner].Text, loser, texts[loser].Text)
	}
	desk{T: t, tracker: site.As(winner)}.task("take_task", `{"task_id":"TE-1"}`, "✅ Task TE-1 is taken")
}

func TestS1_028_RejectAssignWatch(t *testing.T) {
	site := boardtest.NewSite(t)
	d := desk{T: t, tracker: site.As("coder", wire.TasksAssign)}
	d.task("create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	if got := d.task("assign_task", `{"task_id":"TE-1","assignee_slug":"other"}`, "✅ Task TE-1 is assigned to other"); got.AssigneeSlug != "other" {
		t.Errorf("assigned %+v", got)
	}
	var out map[string]any
	other := desk{T: t, tracker: site.As("other")}
	other.wants("reject_task", `{"task_id":"TE-1","reason":"too hard"}`, "✅ Task rejected: too hard").Into(t, &out)
	if len(out) != 2 || out["ok"] != true || out["reason"] != "too hard" {
		t.Errorf("rejected %v", out)
	}
	other.wants("watch_task", `{"task_id":"TE-1","agent_slug":"other"}`, "✅ Watched by: coder, other")
	other.wants("watch_task", `{"task_id":"TE-1"}`, "✅ Watched by: coder, other")
	other.wants("unwatch_task", `{"task_id":"TE-1"}`, "✅ Still watched by: coder")
}

// A caller without the scope is told what it lacks.
func TestS1_054_Refusals(t *testing.T) {
	d := desk{T: t, tracker: boardtest.NewSite(t).As("coder")}
	d.wants("create_task", `{"title":"First"}`, "❌ Error: project_slug is missing")
	d.wants("create_task", `{"project_slug":"a","project_id":"b","title":"First"}`, "❌ Error: project_slug and project_id are two names")
	d.wants("list_tasks", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug")
	d.wants("list_tasks", `{"assignee":"a","assignee_slug":"b"}`, "❌ Error: assignee and assignee_slug")
	d.wants("get_task", `{"task_id":"TE-99"}`, `❌ Error: no task "TE-99"`)
	d.wants("take_task", `{"task_id":"../members/me"}`, "❌ Error: ")
	d.tracker = nil
	d.wants("get_task", `{"task_id":"TE-1"}`, "❌ Error: tracker_request: tracker_unavailable")
	d.tracker = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) })
	d.wants("get_task", `{"task_id":"TE-1"}`, "❌ Error: the tracker answered with status 502: tracker_unavailable: try again later")
}

func TestC_26_RussianTexts(t *testing.T) {
	d := desk{T: t, tracker: boardtest.NewSite(t).As("coder"), lang: "ru"}
	d.task("create_task", `{"project_slug":"test","title":"Первая"}`, "✅ Задача TE-1 создана")
	d.task("take_task", `{"task_id":"TE-1"}`, "✅ Задача TE-1 взята в работу")
	d.wants("list_tasks", `{}`, "Найдено задач: 1\n- TE-1: Первая (in_progress)")
	if got := d.wants("get_task", `{"task_id":"TE-9"}`, "❌ Ошибка: "); !got.IsError {
		t.Error("no error")
	}
}
