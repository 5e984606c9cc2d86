package main

import (
	"net/http"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_024_EveryNameOfATask(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	one := sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"First","description":"All of it."}`, "TE-1")
	d.Wants("get_task", `{"task_id":"#1"}`, "TE-1: First (todo)\n\nAll of it.")
	for _, ref := range []string{one.ID, "TE-1", "te-1", "#1", "1"} {
		if got := sdktest.Get[tracker.Task](d, "get_task", `{"task_id":"`+ref+`"}`, "First"); got.ID != one.ID {
			t.Errorf("%s: got %s", ref, got.ID)
		}
	}
}

// What goes wrong is a result that says so, whether the tracker, the host or nobody refuses.
func TestS1_054_Refusals(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	d.Wants("get_task", `{"task_id":"TE-99"}`, `❌ Error: no task "TE-99"`)
	d.Wants("get_task", `{"task_id":"../members/me"}`, "❌ Error: ")
	d.Tracker = nil
	d.Wants("get_task", `{"task_id":"TE-1"}`, "❌ Error: tracker_request: tracker_unavailable")
	d.Tracker = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) })
	d.Wants("get_task", `{"task_id":"TE-1"}`, "❌ Error: the tracker answered with status 502: tracker_unavailable: try again later")
}
