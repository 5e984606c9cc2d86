package main

import (
	"testing"
)

func TestC_05_NamesOfSteps(t *testing.T) {
	d := newDesk(t)
	d.step("add_step", `{"task_id":"TE-1","title":"Zero"}`, "")
	one := d.step("add_step", `{"task_id":"TE-1","title":"One"}`, "")
	for _, ref := range []string{`"step_id":"` + one.ID + `"`, `"step_id":"1"`, `"step_id":1`, `"step_id":1.0`, `"index":1`, `"step_id":"1","index":1`} {
		if got := d.step("complete_step", `{"task_id":"TE-1",`+ref+`}`, "✅ Step 1 is done: One"); !got.Done || got.DoneAt == "" || got.DoneBy.Slug != "coder" {
			t.Errorf("%s: got %+v", ref, got)
		}
	}
	d.wants("complete_step", `{"task_id":"TE-1"}`, "❌ Error: step_id is missing")
	d.wants("complete_step", `{"task_id":"TE-1","step_id":"1","index":0}`, "❌ Error: step_id and index name a step each")
	d.wants("complete_step", `{"task_id":"TE-1","step_id":"7"}`, "❌ Error: ")
	d.wants("complete_step", `{"task_id":"TE-1","step_id":-1}`, "❌ Error: ")
	d.lang = "ru"
	d.step("complete_step", `{"task_id":"TE-1","index":0}`, "✅ Этап 0 выполнен: Zero")
}
