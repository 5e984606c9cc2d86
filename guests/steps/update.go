package main

import (
	"errors"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var update = sdk.Define(sdk.Spec{
	Name:        "update_step",
	Title:       "Change a step",
	Description: "Changes the title of a step, or marks it done or not done. The step is named by its id, or by its index, which begins at 0.",
	Idempotent:  true,
	Translations: tracker.InRussian("Изменить этап", "Обновить название этапа или отметку о выполнении", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
		"step_id": "ID этапа или его номер, считая с 0",
		"index":   "Номер этапа, считая с 0, вместо step_id",
		"title":   "Новое название",
		"done":    "Выполнен ли он",
	}),
}, tracker.Told(updateStep, about(tracker.Text{En: "✅ Step %d is updated: %s", Ru: "✅ Этап %d обновлён: %s"})))

type updateInput struct {
	stepInput
	Title *string `json:"title,omitempty" doc:"The new title." min:"1" max:"500"`
	Done  *bool   `json:"done,omitempty" doc:"Whether it is done."`
}

func updateStep(c *sdk.Call, in updateInput) (step tracker.Step, err error) {
	path, err := in.path()
	if err != nil {
		return step, err
	}
	body := map[string]any{}
	if in.Title != nil {
		body["title"] = *in.Title
	}
	if in.Done != nil {
		body["done"] = *in.Done
	}
	if len(body) == 0 {
		return step, errors.New("nothing is to be changed: give title or done")
	}
	return step, tracker.Patch(c, path, body, &step)
}
