package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

// idInput names one task.
type idInput struct {
	TaskID string `json:"task_id" doc:"The task's id, its key such as TE-15, or #15." min:"1" max:"128"`
}

func (in idInput) path(below ...string) string {
	return tracker.Path(append([]string{"tasks", in.TaskID}, below...)...)
}

// about writes a text with the key of the task.
func about(t tracker.Text) func(tracker.Language, tracker.Task) string {
	return func(l tracker.Language, task tracker.Task) string { return t.In(l, task.Key) }
}

var get = sdk.Define(sdk.Spec{
	Name:        "get_task",
	Title:       "Read a task",
	Description: "Reads one task with its description, status, assignee and what it waits for. Use it before you begin to work on a task.",
	ReadOnly:    true,
}, tracker.Told(getTask, sayTask))

func getTask(c *sdk.Call, in idInput) (task tracker.Task, err error) {
	return task, tracker.Get(c, in.path(), nil, &task)
}

func sayTask(_ tracker.Language, t tracker.Task) string {
	text := t.Key + ": " + t.Title + " (" + t.Status + ")"
	if t.Description != "" {
		text += "\n\n" + t.Description
	}
	return text
}

// members is a JSON object in the making.
type members map[string]any

// put adds what was given.
func put[T any](m members, name string, value *T) {
	if value != nil {
		m[name] = *value
	}
}
