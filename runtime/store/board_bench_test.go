package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/store"
)

// benchTasks is how many tasks there are. Ids are in the order of their numbers.
const benchTasks = 100_000

func benchTask(i int) board.Task {
	at := time.UnixMilli(1_760_000_000_000 + int64(i)).UTC()
	statuses := []tracker.Status{tracker.Done, tracker.Done, tracker.Done, tracker.Todo, tracker.Backlog, tracker.InProgress, tracker.Done, tracker.InReview}
	t := board.Task{
		ID: fmt.Sprintf("01990000-0000-7000-8000-%012d", i), Project: fmt.Sprint("project-", i%20), Number: int64(i / 20),
		Key: fmt.Sprintf("P%d-%d", i%20, i/20), Title: fmt.Sprintf("Repair the pump number %d", i),
		Description: strings.Repeat("It stopped in the night and nobody knows why. ", 5),
		Type:        []string{"task", "task", "bug", "feature"}[i*7%11%4], Priority: []string{"low", "medium", "high"}[i*5%13%3],
		Status: statuses[i*3%17%8], Creator: fmt.Sprint("member-", i%30), Labels: []string{fmt.Sprint("label-", i%97), fmt.Sprint("team-", i%7)},
		Watchers: []string{fmt.Sprint("member-", i%30)}, Version: 1, Created: at, Updated: at,
	}
	if i%3 > 0 {
		t.Assignee = fmt.Sprint("member-", i%41)
	}
	if i%50 == 0 {
		t.Priority = "urgent"
	}
	t.Search = strings.ToLower(t.Key + "\n" + t.Title + "\n" + t.Description)
	return t
}

func benchBoard(b testing.TB) *store.DB {
	b.Helper()
	db := openNew(b, store.Options{})
	for at := 0; at < benchTasks; at += 1000 {
		var c board.Change
		for i := at; i < at+1000; i++ {
			c.Tasks = append(c.Tasks, benchTask(i))
		}
		if err := db.UpdateBoard(context.Background(), func(board.Reader) (board.Change, error) { return c, nil }); err != nil {
			b.Fatal(err)
		}
	}
	return db
}

// BenchmarkListTasks lists 51 tasks of 100,000 by what callers ask for, the first page and
// one from the middle. The figures are of each question: the median and the 99th of 100.
func BenchmarkListTasks(b *testing.B) {
	db := benchBoard(b)
	middle := benchTask(benchTasks / 2).ID
	for _, c := range []struct {
		name string
		q    board.TaskQuery
	}{
		{"all", board.TaskQuery{}},
		{"middle", board.TaskQuery{Before: middle}},
		{"project", board.TaskQuery{Project: "project-3"}},
		{"project, statuses", board.TaskQuery{Project: "project-3", Statuses: []tracker.Status{tracker.Todo, tracker.InProgress}}},
		{"assignee, status", board.TaskQuery{Assignee: "member-7", Statuses: []tracker.Status{tracker.Todo}}},
		{"ready", board.TaskQuery{Unblocked: true, Unassigned: true, Statuses: []tracker.Status{tracker.Todo}}},
		{"labels", board.TaskQuery{Labels: []string{"label-5", "team-2"}}},
		{"labels that never meet", board.TaskQuery{Project: "project-3", Labels: []string{"team-1"}, Assignee: "member-40", Type: "bug", Priority: "urgent"}},
		{"priority, type", board.TaskQuery{Priority: "urgent", Type: "bug"}},
		{"watcher", board.TaskQuery{Watcher: "member-2", Before: middle}},
		{"none", board.TaskQuery{Priority: "no such"}},
		{"type, project never meet", board.TaskQuery{Type: "feature", Watcher: "member-2", Creator: "member-3"}},
		{"text", board.TaskQuery{Text: "pump"}},
		{"text in a project", board.TaskQuery{Text: "number 9999", Project: "project-3"}},
		{"text that is rare", board.TaskQuery{Text: "number 123 "}},
		{"text that is nowhere", board.TaskQuery{Text: "submarine"}},
	} {
		c.q.Limit = 51
		b.Run(c.name, func(b *testing.B) {
			var took []time.Duration
			rows := 0
			for b.Loop() {
				start := time.Now()
				err := db.ViewBoard(b.Context(), func(r board.Reader) error {
					all, err := r.Tasks(c.q)
					rows = len(all)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(rows), "rows")
		})
	}
}
