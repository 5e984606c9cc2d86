package main

import (
	"encoding/base64"
	"fmt"
	"testing"
)

func TestS1_046_Download(t *testing.T) {
	d, _ := newDesk(t)
	a := attach(d, `{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`)
	var f map[string]string
	d.Wants("download_file", `{"attachment_id":"`+a.ID+`"}`, "✅ File a.txt, base64 of 8 characters").Into(t, &f)
	if len(f) != 2 || f["filename"] != "a.txt" || f["content"] != "aGVsbG8=" {
		t.Errorf("read %v", f)
	}
	for size, says := range map[int]string{
		750_000: "✅ File b.txt, base64 of 1000000 characters",
		750_001: "❌ Error: the file has 750001 bytes, at most 750000 go through this tool: a person can read it with GET /attachments/",
	} {
		b := attach(d, fmt.Sprintf(`{"task_id":"#1","filename":"b.txt","content":%q}`, base64.StdEncoding.EncodeToString(make([]byte, size))))
		d.Wants("download_file", `{"attachment_id":"`+b.ID+`"}`, says)
	}
	d.Lang = "ru"
	d.Wants("download_file", `{"attachment_id":"none"}`, "❌ Ошибка: ")
}
