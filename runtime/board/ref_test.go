package board_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

// FuzzReferences names things in every way: what is found has that name, and what is not is
// refused, never as a failure of the tracker.
func FuzzReferences(f *testing.F) {
	for _, ref := range []string{
		"", " ", "TB-1", "tb-1", " TB-1 ", "#1", "1", "##1", "#-1", "-1", "+1", "01", "1e0", "0x1", "９", "TB-01", "TB-2", "TB--1", "9223372036854775808",
		"team-board", "TEAM-BOARD", "@coder", "@@coder", "-0", "+0", "me", "ME", "all", "none", "general", "0", "../..", "%", "_", "\x00", "\xff", "ſtep", "K",
		strings.Repeat("1", tracker.MaxRef), strings.Repeat("1", tracker.MaxRef+1), "done", "In Progress", "in-progress", "review", "HIGH", "bug",
		"01990000-0000-7000-8000-000000000000", "01990000-0000-7000-8000-00000000000g", "LTE", "eA", "!", "e30=",
	} {
		f.Add(ref)
	}
	b := board.New(&boardtest.Memory{}, board.Options{})
	for slug, kind := range map[string]tracker.Kind{"ann": tracker.Human, "coder": tracker.Agent} {
		_, err := b.Ensure(f.Context(), tracker.CreateMember{Slug: slug, Kind: kind})
		must(f, err)
	}
	ann := b.For(tracker.Caller{Slug: "ann", Scopes: allScopes()})
	_, err := ann.CreateProject(f.Context(), tracker.CreateProject{Slug: "team-board"})
	must(f, err)
	task, err := ann.CreateTask(f.Context(), tracker.CreateTask{Project: "team-board", Title: "t"})
	must(f, err)
	step, err := ann.AddStep(f.Context(), task.ID, tracker.AddStep{Title: "s"})
	must(f, err)
	chat, err := ann.CreateChat(f.Context(), tracker.CreateChat{Slug: "general"})
	must(f, err)
	f.Fuzz(func(t *testing.T, ref string) {
		ctx := t.Context()
		check := func(what string, err error, names ...string) {
			t.Helper()
			var e *tracker.Error
			if err != nil && (!errors.As(err, &e) || e.Status() >= 500) {
				t.Fatalf("%s %q: %v", what, ref, err)
			}
			plain := strings.TrimLeft(strings.TrimSpace(ref), "#@0")
			for _, name := range names {
				if strings.EqualFold(plain, name) {
					return
				}
			}
			if err == nil && len(names) > 0 {
				t.Fatalf("%s %q was found", what, ref)
			}
		}
		_, err := ann.GetTask(ctx, ref)
		check("task", err, task.ID, task.Key, "1")
		_, err = ann.GetStep(ctx, task.ID, ref)
		check("step", err, step.ID, "") // 0 is the first
		got, err := ann.GetMember(ctx, ref)
		check("member", err, got.ID, got.Slug, "me")
		project, err := ann.GetProject(ctx, ref)
		check("project", err, project.ID, project.Slug, project.Key)
		_, err = ann.GetChat(ctx, ref)
		check("chat", err, chat.ID, chat.Slug)
		_, err = ann.GetMessage(ctx, ref)
		check("message", err, "no message")
		_, err = ann.DownloadFile(ctx, ref)
		check("file", err, "no file")
		for _, q := range []tracker.TaskQuery{
			{Project: ref}, {Parent: ref}, {Assignee: ref}, {Creator: ref}, {Watcher: ref}, {Statuses: []string{ref}}, {Type: ref}, {Priority: ref},
			{Labels: []string{ref}}, {Text: ref}, {Paging: tracker.Paging{Cursor: ref}},
		} {
			_, err := ann.ListTasks(ctx, q)
			check("list", err)
		}
		_, err = ann.ListMembers(ctx, tracker.MemberQuery{Kind: ref})
		check("kind", err)
		_, err = ann.Parked(ctx, ref, tracker.Paging{Cursor: ref})
		check("parked", err)
	})
}
