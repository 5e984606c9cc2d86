package main

import (
	"fmt"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var download = sdk.Define(sdk.Spec{
	Name:        "download_file",
	Title:       "Read a file",
	Description: "Reads a file that list_files named. The content is base64. A file of more than 750,000 bytes does not fit into a result.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Прочитать файл", "Скачать файл, который назвал list_files", map[string]string{
		"attachment_id": "ID файла",
	}),
}, tracker.Told(downloadFile, func(l tracker.Language, f file) string {
	return tracker.Text{En: "✅ File %s, base64 of %d characters", Ru: "✅ Файл %s, base64 из %d символов"}.In(l, f.Filename, len(f.Content))
}))

// maxDownload is how many bytes a file may have whose base64 has room in the result of a call,
// which is 1 MiB.
const maxDownload = 750_000

type downloadInput struct {
	AttachmentID string `json:"attachment_id" doc:"The file's id." min:"1" max:"128"`
}

type file struct {
	Filename string `json:"filename"`
	Content  string `json:"content" doc:"Base64."`
}

func downloadFile(c *sdk.Call, in downloadInput) (f file, err error) {
	path := tracker.Path("attachments", in.AttachmentID)
	if err := tracker.Get(c, path, nil, &f); err != nil {
		return f, err
	}
	if size := sizeOf(f.Content); size > maxDownload {
		return file{}, fmt.Errorf("the file has %d bytes, at most %d go through this tool: a person can read it with GET %s", size, maxDownload, path)
	}
	return f, nil
}
