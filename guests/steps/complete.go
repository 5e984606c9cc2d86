package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var complete = sdk.Define(sdk.Spec{
	Name:        "complete_step",
	Title:       "Complete a step",
	Description: "Marks a step of a task as done. The step is named by its id, or by its index, which begins at 0. Twice is harmless.",
	Idempotent:  true,
	Translations: tracker.InRussian("Выполнить этап", "Отметить этап выполненным. Этап называют по ID или по номеру, считая с 0.", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
		"step_id": "ID этапа или его номер, считая с 0",
		"index":   "Номер этапа, считая с 0, вместо step_id",
	}),
}, tracker.Told(completeStep, about(tracker.Text{En: "✅ Step %d is done: %s", Ru: "✅ Этап %d выполнен: %s"})))

func completeStep(c *sdk.Call, in stepInput) (step tracker.Step, err error) {
	path, err := in.path()
	if err != nil {
		return step, err
	}
	return step, tracker.Patch(c, path, map[string]any{"done": true}, &step)
}
