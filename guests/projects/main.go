// Command projects is the shipped module for the projects of the tracker.
package main

import (
	"cmp"

	"github.com/hutch-run/hutch/guests/sdk"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
)

var module = sdk.Serve(sdk.Module{
	Version:  "1.0.0",
	Requests: sdk.Requests{Tracker: []sdk.Scope{{Name: "projects:read", Reason: "Lists and reads projects."}}},
	Tools:    []sdk.Tool{list, get},
})

func main() { module.Main() }

var list = sdk.Define(sdk.Spec{
	Name:        "list_projects",
	Title:       "List projects",
	Description: "Lists the active projects by slug. Other tools take a project's slug.",
	ReadOnly:    true,
}, tracker.Listed(listProjects, tracker.Text{En: "Projects: %d", Ru: "Проектов: %d"}, func(p tracker.Project) string {
	return p.Slug + ": " + tracker.Cut(p.Name)
}))

func listProjects(c *sdk.Call, in tracker.Paging) (page tracker.Page[tracker.Project], err error) {
	return page, tracker.Get(c, tracker.Path("projects"), in.In(map[string]string{}), &page)
}

var get = sdk.Define(sdk.Spec{
	Name:        "get_project",
	Title:       "Read a project",
	Description: "Reads one project: its name, its description, and the key that its tasks have.",
	ReadOnly:    true,
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
