package main

import (
	"testing"
)

func TestS1_046_Download(t *testing.T) {
	d, _ := newDesk(t)
	a := d.attach(`{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`)
	var f map[string]string
	d.wants("download_file", `{"attachment_id":"`+a.ID+`"}`, "✅ File a.txt, base64 of 8 characters").Into(t, &f)
	if len(f) != 2 || f["filename"] != "a.txt" || f["content"] != "aGVsbG8=" {
		t.Errorf("read %v", f)
	}
	d.lang = "ru"
	d.wants("download_file", `{"attachment_id":"none"}`, "❌ Ошибка: ")
}
