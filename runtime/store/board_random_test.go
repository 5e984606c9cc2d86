package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
	"github.com/hutch-run/hutch/runtime/store"
)

// Whatever is asked, the answer is that of the store in memory, which looks at every task:
// whichever index a list is read from, after changes and removals too.
func TestListsAreThoseOfTheStoreInMemory(t *testing.T) {
	everywhere(t, func(t *testing.T, path string) {
		seed := rand.Uint64()
		t.Log("seed", seed)
		g := &boardMaker{rand.New(rand.NewPCG(seed, 0))}
		db, memory := openAt(t, path, store.Options{}), &boardtest.Memory{}
		both := func(c board.Change) {
			t.Helper()
			for _, s := range []board.Store{db, memory} {
				if err := s.UpdateBoard(t.Context(), func(board.Reader) (board.Change, error) { return c, nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		var c board.Change
		for i := range 400 {
			c.Tasks = append(c.Tasks, g.task(i))
		}
		both(c)
		for range 4 {
			for range 60 {
				q := g.query()
				got, want := listed(t, db, q), listed(t, memory, q)
				if got != want {
					t.Fatalf("%+v: got\n%s\nwant\n%s", q, got, want)
				}
			}
			c = board.Change{}
			for range 60 {
				c.Tasks = append(c.Tasks, g.task(g.IntN(400)))
			}
			c.GoneTasks = []string{taskID(g.IntN(400)), taskID(g.IntN(400)), "P-7"}
			both(c)
		}
	})
}

func listed(t *testing.T, s board.Store, q board.TaskQuery) string {
	t.Helper()
	var raw []byte
	err := s.ViewBoard(t.Context(), func(r board.Reader) error {
		all, err := r.Tasks(q)
		for i := range all { // none and no list are the same
			for _, list := range []*[]string{&all[i].Labels, &all[i].Watchers, &all[i].Blockers, &all[i].RejectedBy} {
				*list = append([]string{}, *list...)
			}
		}
		raw, _ = json.Marshal(append([]board.Task{}, all...))
		return err
	})
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return string(raw)
}

func taskID(i int) string { return fmt.Sprintf("01990000-0000-7000-8000-%012d", i) }

// A boardMaker makes tasks and questions about them. Of each thing there is little, so that
// questions find something.
type boardMaker struct{ *rand.Rand }

func (g *boardMaker) of(all ...string) string { return all[g.IntN(len(all))] }

// maybe is mostly nothing.
func (g *boardMaker) maybe(all ...string) string {
	if g.IntN(4) > 0 {
		return ""
	}
	return g.of(all...)
}

func (g *boardMaker) task(i int) board.Task {
	at := time.UnixMilli(1_760_000_000_000 + int64(i)).UTC()
	t := board.Task{
		ID: taskID(i), Key: fmt.Sprint("P-", i), Number: int64(i % 90), Project: g.of("p", "q"), Parent: g.maybe(taskID(1), taskID(2)),
		Title: "title", Type: g.of("task", "bug"), Priority: g.of("low", "high", "urgent"), Status: tracker.Status(g.of("todo", "done", "in_progress")),
		Assignee: g.of("", "", "a", "b"), Creator: g.of("a", "c"), OpenBlockers: g.IntN(2), Version: 1, Created: at, Updated: at,
	}
	for _, l := range []string{"X", "l_1", "l%1", "x", "é"} {
		if g.IntN(3) == 0 {
			t.Labels = append(t.Labels, l)
		}
	}
	if g.IntN(3) == 0 {
		t.Watchers, t.Blockers = []string{g.of("a", "b")}, []string{taskID(9), taskID(g.IntN(5))}
	}
	t.Search = fmt.Sprintf("p-%d\n%s %s\n", i, g.of("насос", "pump", "p_mp", "50%", `c:\dir`, "'quoted'", "\"", "🙂🙂🙂"), g.of("leaks", "is gone", ""))
	return t
}

func (g *boardMaker) query() board.TaskQuery {
	q := board.TaskQuery{
		Project: g.maybe("p", "q"), Assignee: g.maybe("a", "b"), Type: g.maybe("task", "bug"), Priority: g.maybe("low", "urgent", "none"),
		Parent: g.maybe(taskID(1)), Creator: g.maybe("a", "b", "c"), Watcher: g.maybe("a", "b"), Blocker: g.maybe(taskID(9), taskID(3)),
		Text:   g.maybe("насос", "асо", "pump", "p_mp", "_mp ", "50%", `:\d`, `\`, "'quoted'", "\"", "%", "p-3", "p-31\n", "nowhere", "🙂🙂", "🙂🙂🙂", "le", "\xff", "a\x00b"),
		Before: g.maybe(taskID(100), taskID(350), "z"), Unblocked: g.IntN(5) == 0, Unassigned: g.IntN(8) == 0, Limit: []int{0, 1, 5, 51}[g.IntN(4)],
	}
	for _, l := range []string{"x", "X", "é", "l_1"} {
		if g.IntN(8) == 0 {
			q.Labels = append(q.Labels, l)
		}
	}
	for _, s := range []tracker.Status{tracker.Todo, tracker.Done} {
		if g.IntN(4) == 0 {
			q.Statuses = append(q.Statuses, s)
		}
	}
	if g.IntN(10) == 0 {
		q.Number = int64(1 + g.IntN(90))
	}
	if g.IntN(10) == 0 {
		for range g.IntN(40) {
			q.IDs = append(q.IDs, taskID(g.IntN(420)))
		}
	}
	return q
}
