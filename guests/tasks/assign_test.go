package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_029_Assign(t *testing.T) {
	site := boardtest.NewSite(t)
	d := sdktest.Desk{T: t, Module: module, Tracker: site.As("coder", wire.TasksAssign)}
	sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	if got := sdktest.Get[tracker.Task](d, "assign_task", `{"task_id":"TE-1","assignee_slug":"other"}`, "✅ Task TE-1 is assigned to other"); got.AssigneeSlug != "other" {
		t.Errorf("assigned %+v", got)
	}
	d.Wants("assign_task", `{"task_id":"TE-1","assignee_slug":"nobody"}`, "❌ Error: ")
	sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}.Wants("assign_task", `{"task_id":"TE-1","assignee_slug":"ann"}`, "❌ Error: ")
}
