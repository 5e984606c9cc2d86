package main

import (
	"testing"

	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_039_ActiveProjects(t *testing.T) {
	site := boardtest.NewSite(t)
	_, err := site.Ann.CreateProject(t.Context(), wire.CreateProject{Slug: "old"})
	if err == nil {
		_, err = site.Ann.UpdateProject(t.Context(), "old", wire.UpdateProject{Archived: wire.Some(true)})
	}
	if err != nil {
		t.Fatal(err)
	}
	d := desk{T: t, tracker: site.As("coder")}
	d.wants("list_projects", `{}`, "Projects: 1\n- test: Test")
	d.wants("list_projects", `{"cursor":"none"}`, "❌ Error: ")
	d.lang = "ru"
	d.wants("list_projects", `{}`, "Проектов: 1\n")
}
