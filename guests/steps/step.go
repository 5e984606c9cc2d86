package main

import (
	"errors"
	"strconv"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

type taskInput struct {
	TaskID string `json:"task_id" doc:"The task's id, its key such as TE-15, or #15." min:"1" max:"128"`
}

// stepInput names a step.
type stepInput struct {
	taskInput
	StepID string `json:"step_id,omitempty" doc:"The step's id, or its index from 0 on." max:"128"`
	Index  *int   `json:"index,omitempty" doc:"The step's index from 0 on, in place of step_id." min:"0"`
}

func (in stepInput) path() (string, error) {
	ref := in.StepID
	switch {
	case ref == "" && in.Index == nil:
		return "", errors.New("step_id is missing: list_steps says which there are")
	case ref == "":
		ref = strconv.Itoa(*in.Index)
	case in.Index != nil && ref != strconv.Itoa(*in.Index):
		return "", errors.New("step_id and index name a step each: give one")
	}
	return tracker.Path("tasks", in.TaskID, "steps", ref), nil
}

func about(t tracker.Text) func(tracker.Language, tracker.Step) string {
	return func(l tracker.Language, s tracker.Step) string { return t.In(l, s.Index, s.Title) }
}

var list = sdk.Define(sdk.Spec{
	Name:        "list_steps",
	Title:       "List the steps of a task",
	Description: "Lists the checklist of a task in its order. The index of the first step is 0.",
	ReadOnly:    true,
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

var add = sdk.Define(sdk.Spec{
	Name:        "add_step",
	Title:       "Add a step",
	Description: "Adds a step to the checklist of a task, at its end. Split complex work into steps before you begin.",
	Additive:    true,
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

var update = sdk.Define(sdk.Spec{
	Name:        "update_step",
	Title:       "Change a step",
	Description: "Changes the title of a step, or marks it done or not done. The step is named by its id, or by its index, which begins at 0.",
	Idempotent:  true,
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
