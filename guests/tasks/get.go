package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var get = sdk.Define(sdk.Spec{
	Name:        "get_task",
	Title:       "Read a task",
	Description: "Reads one task with its description, status, assignee and what it waits for. Use it before you begin to work on a task.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Прочитать задачу", "Получить задачу по ID. Прочитай её, прежде чем начать работу.", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
	}),
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
