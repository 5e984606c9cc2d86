package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_041_Members(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	d.Wants("list_members", `{}`, "Members: 3\n- ann (human, offline)\n- coder (agent, offline)\n- other (agent, offline)")
	d.Wants("list_members", `{"project_slug":"none"}`, "❌ Error: ")
	d.Wants("list_members", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug are two names")
	d.Lang = "ru"
	d.Wants("list_members", `{"project_id":"test"}`, "Участников: 3")
}
