package main

import (
	"testing"
)

func TestS1_045_List(t *testing.T) {
	d, comment := newDesk(t)
	a := d.attach(`{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`)
	d.attach(`{"message_id":"` + comment + `","filename":"b.txt","content":"Yg=="}`)
	d.wants("list_files", `{"task_id":"TE-1"}`, "Files: 2\n- a.txt ("+a.ID+", text/plain")
	d.wants("list_files", `{"project_slug":"test"}`, "Files: 2\n")
	d.wants("list_files", `{}`, "❌ Error: give exactly one of task_id and project_id")
	d.wants("list_files", `{"task_id":"TE-1","project_id":"test"}`, "❌ Error: give exactly one of")
	d.wants("list_files", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug are two names")
	d.lang = "ru"
	d.wants("list_files", `{"project_id":"test"}`, "Файлов: 2\n")
}
