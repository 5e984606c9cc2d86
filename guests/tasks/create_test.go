package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestCreateWithTwoNamesOrNone(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	d.Wants("create_task", `{"title":"First"}`, "❌ Error: project_slug is missing")
	d.Wants("create_task", `{"project_slug":"a","project_id":"b","title":"First"}`, "❌ Error: project_slug and project_id are two names")
	d.Wants("create_task", `{"project_slug":"test","title":"First","assignee":"a","assignee_slug":"b"}`, "❌ Error: assignee_slug and assignee are two names")
	d.Wants("create_task", `{"project_slug":"none","title":"First"}`, "❌ Error: ")
}

func TestCreateForSomebody(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder", wire.TasksAssign)}
	if got := sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"First","assignee":"other","status":"backlog"}`, ""); got.AssigneeSlug != "other" || got.Status != "backlog" {
		t.Errorf("created %+v", got)
	}
}
