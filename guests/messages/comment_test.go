package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func TestC_04_CommentsTakeText(t *testing.T) {
	d := newDesk(t)
	if got := sdktest.Get[tracker.Message](d, "add_comment", `{"task_id":"TE-1","text":"said"}`, "✅ Sent"); got.Content != "said" {
		t.Errorf("got %+v", got)
	}
	d.Wants("add_comment", `{"task_id":"TE-1"}`, "❌ Error: content is missing")
	d.Wants("add_comment", `{"task_id":"TE-1","content":"a","text":"b"}`, "❌ Error: content and text are two names")
	d.Wants("add_comment", `{"task_id":"TE-9","content":"a"}`, "❌ Error: ")
}
