package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

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
	if got := d.call("update_task", `{"task_id":"TE-1","status":"finished"}`); !got.IsError || !strings.Contains(got.Text, "is none of backlog, todo, in_progress, in_review, done, cancelled") {
		t.Errorf("got %q", got.Text)
	}
	if got := d.task("update_task", `{"task_id":"TE-1","assignee_slug":"","labels":[]}`, ""); got.AssigneeSlug != "" || len(got.Labels) != 0 {
		t.Errorf("updated %+v", got)
	}
}
