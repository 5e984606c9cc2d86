package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var list = sdk.Define(sdk.Spec{
	Name:        "list_projects",
	Title:       "List projects",
	Description: "Lists the active projects by slug. Other tools take a project's slug.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Список проектов", "Список активных проектов", map[string]string{
		"limit":  "Сколько самое большее показать",
		"cursor": "Где продолжить: из ответа на предыдущий вызов",
	}),
}, tracker.Listed(listProjects, tracker.Text{En: "Projects: %d", Ru: "Проектов: %d"}, func(p tracker.Project) string {
	return p.Slug + ": " + tracker.Cut(p.Name)
}))

func listProjects(c *sdk.Call, in tracker.Paging) (page tracker.Page[tracker.Project], err error) {
	return page, tracker.Get(c, tracker.Path("projects"), in.In(map[string]string{}), &page)
}
