package main

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_030_WatchAndUnwatch(t *testing.T) {
	site := boardtest.NewSite(t)
	desk{T: t, tracker: site.As("coder")}.task("create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	d := desk{T: t, tracker: site.As("other")}
	d.wants("watch_task", `{"task_id":"TE-1","agent_slug":"other"}`, "✅ Watched by: coder, other")
	d.wants("watch_task", `{"task_id":"TE-1"}`, "✅ Watched by: coder, other")
	d.wants("watch_task", `{"task_id":"TE-1","agent_slug":"ann"}`, "❌ Error: ")
	d.wants("unwatch_task", `{"task_id":"TE-1"}`, "✅ Still watched by: coder")
}
