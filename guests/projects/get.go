package main

import (
	"cmp"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var get = sdk.Define(sdk.Spec{
	Name:        "get_project",
	Title:       "Read a project",
	Description: "Reads one project: its name, its description, and the key that its tasks have.",
	ReadOnly:    true,
	Translations: tracker.InRussian("Проект", "Информация о проекте", map[string]string{
		"slug":         "Slug или ID проекта, обязателен",
		"project_slug": "То же, что slug",
		"project_id":   "То же, что slug",
	}),
}, tracker.Told(getProject, func(_ tracker.Language, p tracker.Project) string {
	return p.Slug + ": " + p.Name + "\n\n" + p.Description
}))

type getInput struct {
	Slug        string `json:"slug,omitempty" doc:"The project's slug or id. Must be there." max:"128"`
	ProjectSlug string `json:"project_slug,omitempty" doc:"The same as slug." max:"128"`
	ProjectID   string `json:"project_id,omitempty" doc:"The same as slug." max:"128"`
}

func getProject(c *sdk.Call, in getInput) (p tracker.Project, err error) {
	slug, err := tracker.Either("slug", in.Slug, "project_slug", in.ProjectSlug)
	if err != nil {
		return p, err
	}
	slug, err = tracker.Either("slug", slug, "project_id", in.ProjectID)
	if err = cmp.Or(err, tracker.Need("slug", slug)); err != nil {
		return p, err
	}
	return p, tracker.Get(c, tracker.Path("projects", slug), nil, &p)
}
