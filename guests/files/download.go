package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

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
