package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_028_Reject(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	sdktest.Get[tracker.Task](d, "take_task", `{"task_id":"TE-1"}`, "")
	var out map[string]any
	d.Wants("reject_task", `{"task_id":"TE-1","reason":"too hard"}`, "✅ Task rejected: too hard").Into(t, &out)
	if len(out) != 2 || out["ok"] != true || out["reason"] != "too hard" {
		t.Errorf("rejected %v", out)
	}
	if got := sdktest.Get[tracker.Task](d, "get_task", `{"task_id":"TE-1"}`, ""); got.AssigneeSlug != "" || got.Status != "todo" || len(got.RejectedBy) != 1 {
		t.Errorf("left %+v", got)
	}
	if got := d.Call("reject_task", `{"task_id":"TE-1","reason":""}`); !got.IsError {
		t.Error("no reason is taken")
	}
}
