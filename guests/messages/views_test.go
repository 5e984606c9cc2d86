package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestC_04_OneMessageManyViews(t *testing.T) {
	d := newDesk(t)
	a := sdktest.Get[tracker.Message](d, "send_message", `{"task_id":"#1","content":"one @other"}`, "✅ Sent")
	b := sdktest.Get[tracker.Message](d, "add_comment", `{"task_id":"TE-1","text":"two"}`, "✅ Sent")
	sdktest.Get[tracker.Message](d, "add_comment", `{"task_id":"TE-1","content":"three","mentions":["other","nobody"]}`, "✅ Sent\nnobody is called @nobody")
	if a.TaskID == "" || a.ChatID != "" || a.AuthorSlug != "coder" || len(a.Mentions) != 1 || b.Content != "two" {
		t.Errorf("sent %+v, %+v", a, b)
	}
	answer := sdktest.Get[tracker.Message](d, "reply_message", `{"parent_id":"`+a.ID+`","content":"four"}`, "✅ Sent")
	if answer.ParentID != a.ID || answer.TaskID != a.TaskID {
		t.Errorf("answered %+v", answer)
	}
	const all = "Messages: 4\n- coder: one @other\n- coder: two\n- coder: three\n- coder: four"
	d.Wants("list_comments", `{"task_id":"TE-1"}`, all)
	d.Wants("list_messages", `{"task_id":"TE-1"}`, all)
	d.Wants("list_messages", `{"task_id":"TE-1","limit":2}`, "Messages: 2\n- coder: three\n- coder: four\nThere are more: call again with cursor ")
}
