package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var add = sdk.Define(sdk.Spec{
	Name:        "add_step",
	Title:       "Add a step",
	Description: "Adds a step to the checklist of a task, at its end. Split complex work into steps before you begin.",
	Additive:    true,
	Translations: tracker.InRussian("Добавить этап", "Добавить этап в чеклист, в его конец. Раздели сложную работу на этапы, прежде чем начать.", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
		"title":   "Что сделать",
		"index":   "Куда его поставить, считая с 0; без него в конец",
	}),
}, tracker.Told(addStep, about(tracker.Text{En: "✅ Step %d is added: %s", Ru: "✅ Этап %d добавлен: %s"})))

type addInput struct {
	taskInput
	Title string `json:"title" doc:"What is to be done." min:"1" max:"500"`
	Index *int   `json:"index,omitempty" doc:"Where it goes, from 0 on; the end if left out." min:"0"`
}

func addStep(c *sdk.Call, in addInput) (step tracker.Step, err error) {
	body := map[string]any{"title": in.Title}
	if in.Index != nil {
		body["index"] = *in.Index
	}
	return step, tracker.Post(c, tracker.Path("tasks", in.TaskID, "steps"), body, &step)
}
