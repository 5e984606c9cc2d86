package main

import (
	"testing"

	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_029_Assign(t *testing.T) {
	site := boardtest.NewSite(t)
	d := desk{T: t, tracker: site.As("coder", wire.TasksAssign)}
	d.task("create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	if got := d.task("assign_task", `{"task_id":"TE-1","assignee_slug":"other"}`, "✅ Task TE-1 is assigned to other"); got.AssigneeSlug != "other" {
		t.Errorf("assigned %+v", got)
	}
	d.wants("assign_task", `{"task_id":"TE-1","assignee_slug":"nobody"}`, "❌ Error: ")
	desk{T: t, tracker: site.As("coder")}.wants("assign_task", `{"task_id":"TE-1","assignee_slug":"ann"}`, "❌ Error: ")
}
