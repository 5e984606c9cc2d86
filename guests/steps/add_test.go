package main

import (
	"testing"
)

func TestS1_032_AddWhere(t *testing.T) {
	d := newDesk(t)
	d.step("add_step", `{"task_id":"TE-1","title":"One"}`, "✅ Step 0 is added: One")
	d.step("add_step", `{"task_id":"TE-1","title":"Zero","index":0}`, "✅ Step 0 is added: Zero")
	d.wants("list_steps", `{"task_id":"TE-1"}`, "- [ ] 0: Zero\n- [ ] 1: One")
	d.wants("add_step", `{"task_id":"TE-9","title":"One"}`, "❌ Error: ")
	d.lang = "ru"
	d.step("add_step", `{"task_id":"TE-1","title":"Два"}`, "✅ Этап 2 добавлен: Два")
}
