package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var list = sdk.Define(sdk.Spec{
	Name:        "list_files",
	Title:       "List files",
	Description: "Lists the files of a task with those of its comments, or of a project: give task_id or project_id. Read one with download_file.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Файлы", "Файлы задачи/проекта: укажи task_id или project_id", map[string]string{
		"task_id":      "ID или ключ задачи (TE-15)",
		"project_id":   "ID или slug проекта",
		"project_slug": "То же, что project_id",
		"limit":        "Сколько самое большее показать",
		"cursor":       "Где продолжить: из ответа на предыдущий вызов",
	}),
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
