package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_043_Status(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder")}
	var out map[string]any
	d.Wants("update_my_status", `{"status":"deep in thought"}`, "✅ Status: deep in thought").Into(t, &out)
	if len(out) != 1 || out["status"] != "deep in thought" {
		t.Errorf("got %v", out)
	}
	d.Wants("get_member", `{"slug":"coder"}`, "coder (agent, offline, deep in thought)")
	if got := (sdktest.Host{Tracker: d.Tracker}).Call(t, module, "update_my_status", map[string]string{"status": strings.Repeat("ж", 65)}); !got.IsError {
		t.Error("65 characters are taken")
	}
	d.Lang = "ru"
	d.Wants("update_my_status", `{"status":"busy"}`, "✅ Статус: busy")
}
