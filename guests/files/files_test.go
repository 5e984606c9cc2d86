package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_044_Files(t *testing.T) {
	site := boardtest.NewSite(t)
	if _, err := site.Ann.CreateTask(t.Context(), wire.CreateTask{Project: "test", Title: "First"}); err != nil {
		t.Fatal(err)
	}
	comment, err := site.For("coder").SendMessage(t.Context(), wire.SendMessage{TaskID: "TE-1", Content: "see"})
	if err != nil {
		t.Fatal(err)
	}
	host := sdktest.Host{Tracker: site.As("coder")}
	var a, b tracker.Attachment
	host.Call(t, module, "upload_file", `{"task_id":"#1","filename":"a.txt","content":"aGVsbG8="}`).Into(t, &a)
	host.Call(t, module, "upload_file", `{"message_id":"`+comment.ID+`","filename":"b.txt","content":"Yg=="}`).Into(t, &b)
	if a.Filename != "a.txt" || a.Size != 5 || a.TaskID == "" || b.MessageID != comment.ID || b.TaskID != a.TaskID {
		t.Errorf("attached %+v, %+v", a, b)
	}
	var f map[string]string
	host.Call(t, module, "download_file", `{"attachment_id":"`+a.ID+`"}`).Into(t, &f)
	if len(f) != 2 || f["filename"] != "a.txt" || f["content"] != "aGVsbG8=" {
		t.Errorf("read %v", f)
	}
	for _, c := range []struct{ lang, name, args, want string }{
		{"", "list_files", `{"task_id":"TE-1"}`, "Files: 2\n- a.txt (" + a.ID + ", text/plain"}, {"ru", "list_files", `{"project_id":"test"}`, "Файлов: 2\n"},
		{"", "list_files", `{"project_slug":"test"}`, "Files: 2\n"}, {"", "list_files", `{}`, "❌ Error: give exactly one of task_id and project_id"},
		{"", "list_files", `{"task_id":"TE-1","project_id":"test"}`, "❌ Error: give exactly one of"},
		{"", "list_files", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug are two names"},
		{"", "upload_file", `{"filename":"a","content":""}`, "❌ Error: give exactly one of task_id and message_id"},
		{"", "upload_file", `{"task_id":"TE-1","filename":"a","content":"no base64!"}`, "❌ Error: "},
		{"ru", "upload_file", `{"task_id":"TE-1","filename":"c","content":"Yw=="}`, "✅ Файл прикреплён: c ("},
		{"", "download_file", `{"attachment_id":"` + b.ID + `"}`, "✅ File b.txt, base64 of 4 characters"},
		{"ru", "download_file", `{"attachment_id":"none"}`, "❌ Ошибка: "},
	} {
		host.Config = map[string]string{"lang": c.lang}
		if got := host.Call(t, module, c.name, c.args); !strings.Contains(got.Text, c.want) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
			t.Errorf("%s %s: got %q, want %q", c.name, c.args, got.Text, c.want)
		}
	}
	long := map[string]string{"task_id": "TE-1", "filename": "a", "content": strings.Repeat("A", 2_800_001)}
	if got := host.Call(t, module, "upload_file", long); !got.IsError || !strings.Contains(got.Text, "at most 2800000") {
		t.Errorf("got %.100q", got.Text)
	}
}
