package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_026_UpdatesAndAliases(t *testing.T) {
	site := boardtest.NewSite(t)
	d := sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}
	sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"First","description":"kept"}`, "TE-1")
	if got := sdktest.Get[tracker.Task](d, "take_task", `{"task_id":"TE-1","agent_slug":"coder"}`, "✅ Task TE-1 is taken"); got.Status != "in_progress" || got.AssigneeSlug != "coder" {
		t.Errorf("taken %+v", got)
	}
	if got := sdktest.Get[tracker.Task](d, "update_task", `{"task_id":"#1","status":"review"}`, "✅ Task TE-1 is updated"); got.Status != "in_review" || got.Description != "kept" {
		t.Errorf("updated %+v", got)
	}
	d.Wants("list_tasks", `{"status":"review"}`, "- TE-1: First (in_review)")
	if got := sdktest.Get[tracker.Task](d, "update_task", `{"task_id":"TE-1","title":"New","description":"","labels":["x"],"version":3}`, ""); got.Title != "New" || got.Description != "" || len(got.Labels) != 1 {
		t.Errorf("updated %+v", got)
	}
	d.Wants("update_task", `{"task_id":"TE-1","title":"Newer","version":1}`, "❌ Error: ")
	d.Wants("update_task", `{"task_id":"TE-1"}`, "❌ Error: nothing is to be changed: give a field")
	d.Wants("update_task", `{"task_id":"TE-1","assignee":"a","assignee_slug":"b"}`, "❌ Error: assignee and assignee_slug are two names")
	if got := d.Call("update_task", `{"task_id":"TE-1","status":"finished"}`); !got.IsError || !strings.Contains(got.Text, "is none of backlog, todo, in_progress, in_review, done, cancelled") {
		t.Errorf("got %q", got.Text)
	}
	if got := sdktest.Get[tracker.Task](d, "update_task", `{"task_id":"TE-1","assignee_slug":"","labels":[]}`, ""); got.AssigneeSlug != "" || len(got.Labels) != 0 {
		t.Errorf("updated %+v", got)
	}
}
