package main

import (
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_039_Projects(t *testing.T) {
	site := boardtest.NewSite(t)
	if _, err := site.Ann.CreateProject(t.Context(), wire.CreateProject{Slug: "old"}); err != nil {
		t.Fatal(err)
	}
	if _, err := site.Ann.UpdateProject(t.Context(), "old", wire.UpdateProject{Archived: wire.Some(true)}); err != nil {
		t.Fatal(err)
	}
	var one tracker.Project
	sdktest.Host{Tracker: site.As("coder")}.Call(t, module, "get_project", `{"slug":"test"}`).Into(t, &one)
	if one.Slug != "test" || one.Key != "TE" || one.Name != "Test" {
		t.Errorf("got %+v", one)
	}
	for _, c := range []struct{ lang, name, args, want string }{
		{"", "list_projects", `{}`, "Projects: 1\n- test: Test"}, {"ru", "list_projects", `{}`, "Проектов: 1\n"},
		{"", "get_project", `{"project_slug":"test"}`, "test: Test"}, {"", "get_project", `{"project_id":"` + one.ID + `"}`, "test: Test"},
		{"", "get_project", `{}`, "❌ Error: slug is missing"}, {"", "get_project", `{"slug":"a","project_id":"b"}`, "❌ Error: slug and project_id are two names"},
		{"", "get_project", `{"slug":"none"}`, "❌ Error: "}, {"ru", "get_project", `{"slug":"none"}`, "❌ Ошибка: "},
	} {
		host := sdktest.Host{Tracker: site.As("coder"), Config: map[string]string{"lang": c.lang}}
		if got := host.Call(t, module, c.name, c.args); !strings.Contains(got.Text, c.want) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
			t.Errorf("%s %s: got %q, want %q", c.name, c.args, got.Text, c.want)
		}
	}
}
