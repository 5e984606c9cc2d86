package main

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func line(a tracker.Attachment) string {
	return a.Filename + " (" + a.ID + ", " + a.MIME + ", " + strconv.FormatInt(a.Size, 10) + " B)"
}

var upload = sdk.Define(sdk.Spec{
	Name:        "upload_file",
	Title:       "Attach a file",
	Description: "Attaches a file of at most 1 MiB to a task or to a message: give task_id or message_id. The content is base64.",
	Additive:    true,
	Translations: tracker.InRussian("Загрузить файл", "Загрузить файл к сообщению или к задаче: укажи message_id или task_id", map[string]string{
		"task_id":    "ID или ключ задачи (TE-15)",
		"message_id": "ID сообщения",
		"filename":   "Имя без папки",
		"content":    "Base64",
	}),
}, tracker.Told(uploadFile, func(l tracker.Language, a tracker.Attachment) string {
	return tracker.Text{En: "✅ File is attached: %s", Ru: "✅ Файл прикреплён: %s"}.In(l, line(a))
}))

// maxUpload is how many bytes a file may have that comes as an argument of a call.
const maxUpload = 1 << 20

type uploadInput struct {
	TaskID    string `json:"task_id,omitempty" doc:"The task's id, its key such as TE-15, or #15." max:"128"`
	MessageID string `json:"message_id,omitempty" doc:"The message's id." max:"128"`
	Filename  string `json:"filename" doc:"Its name, without a folder." min:"1" max:"255"`
	Content   string `json:"content" doc:"Base64."`
}

func uploadFile(c *sdk.Call, in uploadInput) (a tracker.Attachment, err error) {
	if err := tracker.One("task_id", in.TaskID, "message_id", in.MessageID); err != nil {
		return a, err
	}
	path := tracker.Path("tasks", in.TaskID, "files")
	if in.MessageID != "" {
		path = tracker.Path("messages", in.MessageID, "files")
	}
	if size := sizeOf(in.Content); size > maxUpload {
		return a, fmt.Errorf("the file has %d bytes, at most %d go through this tool: a person can send it with POST %s", size, maxUpload, path)
	}
	return a, tracker.Post(c, path, map[string]any{"filename": in.Filename, "content": in.Content}, &a)
}

// sizeOf is how many bytes base64 stands for.
func sizeOf(content string) int {
	return base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(content, "=")))
}
