package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var take = sdk.Define(sdk.Spec{
	Name:  "take_task",
	Title: "Take a task",
	Description: "Assigns a task to you, atomically, if it is free, and sets it in_progress. If somebody was faster, the error says who has it. " +
		"Taking what you have already changes nothing.",
	Idempotent: true,
	Translations: tracker.InRussian("Взять задачу в работу", "Атомарно назначить задачу агенту, если она свободна", map[string]string{
		"task_id":    "ID или ключ задачи (TE-15)",
		"agent_slug": "Slug агента",
	}),
}, tracker.Told(takeTask, about(tracker.Text{En: "✅ Task %s is taken", Ru: "✅ Задача %s взята в работу"})))

func takeTask(c *sdk.Call, in agentInput) (task tracker.Task, err error) {
	return task, tracker.Post(c, in.path("take"), in.body(), &task)
}
