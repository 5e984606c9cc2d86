package store_test

import (
	"context"
	"fmt"
	"path/filepath"
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

// benchBoard is a database with tasks, and with the projects and members that they name.
func benchBoard(b testing.TB, place string) *store.DB {
	b.Helper()
	db := openAt(b, place, store.Options{})
	var c board.Change
	for i := range 20 {
		c.Projects = append(c.Projects, board.Project{ID: fmt.Sprint("project-", i), Slug: fmt.Sprint("pumps-", i), Key: fmt.Sprint("P", i)})
	}
	for i := range 41 {
		c.Members = append(c.Members, board.Member{ID: fmt.Sprint("id-", i), Slug: fmt.Sprint("member-", i), Kind: tracker.Agent})
	}
	if err := db.UpdateBoard(context.Background(), func(board.Reader) (board.Change, error) { return c, nil }); err != nil {
		b.Fatal(err)
	}
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
	db := benchBoard(b, filepath.Join(b.TempDir(), "hutch.db"))
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

// filtered are lists of tasks by each choice of project, statuses, assignee, labels and text,
// with values that many tasks have and with those that few have.
func filtered() (all []tracker.TaskQuery) {
	for choice := 1; choice < 1<<5; choice++ {
		for rare := range 2 {
			var q tracker.TaskQuery
			for i, choose := range []func(){
				func() { q.Project = fmt.Sprint("pumps-", 3+rare) },
				func() { q.Statuses = [][]string{{"todo", "in_progress", "in_review"}, {"backlog"}}[rare] },
				func() { q.Assignee = []string{"member-7", "none"}[rare] },
				func() { q.Labels = [][]string{{"team-2"}, {"label-5", "team-2"}}[rare] },
				func() { q.Text = []string{"pump", "number 123"}[rare] },
			} {
				if choice&(1<<i) != 0 {
					choose()
				}
			}
			all = append(all, q)
		}
	}
	return all
}

// BenchmarkFilteredTasks has a board list tasks of 100,000: a page, and the next one if there
// is one. The worst is the question whose median is the highest.
func BenchmarkFilteredTasks(b *testing.B) {
	for name, place := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return filepath.Join(t.TempDir(), "hutch.db") },
		"PostgreSQL": server.Database,
	} {
		b.Run(name, func(b *testing.B) {
			seat := board.New(benchBoard(b, place(b)), board.Options{}).
				For(tracker.Caller{Slug: "member-1", Scopes: []string{tracker.TasksRead}})
			questions := filtered()
			all, each := []time.Duration(nil), make([][]time.Duration, len(questions))
			for b.Loop() {
				for i, q := range questions {
					for range 2 {
						began := time.Now()
						page, err := seat.ListTasks(b.Context(), q)
						took := time.Since(began)
						if err != nil {
							b.Fatal(err)
						}
						all, each[i] = append(all, took), append(each[i], took)
						if q.Cursor = page.NextCursor; q.Cursor == "" {
							break
						}
					}
				}
			}
			ms := func(of []time.Duration, share int) float64 {
				slices.Sort(of)
				return float64(of[len(of)*share/100].Microseconds()) / 1e3
			}
			worst := 0
			for i := range each {
				if ms(each[i], 50) > ms(each[worst], 50) {
					worst = i
				}
			}
			b.Logf("worst: %+v", questions[worst])
			b.ReportMetric(ms(all, 50), "p50-ms")
			b.ReportMetric(ms(all, 99), "p99-ms")
			b.ReportMetric(ms(each[worst], 50), "worst-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
