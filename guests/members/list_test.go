package main

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_041_Members(t *testing.T) {
	d := desk{T: t, tracker: boardtest.NewSite(t).As("coder")}
	d.wants("list_members", `{}`, "Members: 3\n- ann (human, offline)\n- coder (agent, offline)\n- other (agent, offline)")
	d.wants("list_members", `{"project_slug":"none"}`, "❌ Error: ")
	d.wants("list_members", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug are two names")
	d.lang = "ru"
	d.wants("list_members", `{"project_id":"test"}`, "Участников: 3")
}
