package main

import (
	"encoding/base64"
	"testing"
)

func TestS1_044_Upload(t *testing.T) {
	d, comment := newDesk(t)
	a := attach(d, `{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`)
	b := attach(d, `{"message_id":"`+comment+`","filename":"b.txt","content":"Yg=="}`)
	if a.Filename != "a.txt" || a.Size != 5 || a.TaskID == "" || b.MessageID != comment || b.TaskID != a.TaskID {
		t.Errorf("attached %+v, %+v", a, b)
	}
	d.Wants("upload_file", `{"filename":"a","content":""}`, "❌ Error: give exactly one of task_id and message_id")
	d.Wants("upload_file", `{"task_id":"TE-1","filename":"a","content":"no base64!"}`, "❌ Error: ")
	content := make([]byte, 1<<20+1)
	args := func(size int) string {
		return `{"task_id":"TE-1","filename":"a","content":"` + base64.StdEncoding.EncodeToString(content[:size]) + `"}`
	}
	if largest := attach(d, args(1<<20)); largest.Size != 1<<20 {
		t.Errorf("attached %+v", largest)
	}
	d.Wants("upload_file", args(1<<20+1), "❌ Error: the file has 1048577 bytes, at most 1048576 go through this tool: a person can send it with POST /tasks/TE-1/files")
	d.Lang = "ru"
	d.Wants("upload_file", `{"task_id":"TE-1","filename":"c","content":"Yw=="}`, "✅ Файл прикреплён: c (")
}
