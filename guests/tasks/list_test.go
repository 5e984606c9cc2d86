package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_023_TasksOnABoard(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	one := sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"First","description":"All of it.","labels":["a","b"],"priority":"high","type":"bug"}`, "✅ Task TE-1 is created")
	if one.Key != "TE-1" || one.Priority != "high" || one.Type != "bug" || one.Creator.Slug != "coder" || len(one.Labels) != 2 || one.Status != "todo" {
		t.Errorf("created %+v", one)
	}
	sdktest.Get[tracker.Task](d, "create_task", `{"project_id":"test","title":"Second","parent_id":"#1","blocked_by":["TE-1"]}`, "TE-2")
	d.Wants("list_tasks", `{"project_id":"test"}`, "Tasks found: 2\n- TE-2: Second (todo)\n- TE-1: First (todo)")
	d.Wants("list_tasks", `{"labels":["a","b"]}`, "Tasks found: 1\n- TE-1")
	d.Wants("list_tasks", `{"labels":["a","c"]}`, "Tasks found: 0")
	d.Wants("list_tasks", `{"ready":true}`, "Tasks found: 1\n- TE-1")
	d.Wants("list_tasks", `{"parent_id":"TE-1"}`, "Tasks found: 1\n- TE-2")
	d.Wants("list_tasks", `{"q":"SECOND","assignee":"none","type":"task","priority":"medium","statuses":["todo","review"]}`, "Tasks found: 1\n- TE-2")
}

// A list that goes on says how.
func TestE1_09_PagesOfTasks(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	for range 3 {
		d.Call("create_task", `{"project_slug":"test","title":"T"}`)
	}
	text := d.Wants("list_tasks", `{"limit":2}`, "Tasks found: 2\n").Text
	_, cursor, ok := strings.Cut(text, "call again with cursor ")
	if !ok {
		t.Fatalf("got %q", text)
	}
	d.Wants("list_tasks", `{"limit":2,"cursor":"`+cursor+`"}`, "Tasks found: 1\n- TE-1")
}

func TestListWithTwoNames(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	d.Wants("list_tasks", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug")
	d.Wants("list_tasks", `{"assignee":"a","assignee_slug":"b"}`, "❌ Error: assignee and assignee_slug")
	d.Wants("list_tasks", `{"status":"todo","statuses":["done"]}`, "❌ Error: status and statuses are two names")
	d.Wants("list_tasks", `{"project_slug":"none"}`, "❌ Error: ")
}
