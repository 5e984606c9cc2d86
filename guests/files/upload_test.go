package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
)

func TestS1_044_Upload(t *testing.T) {
	d, comment := newDesk(t)
	a := d.attach(`{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`)
	b := d.attach(`{"message_id":"` + comment + `","filename":"b.txt","content":"Yg=="}`)
	if a.Filename != "a.txt" || a.Size != 5 || a.TaskID == "" || b.MessageID != comment || b.TaskID != a.TaskID {
		t.Errorf("attached %+v, %+v", a, b)
	}
	d.wants("upload_file", `{"filename":"a","content":""}`, "❌ Error: give exactly one of task_id and message_id")
	d.wants("upload_file", `{"task_id":"TE-1","filename":"a","content":"no base64!"}`, "❌ Error: ")
	long := map[string]string{"task_id": "TE-1", "filename": "a", "content": strings.Repeat("A", 2_800_001)}
	if got := (sdktest.Host{Tracker: d.tracker}).Call(t, module, "upload_file", long); !got.IsError || !strings.Contains(got.Text, "at most 2800000") {
		t.Errorf("got %.100q", got.Text)
	}
	d.lang = "ru"
	d.wants("upload_file", `{"task_id":"TE-1","filename":"c","content":"Yw=="}`, "✅ Файл прикреплён: c (")
}
