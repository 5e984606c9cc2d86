package main

import (
	"testing"
)

func TestC_06_Chats(t *testing.T) {
	d := newDesk(t)
	if m := d.message("send_message", `{"chat_id":"general","content":"hello"}`, "✅ Sent"); m.ChatID == "" || m.TaskID != "" {
		t.Errorf("sent %+v", m)
	}
	d.message("send_message", `{"chat_id":"general","content":"again"}`, "✅ Sent")
	d.wants("read_messages", `{"chat_id":"general"}`, "Messages: 2\n- coder: hello\n- coder: again")
	d.wants("list_messages", `{"chat_id":"general","limit":1}`, "Messages: 1\n- coder: again")
	d.wants("list_messages", `{}`, "❌ Error: give exactly one of chat_id and task_id")
	d.wants("read_messages", `{"chat_id":"none"}`, "❌ Error: ")
	d.lang = "ru"
	d.wants("read_messages", `{"chat_id":"general"}`, "Сообщений: 2")
}
