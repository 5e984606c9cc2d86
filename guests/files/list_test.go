package main

import (
	"testing"
)

func TestS1_045_List(t *testing.T) {
	d, comment := newDesk(t)
	a := attach(d, `{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`)
	attach(d, `{"message_id":"`+comment+`","filename":"b.txt","content":"Yg=="}`)
	d.Wants("list_files", `{"task_id":"TE-1"}`, "Files: 2\n- a.txt ("+a.ID+", text/plain")
	d.Wants("list_files", `{"project_slug":"test"}`, "Files: 2\n")
	d.Wants("list_files", `{}`, "❌ Error: give exactly one of task_id and project_id")
	d.Wants("list_files", `{"task_id":"TE-1","project_id":"test"}`, "❌ Error: give exactly one of")
	d.Wants("list_files", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug are two names")
	d.Lang = "ru"
	d.Wants("list_files", `{"project_id":"test"}`, "Файлов: 2\n")
}
