package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
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
	d := sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}
	d.Wants("list_projects", `{}`, "Projects: 1\n- test: Test")
	d.Wants("list_projects", `{"cursor":"none"}`, "❌ Error: ")
	d.Lang = "ru"
	d.Wants("list_projects", `{}`, "Проектов: 1\n")
}
