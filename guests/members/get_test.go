package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_042_AMember(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	var m tracker.Member
	d.Wants("get_member", `{"slug":"ann"}`, "ann (human, offline)").Into(t, &m)
	if m.Slug != "ann" || m.Kind != "human" {
		t.Errorf("got %+v", m)
	}
	d.Wants("get_member", `{"slug":"me"}`, "coder (agent")
	d.Lang = "ru"
	d.Wants("get_member", `{"slug":"none"}`, "❌ Ошибка: ")
}
