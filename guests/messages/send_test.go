package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestS1_035_Send(t *testing.T) {
	d := newDesk(t)
	for _, args := range []string{`"content":"x"`, `"content":"x","chat_id":"general","task_id":"TE-1"`} {
		d.Wants("send_message", `{`+args+`}`, "❌ Error: give exactly one of chat_id and task_id")
	}
	d.Wants("send_message", `{"content":"x","chat_id":"none"}`, "❌ Error: ")
	d.Lang = "ru"
	sdktest.Get[tracker.Message](d, "send_message", `{"chat_id":"general","content":"привет","mentions":["nobody"]}`, "✅ Отправлено\nнет участника @nobody")
}
