package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestS1_031_StepsOnABoard(t *testing.T) {
	d := newDesk(t)
	d.Wants("list_steps", `{"task_id":"TE-1"}`, "Steps: 0")
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"TE-1","title":"One"}`, "✅ Step 0 is added: One")
	sdktest.Get[tracker.Step](d, "add_step", `{"task_id":"#1","title":"Two"}`, "✅ Step 1 is added: Two")
	sdktest.Get[tracker.Step](d, "complete_step", `{"task_id":"TE-1","index":1}`, "✅ Step 1 is done: Two")
	d.Wants("list_steps", `{"task_id":"TE-1"}`, "Steps: 2\n- [ ] 0: One\n- [x] 1: Two")
	d.Wants("list_steps", `{"task_id":"TE-9"}`, "❌ Error: ")
	d.Lang = "ru"
	d.Wants("list_steps", `{"task_id":"TE-1"}`, "Этапов: 2\n")
	d.Wants("list_steps", `{"task_id":"TE-9"}`, "❌ Ошибка: ")
}
