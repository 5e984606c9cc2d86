package main

import (
	"testing"
)

func TestC_04_CommentsTakeText(t *testing.T) {
	d := newDesk(t)
	if got := d.message("add_comment", `{"task_id":"TE-1","text":"said"}`, "✅ Sent"); got.Content != "said" {
		t.Errorf("got %+v", got)
	}
	d.wants("add_comment", `{"task_id":"TE-1"}`, "❌ Error: content is missing")
	d.wants("add_comment", `{"task_id":"TE-1","content":"a","text":"b"}`, "❌ Error: content and text are two names")
	d.wants("add_comment", `{"task_id":"TE-9","content":"a"}`, "❌ Error: ")
}
