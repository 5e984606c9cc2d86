package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestS1_037_Reply(t *testing.T) {
	d := newDesk(t)
	first := sdktest.Get[tracker.Message](d, "send_message", `{"chat_id":"general","content":"a"}`, "✅ Sent")
	if got := sdktest.Get[tracker.Message](d, "reply_message", `{"parent_id":"`+first.ID+`","content":"b"}`, "✅ Sent"); got.ParentID != first.ID || got.ChatID != first.ChatID {
		t.Errorf("got %+v", got)
	}
	d.Lang = "ru"
	d.Wants("reply_message", `{"parent_id":"none","content":"a"}`, "❌ Ошибка: ")
}
