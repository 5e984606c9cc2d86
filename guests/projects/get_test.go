package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_040_NamesOfAProject(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	var one tracker.Project
	d.Wants("get_project", `{"slug":"test"}`, "test: Test").Into(t, &one)
	if one.Slug != "test" || one.Key != "TE" || one.Name != "Test" {
		t.Errorf("got %+v", one)
	}
	d.Wants("get_project", `{"project_slug":"test"}`, "test: Test")
	d.Wants("get_project", `{"project_id":"`+one.ID+`"}`, "test: Test")
	d.Wants("get_project", `{}`, "❌ Error: slug is missing")
	d.Wants("get_project", `{"slug":"a","project_slug":"b"}`, "❌ Error: slug and project_slug are two names")
	d.Wants("get_project", `{"slug":"a","project_id":"b"}`, "❌ Error: slug and project_id are two names")
	d.Wants("get_project", `{"slug":"none"}`, "❌ Error: ")
	d.Lang = "ru"
	d.Wants("get_project", `{"slug":"none"}`, "❌ Ошибка: ")
}
