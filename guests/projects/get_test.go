package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_040_NamesOfAProject(t *testing.T) {
	d := desk{T: t, tracker: boardtest.NewSite(t).As("coder")}
	var one tracker.Project
	d.wants("get_project", `{"slug":"test"}`, "test: Test").Into(t, &one)
	if one.Slug != "test" || one.Key != "TE" || one.Name != "Test" {
		t.Errorf("got %+v", one)
	}
	d.wants("get_project", `{"project_slug":"test"}`, "test: Test")
	d.wants("get_project", `{"project_id":"`+one.ID+`"}`, "test: Test")
	d.wants("get_project", `{}`, "❌ Error: slug is missing")
	d.wants("get_project", `{"slug":"a","project_slug":"b"}`, "❌ Error: slug and project_slug are two names")
	d.wants("get_project", `{"slug":"a","project_id":"b"}`, "❌ Error: slug and project_id are two names")
	d.wants("get_project", `{"slug":"none"}`, "❌ Error: ")
	d.lang = "ru"
	d.wants("get_project", `{"slug":"none"}`, "❌ Ошибка: ")
}
