package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var status = sdk.Define(sdk.Spec{
	Name:        "update_my_status",
	Title:       "Set your status",
	Description: "Sets the status that others see beside your name: idle, busy, away, offline, or a few words of your own.",
	Idempotent:  true,
	Translations: tracker.InRussian("Свой статус", "Обновить свой статус, который видят другие: idle, busy, away, offline или несколько своих слов", map[string]string{
		"status": "Не больше 64 символов",
	}),
}, tracker.Told(updateStatus, func(l tracker.Language, s statusText) string {
	return tracker.Text{En: "✅ Status: %s", Ru: "✅ Статус: %s"}.In(l, s.Status)
}))

type statusText struct {
	Status string `json:"status" doc:"At most 64 characters." max:"64"`
}

func updateStatus(c *sdk.Call, in statusText) (out statusText, err error) {
	return out, tracker.Patch(c, tracker.Path("members", "me"), map[string]any{"status": in.Status}, &out)
}
