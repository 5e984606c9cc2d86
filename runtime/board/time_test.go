package board_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func agentOf(b *board.Board, slug string) tracker.Service {
	return b.For(tracker.Caller{Slug: slug, Scopes: allScopes()})
}

func TestRunDoesWhatTimeDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		var broken atomic.Bool
		store := &boardtest.Memory{Fail: func(c board.Change) error {
			if broken.Load() && len(c.Members) > 0 {
				panic("a broken store")
			}
			return nil
		}}
		b := board.New(store, board.Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
		for _, slug := range []string{"coder", "other"} {
			_, err := b.Ensure(t.Context(), tracker.CreateMember{Slug: slug})
			must(t, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Run(ctx) }()
		for _, slug := range []string{"coder", "other"} {
			_, _, err := agentOf(b, slug).Connect(t.Context(), tracker.AuthAgent{}, nil)
			must(t, err)
		}
		broken.Store(true)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		broken.Store(false)
		time.Sleep(tracker.OfflineAfter - 5*time.Second)
		must(t, agentOf(b, "other").Heartbeat(t.Context(), tracker.Heartbeat{}))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		all, err := agentOf(b, "other").Events(t.Context(), 0, 10)
		must(t, err)
		var got []string
		for _, e := range all {
			got = append(got, e.Name)
		}
		same(t, "told", got, []string{tracker.EventAgentStatus, tracker.EventAgentStatus}) // online, offline
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if !strings.Contains(lines.String(), "a broken store") {
			t.Errorf("nothing was said of it: %s", &lines)
		}
	})
}

// What another process has written is found by looking.
func TestWaitPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &boardtest.Memory{}
		here, there := board.New(store, board.Options{Poll: 200 * time.Millisecond}), board.New(store, board.Options{})
		for _, slug := range []string{"ann", "coder"} {
			_, err := here.Ensure(t.Context(), tracker.CreateMember{Slug: slug})
			must(t, err)
		}
		go func() {
			time.Sleep(time.Second + time.Millisecond)
			_, err := agentOf(there, "ann").CreateChat(t.Context(), tracker.CreateChat{Slug: "general"})
			if err == nil {
				_, err = agentOf(there, "ann").SendMessage(t.Context(), tracker.SendMessage{ChatID: "general", Content: "x"})
			}
			if err != nil {
				t.Error(err)
			}
		}()
		began := time.Now()
		must(t, agentOf(here, "coder").Wait(t.Context(), 0))
		same(t, "found after", time.Since(began), 1200*time.Millisecond)
		synctest.Wait()
	})
}

func TestParkedEventsComeInPages(t *testing.T) {
	d := newDesk(t, board.Options{})
	for range 3 {
		d.task("a", func(c *tracker.CreateTask) { c.AssigneeSlug = "coder" })
	}
	all, err := d.agent("coder").Events(t.Context(), 0, 10)
	must(t, err)
	ids := []string{all[0].ID, all[1].ID, all[2].ID}
	for range tracker.MaxTries + 1 {
		_, err := d.agent("coder").Sent(t.Context(), ids)
		must(t, err)
	}
	var got []string
	p := tracker.Paging{Limit: 2}
	for {
		page, err := d.agent("coder").Parked(t.Context(), "me", p)
		must(t, err)
		for _, e := range page.Items {
			got = append(got, e.ID)
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			break
		}
	}
	same(t, "parked", got, ids)
	for _, cursor := range []string{"eA", "!"} {
		_, err = d.agent("coder").Parked(t.Context(), "me", tracker.Paging{Cursor: cursor})
		refused(t, err, tracker.CodeInvalid)
	}
}

// E1-13, E1-16: giving, taking back and giving to another, and who may.
func TestE1_13_Assigning(t *testing.T) {
	d := newDesk(t, board.Options{})
	task := d.task("a", func(c *tracker.CreateTask) { c.Status = "backlog" })
	give := func(by tracker.Service, to tracker.Field[string]) (tracker.TaskOut, error) {
		return by.UpdateTask(t.Context(), task.Key, tracker.UpdateTask{AssigneeSlug: to})
	}
	_, err := give(d.agent("coder"), tracker.Some("other"))
	refused(t, err, tracker.CodeForbidden)
	got, err := give(d.as("ann"), tracker.Some("coder"))
	must(t, err)
	same(t, "given, and not begun", []any{got.AssigneeSlug, got.Status}, []any{"coder", "backlog"})
	same(t, "told", d.events("coder"), []string{tracker.EventTaskAssigned})
	_, err = give(d.as("ann"), tracker.Some("coder"))
	must(t, err)
	same(t, "told again", d.events("coder"), []string(nil))
	_, err = give(d.agent("other"), tracker.Some("other"))
	same(t, "holder", refused(t, err, tracker.CodeTaken)["holder"], "coder")
	_, err = give(d.agent("other"), tracker.Null[string]())
	refused(t, err, tracker.CodeTaken)
	_, err = give(d.as("ann"), tracker.Some("other"))
	must(t, err)
	same(t, "the one before is told too", d.events("coder"), []string{tracker.EventTaskAssigned})
	_, err = d.as("ann").CreateTask(t.Context(), tracker.CreateTask{Project: "team-board", Title: "x", AssigneeSlug: "coder"})
	must(t, err)
	got, err = give(d.agent("other"), tracker.Null[string]())
	must(t, err)
	same(t, "given back", got.Assignee, nil)
	_, err = d.as("ann").UpdateTask(t.Context(), task.Key, tracker.UpdateTask{Status: tracker.Some("cancelled")})
	must(t, err)
	_, err = give(d.as("ann"), tracker.Some("coder"))
	refused(t, err, tracker.CodeConflict)
}

// Every caller's text goes to a store as it is, and no further.
func TestOddTextsAreKept(t *testing.T) {
	d := newDesk(t, board.Options{})
	for i, odd := range []string{"'; drop table task; --", `\`, "%", "_", "🙂 \u202e", "{{7*7}}", "$1", "?"} {
		task := d.task(odd, func(c *tracker.CreateTask) { c.Description, c.Labels = odd, []string{odd} })
		same(t, odd, []any{task.Title, task.Description, task.Labels, task.Number}, []any{strings.TrimSpace(odd), odd, []string{odd}, i + 1})
		page, err := d.as("ann").ListTasks(t.Context(), tracker.TaskQuery{Labels: []string{odd}})
		must(t, err)
		same(t, fmt.Sprint("by label ", odd), page.Items, []tracker.TaskOut{task})
	}
}
