package main

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_028_Reject(t *testing.T) {
	d := desk{T: t, tracker: boardtest.NewSite(t).As("coder")}
	d.task("create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	d.task("take_task", `{"task_id":"TE-1"}`, "")
	var out map[string]any
	d.wants("reject_task", `{"task_id":"TE-1","reason":"too hard"}`, "✅ Task rejected: too hard").Into(t, &out)
	if len(out) != 2 || out["ok"] != true || out["reason"] != "too hard" {
		t.Errorf("rejected %v", out)
	}
	if got := d.task("get_task", `{"task_id":"TE-1"}`, ""); got.AssigneeSlug != "" || got.Status != "todo" || len(got.RejectedBy) != 1 {
		t.Errorf("left %+v", got)
	}
	if got := d.call("reject_task", `{"task_id":"TE-1","reason":""}`); !got.IsError {
		t.Error("no reason is taken")
	}
}
