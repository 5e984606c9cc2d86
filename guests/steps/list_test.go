package main

import (
	"testing"
)

func TestS1_031_StepsOnABoard(t *testing.T) {
	d := newDesk(t)
	d.wants("list_steps", `{"task_id":"TE-1"}`, "Steps: 0")
	d.step("add_step", `{"task_id":"TE-1","title":"One"}`, "✅ Step 0 is added: One")
	d.step("add_step", `{"task_id":"#1","title":"Two"}`, "✅ Step 1 is added: Two")
	d.step("complete_step", `{"task_id":"TE-1","index":1}`, "✅ Step 1 is done: Two")
	d.wants("list_steps", `{"task_id":"TE-1"}`, "Steps: 2\n- [ ] 0: One\n- [x] 1: Two")
	d.wants("list_steps", `{"task_id":"TE-9"}`, "❌ Error: ")
	d.lang = "ru"
	d.wants("list_steps", `{"task_id":"TE-1"}`, "Этапов: 2\n")
	d.wants("list_steps", `{"task_id":"TE-9"}`, "❌ Ошибка: ")
}
