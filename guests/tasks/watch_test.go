package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_030_WatchAndUnwatch(t *testing.T) {
	site := boardtest.NewSite(t)
	sdktest.Get[tracker.Task](sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}, "create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	d := sdktest.Desk{T: t, Module: module, Tracker: site.As("other")}
	d.Wants("watch_task", `{"task_id":"TE-1","agent_slug":"other"}`, "✅ Watched by: coder, other")
	d.Wants("watch_task", `{"task_id":"TE-1"}`, "✅ Watched by: coder, other")
	d.Wants("watch_task", `{"task_id":"TE-1","agent_slug":"ann"}`, "❌ Error: ")
	d.Wants("unwatch_task", `{"task_id":"TE-1"}`, "✅ Still watched by: coder")
}
