package main

import (
	"testing"
)

func TestS1_035_Send(t *testing.T) {
	d := newDesk(t)
	for _, args := range []string{`"content":"x"`, `"content":"x","chat_id":"general","task_id":"TE-1"`} {
		d.wants("send_message", `{`+args+`}`, "❌ Error: give exactly one of chat_id and task_id")
	}
	d.wants("send_message", `{"content":"x","chat_id":"none"}`, "❌ Error: ")
	d.lang = "ru"
	d.message("send_message", `{"chat_id":"general","content":"привет","mentions":["nobody"]}`, "✅ Отправлено\nнет участника @nobody")
}
