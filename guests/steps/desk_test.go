package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

type desk struct {
	*testing.T
	tracker http.Handler
	lang    string
}

func newDesk(t *testing.T) desk {
	site := boardtest.NewSite(t)
	if _, err := site.Ann.CreateTask(t.Context(), wire.CreateTask{Project: "test", Title: "First"}); err != nil {
		t.Fatal(err)
	}
	return desk{T: t, tracker: site.As("coder")}
}

func (d desk) wants(name, args, part string) sdktest.Result {
	d.Helper()
	got := sdktest.Host{Tracker: d.tracker, Config: map[string]string{"lang": d.lang}}.Call(d.T, module, name, args)
	if !strings.Contains(got.Text, part) || got.IsError != strings.HasPrefix(got.Text, "❌ ") {
		d.Errorf("%s %s: got %q (error %t), want %q", name, args, got.Text, got.IsError, part)
	}
	return got
}

func (d desk) step(name, args, part string) (s tracker.Step) {
	d.Helper()
	d.wants(name, args, part).Into(d.T, &s)
	return s
}
