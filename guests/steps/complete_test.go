package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestC_05_NamesOfSteps(t *testing.T) {
	d := newDesk(t)
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"Zero"}`, "")
	one := sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"One"}`, "")
	for _, ref := range []string{`"step_id":"` + one.ID + `"`, `"step_id":"1"`, `"step_id":1`, `"step_id":1.0`, `"index":1`, `"step_id":"1","index":1`} {
		if got := sdktest.Get[tracker.Step](d, "complete_step", `{"task_id":"TE-1",`+ref+`}`, "✅ Step 1 is done: One"); !got.Done || got.DoneAt == "" || got.DoneBy.Slug != "coder" {
			t.Errorf("%s: got %+v", ref, got)
		}
	}
	d.Wants("complete_step", `{"task_id":"TE-1"}`, "❌ Error: step_id is missing")
	d.Wants("complete_step", `{"task_id":"TE-1","step_id":"1","index":0}`, "❌ Error: step_id and index name a step each")
	d.Wants("complete_step", `{"task_id":"TE-1","step_id":"7"}`, "❌ Error: ")
	d.Wants("complete_step", `{"task_id":"TE-1","step_id":-1}`, "❌ Error: ")
	d.Lang = "ru"
	sdktest.Get[tracker.Step](d, "complete_step", `{"task_id":"TE-1","index":0}`, "✅ Этап 0 выполнен: Zero")
}
