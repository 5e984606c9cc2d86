package main

import (
	"strconv"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var list = sdk.Define(sdk.Spec{
	Name:        "list_steps",
	Title:       "List the steps of a task",
	Description: "Lists the checklist of a task in its order. The index of the first step is 0.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Этапы", "Этапы задачи по порядку, номера считаются с 0", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
	}),
}, tracker.Listed(listSteps, tracker.Text{En: "Steps: %d", Ru: "Этапов: %d"}, func(s tracker.Step) string {
	box := "[ ] "
	if s.Done {
		box = "[x] "
	}
	return box + strconv.Itoa(s.Index) + ": " + tracker.Cut(s.Title)
}))

func listSteps(c *sdk.Call, in taskInput) (page tracker.Page[tracker.Step], err error) {
	return page, tracker.Get(c, tracker.Path("tasks", in.TaskID, "steps"), nil, &page.Items)
}
