// Command files is the shipped module for the files of the tracker.
package main

import (
	"strconv"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var module = sdk.Serve(sdk.Module{
	Version: "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{
		{Name: "files:read", Reason: "Lists and reads files of tasks and messages."},
		{Name: "files:write", Reason: "Attaches files to tasks and messages for the agent."},
	}},
	Tools: []sdk.Tool{upload, list, download},
})

func main() { module.Main() }

func line(a tracker.Attachment) string {
	return a.Filename + " (" + a.ID + ", " + a.MIME + ", " + strconv.FormatInt(a.Size, 10) + " B)"
}

var upload = sdk.Define(sdk.Spec{
	Name:  "upload_file",
	Title: "Attach a file",
	Description: "Attaches a file to a task or to a message: give task_id or message_id. The content is base64, at most 2,800,000 characters, which " +
		"is a file of 2.1 MB.",
	Additive: true,
}, tracker.Told(uploadFile, func(l tracker.Language, a tracker.Attachment) string {
	return tracker.Text{En: "✅ File is attached: %s", Ru: "✅ Файл прикреплён: %s"}.In(l, line(a))
}))

// uploadInput has room for what comes through a sandbox: a call has at most 4 MiB.
type uploadInput struct {
	TaskID    string `json:"task_id,omitempty" doc:"The task's id, its key such as TE-15, or #15." max:"128"`
	MessageID string `json:"message_id,omitempty" doc:"The message's id." max:"128"`
	Filename  string `json:"filename" doc:"Its name, without a folder." min:"1" max:"255"`
	Content   string `json:"content" doc:"Base64." max:"2800000"`
}

func uploadFile(c *sdk.Call, in uploadInput) (a tracker.Attachment, err error) {
	if err := tracker.One("task_id", in.TaskID, "message_id", in.MessageID); err != nil {
		return a, err
	}
	path := tracker.Path("tasks", in.TaskID, "files")
	if in.MessageID != "" {
		path = tracker.Path("messages", in.MessageID, "files")
	}
	return a, tracker.Post(c, path, map[string]any{"filename": in.Filename, "content": in.Content}, &a)
}

var list = sdk.Define(sdk.Spec{
	Name:        "list_files",
	Title:       "List files",
	Description: "Lists the files of a task with those of its comments, or of a project: give task_id or project_id. Read one with download_file.",
	ReadOnly:    true,
}, tracker.Listed(listFiles, tracker.Text{En: "Files: %d", Ru: "Файлов: %d"}, line))

type listInput struct {
	TaskID      string `json:"task_id,omitempty" doc:"The task's id, its key such as TE-15, or #15." max:"128"`
	ProjectID   string `json:"project_id,omitempty" doc:"The project's id or slug." max:"128"`
	ProjectSlug string `json:"project_slug,omitempty" doc:"The same as project_id." max:"128"`
	tracker.Paging
}

func listFiles(c *sdk.Call, in listInput) (page tracker.Page[tracker.Attachment], err error) {
	project, err := tracker.Either("project_id", in.ProjectID, "project_slug", in.ProjectSlug)
	if err != nil {
		return page, err
	}
	if err := tracker.One("task_id", in.TaskID, "project_id", project); err != nil {
		return page, err
	}
	path := tracker.Path("tasks", in.TaskID, "files")
	if project != "" {
		path = tracker.Path("projects", project, "files")
	}
	return page, tracker.Get(c, path, in.In(map[string]string{}), &page)
}

var download = sdk.Define(sdk.Spec{
	Name:        "download_file",
	Title:       "Read a file",
	Description: "Reads a file that list_files named. The content is base64. A file of more than about 700 KB does not fit into a result.",
	ReadOnly:    true,
}, tracker.Told(downloadFile, func(l tracker.Language, f file) string {
	return tracker.Text{En: "✅ File %s, base64 of %d characters", Ru: "✅ Файл %s, base64 из %d символов"}.In(l, f.Filename, len(f.Content))
}))

type downloadInput struct {
	AttachmentID string `json:"attachment_id" doc:"The file's id." min:"1" max:"128"`
}

type file struct {
	Filename string `json:"filename"`
	Content  string `json:"content" doc:"Base64."`
}

func downloadFile(c *sdk.Call, in downloadInput) (f file, err error) {
	return f, tracker.Get(c, tracker.Path("attachments", in.AttachmentID), nil, &f)
}
