package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestS1_034_Update(t *testing.T) {
	d := newDesk(t)
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"One"}`, "")
	if got := sdktest.Get[tracker.Step](d, "update_step", `{"task_id":"TE-1","index":0,"done":true}`, "✅ Step 0 is updated: One"); !got.Done {
		t.Errorf("done %+v", got)
	}
	if got := sdktest.Get[tracker.Step](d, "update_step", `{"task_id":"TE-1","index":0,"title":"Nil","done":false}`, "✅ Step 0 is updated: Nil"); got.Done || got.DoneBy != nil {
		t.Errorf("undone %+v", got)
	}
	d.Wants("update_step", `{"task_id":"TE-1","step_id":"0"}`, "❌ Error: nothing is to be changed")
	d.Wants("update_step", `{"task_id":"TE-1","done":true}`, "❌ Error: step_id is missing")
	d.Lang = "ru"
	sdktest.Get[tracker.Step](d, "update_step", `{"task_id":"TE-1","index":0,"title":"Ноль"}`, "✅ Этап 0 обновлён: Ноль")
}
