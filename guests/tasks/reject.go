package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var reject = sdk.Define(sdk.Spec{
	Name:        "reject_task",
	Title:       "Reject a task",
	Description: "Gives a task back that you cannot do, with the reason. It is then nobody's, and is not offered to you again.",
	Translations: tracker.InRussian("Отклонить задачу", "Отклонить задачу с причиной. Она станет ничьей и не будет предложена тебе снова.", map[string]string{
		"task_id": "ID или ключ задачи (TE-15)",
		"reason":  "Почему, для того, кто дал задачу",
	}),
}, tracker.Told(rejectTask, func(l tracker.Language, r rejected) string {
	return tracker.Text{En: "✅ Task rejected: %s", Ru: "✅ Задача отклонена: %s"}.In(l, r.Reason)
}))

type rejectInput struct {
	idInput
	Reason string `json:"reason" doc:"Why, for whoever gave the task." min:"1" max:"4096"`
}

type rejected struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

func rejectTask(c *sdk.Call, in rejectInput) (out rejected, err error) {
	return out, tracker.Post(c, in.path("reject"), members{"reason": in.Reason}, &out)
}
