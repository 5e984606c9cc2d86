package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

type desk struct {
	*testing.T
	tracker http.Handler
	lang    string
}

func newDesk(t *testing.T) desk {
	site := boardtest.NewSite(t)
	if _, err := site.Ann.CreateTask(t.Context(), wire.CreateTask{Project: "test", Title: "First"}); err != nil {
		t.Fatal(err)
	}
	return desk{T: t, tracker: site.As("coder")}
}

func (d desk) wants(name, args, part string) sdktest.Result {
	d.Helper()
	got := sdktest.Host{Tracker: d.tracker, Config: map[string]string{"lang": d.lang}}.Call(d.T, module, name, args)
	if !strings.Contains(got.Text, part) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
		d.Errorf("%s %s: got %q (error %t), want %q", name, args, got.Text, got.IsError, part)
	}
	return got
}

func (d desk) message(name, args, part string) (m tracker.Message) {
	d.Helper()
	d.wants(name, args, part).Into(d.T, &m)
	return m
}

func TestC_04_OneMessageManyViews(t *testing.T) {
	d := newDesk(t)
	a := d.message("send_message", `{"task_id":"#1","content":"one @other"}`, "✅ Sent")
	b := d.message("add_comment", `{"task_id":"TE-1","text":"two"}`, "✅ Sent")
	d.message("add_comment", `{"task_id":"TE-1","content":"three","mentions":["other","nobody"]}`, "✅ Sent\nnobody is called @nobody")
	if a.TaskID == "" || a.ChatID != "" || a.AuthorSlug != "coder" || len(a.Mentions) != 1 || b.Content != "two" {
		t.Errorf("sent %+v, %+v", a, b)
	}
	answer := d.message("reply_message", `{"parent_id":"`+a.ID+`","content":"four"}`, "✅ Sent")
	if answer.ParentID != a.ID || answer.TaskID != a.TaskID {
		t.Errorf("answered %+v", answer)
	}
	const all = "Messages: 4\n- coder: one @other\n- coder: two\n- coder: three\n- coder: four"
	d.wants("list_comments", `{"task_id":"TE-1"}`, all)
	d.wants("list_messages", `{"task_id":"TE-1"}`, all)
	d.wants("list_messages", `{"task_id":"TE-1","limit":2}`, "Messages: 2\n- coder: three\n- coder: four\nThere are more: call again with cursor ")
}

func TestC_06_Chats(t *testing.T) {
	d := newDesk(t)
	if m := d.message("send_message", `{"chat_id":"general","content":"hello"}`, "✅ Sent"); m.ChatID == "" || m.TaskID != "" {
		t.Errorf("sent %+v", m)
	}
	d.wants("read_messages", `{"chat_id":"general"}`, "Messages: 1\n- coder: hello")
	d.wants("list_messages", `{"chat_id":"general","limit":1}`, "Messages: 1\n- coder: hello")
}

func TestMessagesToNowhere(t *testing.T) {
	d := newDesk(t)
	for _, args := range []string{`"content":"x"`, `"content":"x","chat_id":"general","task_id":"TE-1"`} {
		d.wants("send_message", `{`+args+`}`, "❌ Error: give exactly one of chat_id and task_id")
	}
	d.wants("list_messages", `{}`, "❌ Error: give exactly one of chat_id and task_id")
	d.wants("add_comment", `{"task_id":"TE-1"}`, "❌ Error: content is missing")
	d.wants("add_comment", `{"task_id":"TE-1","content":"a","text":"b"}`, "❌ Error: content and text are two names")
	d.wants("read_messages", `{"chat_id":"none"}`, "❌ Error: ")
	d.lang = "ru"
	d.message("send_message", `{"chat_id":"general","content":"привет"}`, "✅ Отправлено")
	d.wants("read_messages", `{"chat_id":"general"}`, "Сообщений: 1")
	d.wants("reply_message", `{"parent_id":"none","content":"a"}`, "❌ Ошибка: ")
}
