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
}, tracker.Told(completeStep, about(tracker.Text{En: "✅ Step %d is done: %s", Ru: "✅ Этап %d выполнен: %s"})))

func completeStep(c *sdk.Call, in stepInput) (step tracker.Step, err error) {
	path, err := in.path()
	if err != nil {
		return step, err
	}
	return step, tracker.Patch(c, path, map[string]any{"done": true}, &step)
}
