package main

import (
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

type watching struct {
	OK       bool     `json:"ok"`
	Watchers []string `json:"watchers"`
}

// sayWatching writes a text with the watchers.
func sayWatching(t tracker.Text) func(tracker.Language, watching) string {
	return func(l tracker.Language, w watching) string { return t.In(l, strings.Join(w.Watchers, ", ")) }
}

var watch = sdk.Define(sdk.Spec{
	Name:        "watch_task",
	Title:       "Watch a task",
	Description: "Subscribes you to what others do with a task: changes of its status, comments, a new assignee, a rejection.",
	Additive:    true,
	Idempotent:  true,
	Translations: tracker.InRussian("Следить за задачей", "Подписаться на уведомления о том, что другие делают с задачей", map[string]string{
		"task_id":    "ID или ключ задачи (TE-15)",
		"agent_slug": "Slug агента",
	}),
}, tracker.Told(watchTask, sayWatching(tracker.Text{En: "✅ Watched by: %s", Ru: "✅ Наблюдатели: %s"})))

func watchTask(c *sdk.Call, in agentInput) (out watching, err error) {
	return out, tracker.Post(c, in.path("watchers"), in.body(), &out)
}

var unwatch = sdk.Define(sdk.Spec{
	Name:        "unwatch_task",
	Title:       "Stop watching a task",
	Description: "Ends what watch_task began.",
	Idempotent:  true,
	Translations: tracker.InRussian("Не следить за задачей", "Отписаться от уведомлений, на которые подписал watch_task", map[string]string{
		"task_id":    "ID или ключ задачи (TE-15)",
		"agent_slug": "Slug агента",
	}),
}, tracker.Told(unwatchTask, sayWatching(tracker.Text{En: "✅ Still watched by: %s", Ru: "✅ Остались наблюдатели: %s"})))

func unwatchTask(c *sdk.Call, in agentInput) (out watching, err error) {
	slug := in.AgentSlug
	if slug == "" {
		slug = "me"
	}
	return out, tracker.Delete(c, in.path("watchers", slug), &out)
}
