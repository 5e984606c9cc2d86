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

func TestS1_031_StepsOnABoard(t *testing.T) {
	d := newDesk(t)
	first := d.step("add_step", `{"task_id":"TE-1","title":"One"}`, "✅ Step 0 is added: One")
	d.step("add_step", `{"task_id":"#1","title":"Two"}`, "✅ Step 1 is added: Two")
	d.step("add_step", `{"task_id":"TE-1","title":"Zero","index":0}`, "✅ Step 0 is added: Zero")
	d.wants("list_steps", `{"task_id":"TE-1"}`, "Steps: 3\n- [ ] 0: Zero\n- [ ] 1: One\n- [ ] 2: Two")
	if got := d.step("complete_step", `{"task_id":"TE-1","step_id":"`+first.ID+`"}`, "✅ Step 1 is done: One"); !got.Done || got.DoneAt == "" || got.DoneBy.Slug != "coder" {
		t.Errorf("done %+v", got)
	}
	d.step("complete_step", `{"task_id":"TE-1","step_id":"1"}`, "✅ Step 1 is done: One")
	d.step("complete_step", `{"task_id":"TE-1","index":0}`, "✅ Step 0 is done: Zero")
	if got := d.step("update_step", `{"task_id":"TE-1","index":0,"title":"Nil","done":false}`, "✅ Step 0 is updated: Nil"); got.Done || got.DoneBy != nil {
		t.Errorf("undone %+v", got)
	}
	d.wants("list_steps", `{"task_id":"TE-1"}`, "- [ ] 0: Nil\n- [x] 1: One")
}

func TestStepsThatAreNot(t *testing.T) {
	d := newDesk(t)
	d.wants("complete_step", `{"task_id":"TE-1"}`, "❌ Error: step_id is missing")
	d.wants("complete_step", `{"task_id":"TE-1","step_id":"1","index":0}`, "❌ Error: step_id and index name a step each")
	d.wants("complete_step", `{"task_id":"TE-1","step_id":"7"}`, "❌ Error: ")
	d.wants("update_step", `{"task_id":"TE-1","step_id":"0"}`, "❌ Error: nothing is to be changed")
	d.wants("update_step", `{"task_id":"TE-1","done":true}`, "❌ Error: step_id is missing")
	d.lang = "ru"
	d.step("add_step", `{"task_id":"TE-1","title":"Один"}`, "✅ Этап 0 добавлен: Один")
	d.step("complete_step", `{"task_id":"TE-1","step_id":"0"}`, "✅ Этап 0 выполнен: Один")
	d.wants("list_steps", `{"task_id":"TE-9"}`, "❌ Ошибка: ")
}
