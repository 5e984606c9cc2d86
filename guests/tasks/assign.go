package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var assign = sdk.Define(sdk.Spec{
	Name:        "assign_task",
	Title:       "Assign a task",
	Description: "Gives a task to another member, who is told of it. To take one for yourself use take_task.",
	Idempotent:  true,
	Translations: tracker.InRussian("Назначить задачу", "Назначить задачу другому. Взять её себе: take_task.", map[string]string{
		"task_id":       "ID или ключ задачи (TE-15)",
		"assignee_slug": "Slug исполнителя",
	}),
}, tracker.Told(assignTask, func(l tracker.Language, t tracker.Task) string {
	return tracker.Text{En: "✅ Task %s is assigned to %s", Ru: "✅ Задача %s назначена: %s"}.In(l, t.Key, t.AssigneeSlug)
}))

type assignInput struct {
	idInput
	AssigneeSlug string `json:"assignee_slug" doc:"Who shall do it: a member's slug." min:"1" max:"64"`
}

func assignTask(c *sdk.Call, in assignInput) (task tracker.Task, err error) {
	return task, tracker.Patch(c, in.path(), members{"assignee_slug": in.AssigneeSlug}, &task)
}
