package main

import (
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	wire "github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func newDesk(t *testing.T) sdktest.Desk {
	site := boardtest.NewSite(t)
	if _, err := site.Ann.CreateTask(t.Context(), wire.CreateTask{Project: "test", Title: "First"}); err != nil {
		t.Fatal(err)
	}
	return sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}
}
