package main

import (
	"strings"
	"sync"
	"testing"

	"github.com/hutch-run/hutch/guests/sdk/sdktest"
	"github.com/hutch-run/hutch/guests/sdk/tracker"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestS1_027_OneOfManyTakesATask(t *testing.T) {
	site := boardtest.NewSite(t)
	sdktest.Get[tracker.Task](sdktest.Desk{T: t, Module: module, Tracker: site.As("coder")}, "create_task", `{"project_slug":"test","title":"First"}`, "TE-1")
	texts := map[string]sdktest.Result{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, slug := range []string{"coder", "other"} {
		d := sdktest.Desk{T: t, Module: module, Tracker: site.As(slug)}
		all.Go(func() {
			got := d.Call("take_task", `{"task_id":"TE-1"}`)
			mu.Lock()
			defer mu.Unlock()
			texts[slug] = got
		})
	}
	all.Wait()
	winner, loser := "coder", "other"
	if texts[winner].IsError {
		winner, loser = loser, winner
	}
	if texts[winner].IsError || !texts[loser].IsError || !strings.HasPrefix(texts[loser].Text, "❌ Error: ") || !strings.Contains(texts[loser].Text, winner) {
		t.Errorf("%s: %q, %s: %q", winner, texts[winner].Text, loser, texts[loser].Text)
	}
	sdktest.Get[tracker.Task](sdktest.Desk{T: t, Module: module, Tracker: site.As(winner)}, "take_task", `{"task_id":"TE-1"}`, "✅ Task TE-1 is taken")
}

func TestC_26_RussianTexts(t *testing.T) {
	d := sdktest.Desk{T: t, Module: module, Tracker: boardtest.NewSite(t).As("coder"), Lang: "ru"}
	sdktest.Get[tracker.Task](d, "create_task", `{"project_slug":"test","title":"Первая"}`, "✅ Задача TE-1 создана")
	sdktest.Get[tracker.Task](d, "take_task", `{"task_id":"TE-1"}`, "✅ Задача TE-1 взята в работу")
	d.Wants("list_tasks", `{}`, "Найдено задач: 1\n- TE-1: Первая (in_progress)")
	if got := d.Wants("get_task", `{"task_id":"TE-9"}`, "❌ Ошибка: "); !got.IsError {
		t.Error("no error")
	}
}
