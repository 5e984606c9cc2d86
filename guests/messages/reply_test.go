package main

import (
	"testing"
)

func TestS1_037_Reply(t *testing.T) {
	d := newDesk(t)
	first := d.message("send_message", `{"chat_id":"general","content":"a"}`, "✅ Sent")
	if got := d.message("reply_message", `{"parent_id":"`+first.ID+`","content":"b"}`, "✅ Sent"); got.ParentID != first.ID || got.ChatID != first.ChatID {
		t.Errorf("got %+v", got)
	}
	d.lang = "ru"
	d.wants("reply_message", `{"parent_id":"none","content":"a"}`, "❌ Ошибка: ")
}
