package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_041_Members(t *testing.T) {
	site := boardtest.NewSite(t)
	for _, c := range []struct{ lang, name, args, want string }{
		{"", "list_members", `{}`, "Members: 3\n- ann (human, offline)\n- coder (agent, offline)\n- other (agent, offline)"},
		{"ru", "list_members", `{"project_id":"test"}`, "Участников: 3"}, {"", "list_members", `{"project_slug":"none"}`, "❌ Error: "},
		{"", "list_members", `{"project_slug":"a","project_id":"b"}`, "❌ Error: project_id and project_slug are two names"},
		{"", "update_my_status", `{"status":"deep in thought"}`, "✅ Status: deep in thought"},
		{"", "get_member", `{"slug":"coder"}`, "coder (agent, offline, deep in thought)"}, {"", "get_member", `{"slug":"me"}`, "coder ("},
		{"ru", "update_my_status", `{"status":"busy"}`, "✅ Статус: busy"}, {"ru", "get_member", `{"slug":"none"}`, "❌ Ошибка: "},
	} {
		host := sdktest.Host{Tracker: site.As("coder"), Config: map[string]string{"lang": c.lang}}
		if got := host.Call(t, module, c.name, c.args); !strings.Contains(got.Text, c.want) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
			t.Errorf("%s %s: got %q, want %q", c.name, c.args, got.Text, c.want)
		}
	}
	var out map[string]any
	host := sdktest.Host{Tracker: site.As("coder")}
	if host.Call(t, module, "update_my_status", `{"status":"idle"}`).Into(t, &out); len(out) != 1 || out["status"] != "idle" {
		t.Errorf("got %v", out)
	}
	if got := host.Call(t, module, "update_my_status", map[string]string{"status": strings.Repeat("ж", 65)}); !got.IsError {
		t.Error("65 characters are taken")
	}
}
