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

// newDesk has the task TE-1 with a comment of coder's, whose id it returns.
func newDesk(t *testing.T) (desk, string) {
	site := boardtest.NewSite(t)
	_, err := site.Ann.CreateTask(t.Context(), wire.CreateTask{Project: "test", Title: "First"})
	if err != nil {
		t.Fatal(err)
	}
	comment, err := site.For("coder").SendMessage(t.Context(), wire.SendMessage{TaskID: "TE-1", Content: "see"})
	if err != nil {
		t.Fatal(err)
	}
	return desk{T: t, tracker: site.As("coder")}, comment.ID
}

func (d desk) wants(name, args, part string) sdktest.Result {
	d.Helper()
	got := sdktest.Host{Tracker: d.tracker, Config: map[string]string{"lang": d.lang}}.Call(d.T, module, name, args)
	if !strings.Contains(got.Text, part) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
		d.Errorf("%s %s: got %q (error %t), want %q", name, args, got.Text, got.IsError, part)
	}
	return got
}

func (d desk) attach(args string) (a tracker.Attachment) {
	d.Helper()
	d.wants("upload_file", args, "✅ File is attached: ").Into(d.T, &a)
	return a
}
