package main

import (
	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

func line(m tracker.Member) string {
	text := m.Slug + " (" + m.Kind + ", " + m.Presence
	if m.Status != "" {
		text += ", " + tracker.Cut(m.Status)
	}
	return text + ")"
}

var list = sdk.Define(sdk.Spec{
	Name:        "list_members",
	Title:       "List members",
	Description: "Lists people and agents by slug, with what they can do and whether they are online: all of them, or those of a project.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Участники", "Участники проекта, а без него все: что умеют и на связи ли", map[string]string{
		"project_id":   "ID проекта",
		"project_slug": "То же, что project_id",
		"limit":        "Сколько самое большее показать",
		"cursor":       "Где продолжить: из ответа на предыдущий вызов",
	}),
}, tracker.Listed(listMembers, tracker.Text{En: "Members: %d", Ru: "Участников: %d"}, line))

type listInput struct {
	ProjectID   string `json:"project_id,omitempty" doc:"A project's id or slug." max:"128"`
	ProjectSlug string `json:"project_slug,omitempty" doc:"The same as project_id." max:"128"`
	tracker.Paging
}

func listMembers(c *sdk.Call, in listInput) (page tracker.Page[tracker.Member], err error) {
	project, err := tracker.Either("project_id", in.ProjectID, "project_slug", in.ProjectSlug)
	if err != nil {
		return page, err
	}
	return page, tracker.Get(c, tracker.Path("members"), in.In(map[string]string{"project_id": project}), &page)
}
