package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// newDesk has the task TE-1 with a comment of coder's, whose id it returns.
func newDesk(t *testing.T) (sdktest.Desk, string) {
	site := boardtest.NewSite(t)
	_, err := site.Ann.CreateTask(t.Context(), wire.CreateTask{Project: "test", Title: "First"})
	if err != nil {
		t.Fatal(err)
	}
	comment, err := site.For("coder").SendMessage(t.Context(), wire.SendMessage{TaskID: "TE-1", Content: "see"})
	if err != nil {
		t.Fatal(err)
	}
	return sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}, comment.ID
}

func attach(d sdktest.Desk, args string) tracker.Attachment {
	d.Helper()
	return sdktest.Get[tracker.Attachment](d, "upload_file", args, "✅ File is attached: ")
}
