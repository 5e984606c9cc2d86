package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestC_06_Chats(t *testing.T) {
	d := newDesk(t)
	if m := sdktest.Get[tracker.Message](d, "send_message", `{"chat_id":"general","content":"hello"}`, "✅ Sent"); m.ChatID == "" || m.TaskID != "" {
		t.Errorf("sent %+v", m)
	}
	sdktest.Get[tracker.Message](d, "send_message", `{"chat_id":"general","content":"again"}`, "✅ Sent")
	d.Wants("read_messages", `{"chat_id":"general"}`, "Messages: 2\n- coder: hello\n- coder: again")
	d.Wants("list_messages", `{"chat_id":"general","limit":1}`, "Messages: 1\n- coder: again")
	d.Wants("list_messages", `{}`, "❌ Error: give exactly one of chat_id and task_id")
	d.Wants("read_messages", `{"chat_id":"none"}`, "❌ Error: ")
	d.Lang = "ru"
	d.Wants("read_messages", `{"chat_id":"general"}`, "Сообщений: 2")
}
