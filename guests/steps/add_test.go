package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestS1_032_AddWhere(t *testing.T) {
	d := newDesk(t)
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"One"}`, "✅ Step 0 is added: One")
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"Zero","index":0}`, "✅ Step 0 is added: Zero")
	d.Wants("list_steps", `{"task_id":"TE-1"}`, "- [ ] 0: Zero\n- [ ] 1: One")
	d.Wants("add_step", `{"task_id":"TE-9","title":"One"}`, "❌ Error: ")
	d.Lang = "ru"
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"Два"}`, "✅ Этап 2 добавлен: Два")
}
