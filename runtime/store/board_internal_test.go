package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

// Whatever is asked of the board, and whatever changes it, reads an index, in its order
// where there is one.
func TestBoardStatementsUseIndexes(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	if err := db.Update(t.Context(), everyBoardStatement); err != nil {
		t.Fatal(err)
	}
	db.stop()
	narrowed := regexp.MustCompile(` and [a-z.]+ = (\$\d+|'') order by `) // what has an index of its own
	checked := 0
	for query := range db.committer.s.prepared {
		if !strings.Contains(query, "board_") {
			continue
		}
		for _, step := range threadPlan(t, db.committer.s, query) {
			checked++
			whole := strings.HasPrefix(step, "SCAN") && (!strings.Contains(step, "INDEX") || strings.HasSuffix(step, "VIRTUAL TABLE INDEX 0:")) && !walksOnPurpose(query, step)
			past := narrowed.MatchString(query) && (strings.HasSuffix(step, "(id<?)") || strings.HasSuffix(step, "(id>?)"))
			if whole || past || strings.Contains(step, "USE TEMP B-TREE") && query != tasksFound {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d steps were looked at", checked)
	}
}

// walksOnPurpose are the walks over a table in the order of its key, of all that is queued,
// and what a count makes of its few rows.
func walksOnPurpose(query, step string) bool {
	return query == deliveriesAll && step == "SCAN d" || strings.HasPrefix(query, "select count(*) from (") && step == "SCAN few"
}

// everyBoardStatement has every statement about the board prepared.
func everyBoardStatement(tx Tx) error {
	now := time.UnixMilli(1_760_000_000_000).UTC()
	place := board.Place{Member: "a", Number: 1}
	left := board.Place{Member: "a", Number: 2}
	task := board.Task{ID: "t", Key: "P-1", Number: 1, Project: "p", Status: tracker.Todo, Labels: []string{"l"}, Search: "text"}
	changed := task
	changed.Labels = []string{"m"}
	err := tx.ChangeBoard(board.Change{
		Projects: []board.Project{{ID: "p", Slug: "p", Key: "P"}}, Members: []board.Member{{ID: "m", Slug: "m"}},
		Chats: []board.Chat{{ID: "c", Slug: "c"}}, Tasks: []board.Task{task, changed}, Steps: []board.Step{{ID: "s", Task: "t"}},
		Messages: []board.Message{{ID: "m", Task: "t"}}, Attachments: []board.Attachment{{ID: "a", Task: "t", Digest: "d"}},
		Blobs: []board.Blob{{Digest: "d"}}, Activity: []board.Activity{{ID: "a", Task: "t"}}, Answers: []board.Answer{{Member: "a", Key: "k", At: now}},
		Events: []board.Event{{ID: "e", Places: []board.Place{place}}, {ID: "f", Places: []board.Place{left}}},
		Tried:  []board.Delivery{{Place: place, Tries: 1}}, Left: []board.Place{left},
		GoneTasks: []string{"t"}, GoneSteps: []string{"s"}, AnswersBefore: now,
	})
	return errors.Join(err, everyBoardQuestion(boardReader{tx}, now), everyTaskQuestion(tx))
}

func everyBoardQuestion(r boardReader, now time.Time) error {
	var all []error
	note := func(_ any, err error) {
		if !errors.Is(err, board.ErrNotFound) {
			all = append(all, err)
		}
	}
	note(r.Project("x"))
	note(r.Member("x"))
	note(r.Chat("x"))
	note(r.Task("x"))
	note(r.Steps("x"))
	note(r.Blob("x"))
	note(r.Answer("x", "y"))
	note(r.Activity(board.ActivityQuery{Task: "x"}))
	note(r.Queues([]string{"x"}))
	for _, q := range []board.ProjectQuery{{}, {Key: "K"}} {
		note(r.Projects(q))
	}
	for _, q := range []board.MemberQuery{{}, {Slugs: []string{"x"}}, {Kind: tracker.Agent}, {Unseen: now}, {Announce: now}} {
		note(r.Members(q))
	}
	for _, q := range []board.ChatQuery{{}, {Project: "p"}} {
		note(r.Chats(q))
	}
	for _, q := range []board.MessageQuery{{}, {ID: "x"}, {Chat: "x"}, {Task: "x"}, {Parent: "x"}} {
		note(r.Messages(q))
	}
	for _, q := range []board.AttachmentQuery{{}, {ID: "x"}, {Task: "x"}, {Project: "x"}, {Messages: []string{"x"}}} {
		note(r.Attachments(q))
	}
	for _, q := range []board.DeliveryQuery{{Member: "a"}, {Member: "a", Any: true}, {Any: true}, {Any: true, Older: now}, {Member: "a", IDs: []string{"e"}}, {IDs: []string{"e"}}} {
		note(r.Deliveries(q))
	}
	return errors.Join(all...)
}

// everyTaskQuestion asks in every way, also in those that would not be chosen.
func everyTaskQuestion(tx Tx) error {
	q := board.TaskQuery{
		Project: "p", Assignee: "a", Unassigned: true, Labels: []string{"l"}, Type: "t", Priority: "p", Parent: "p", Creator: "c",
		Watcher: "w", Blocker: "b", Number: 1, Text: "text", Limit: 1,
	}
	_, err := boardReader{tx}.Tasks(board.TaskQuery{IDs: []string{"x"}})
	all := []error{err}
	for _, status := range []string{"", string(tracker.Todo)} {
		for _, w := range append(ways(q, status), ways(board.TaskQuery{}, "")...) {
			if w.count != "" {
				var n int64
				_, err := tx.t.one(w.count, append(args{countMost}, w.by...), &n)
				all = append(all, err)
			}
			a := append(filters(q, status, lastOf), 1)
			if w.more {
				a = append(a, w.by...)
			}
			_, err := boardReader{tx}.tasksOf(w.list, a)
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// Each list of tasks reads the index of what it is chosen by.
func TestListsOfTasksReadTheirIndex(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	db.stop()
	for name, c := range map[string]struct {
		q      board.TaskQuery
		status string
	}{
		"project (project=? AND id<?)":                        {board.TaskQuery{Project: "p"}, ""},
		"project_status (project=? AND status=? AND id<?)":    {board.TaskQuery{Project: "p"}, "todo"},
		"status (status=? AND id<?)":                          {board.TaskQuery{}, "todo"},
		"assignee (assignee=? AND id<?)":                      {board.TaskQuery{Assignee: "a"}, ""},
		"assignee_status (assignee=? AND status=? AND id<?)":  {board.TaskQuery{Assignee: "a"}, "todo"},
		"assignee (assignee=? AND id<?) ":                     {board.TaskQuery{Unassigned: true}, ""},
		"assignee_status (assignee=? AND status=? AND id<?) ": {board.TaskQuery{Unassigned: true}, "todo"},
		"creator (creator=? AND id<?)":                        {board.TaskQuery{Creator: "c"}, ""},
		"parent (parent=? AND id<?)":                          {board.TaskQuery{Parent: "p"}, ""},
		"type (type=? AND id<?)":                              {board.TaskQuery{Type: "t"}, ""},
		"priority (priority=? AND id<?)":                      {board.TaskQuery{Priority: "p"}, ""},
		"number (number=? AND id<?)":                          {board.TaskQuery{Number: 1}, ""},
	} {
		plan := threadPlan(t, db.committer.s, ways(c.q, c.status)[0].list)
		if want := "USING INDEX board_task_" + strings.TrimSpace(name); !strings.Contains(plan[0], want) {
			t.Errorf("%s: %q", want, plan)
		}
	}
}

// An event of many queues is found in one of them without a look at the others.
func TestAnEventIsFoundInItsQueue(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	db.stop()
	const want = "USING INDEX board_delivery_event (event=? AND member=?"
	if plan := threadPlan(t, db.committer.s, deliveriesOne); !strings.Contains(strings.Join(plan, "\n"), want) {
		t.Errorf("%q, want %s", plan, want)
	}
}

func keepBoard(t *testing.T, db *DB, c board.Change) {
	t.Helper()
	if err := db.UpdateBoard(t.Context(), func(board.Reader) (board.Change, error) { return c, nil }); err != nil {
		t.Fatal(err)
	}
}

// What is gone leaves no row behind, and what has changed none of before.
func TestBoardLeavesNothingBehind(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	task := board.Task{ID: "t", Key: "P-1", Labels: []string{"l", "m"}, Watchers: []string{"a"}, Search: "a pump"}
	places := []board.Place{{Member: "a", Number: 1}, {Member: "b", Number: 1}}
	keepBoard(t, db, board.Change{
		Tasks: []board.Task{task}, Steps: []board.Step{{ID: "s", Task: "t"}}, Messages: []board.Message{{ID: "m", Task: "t"}},
		Attachments: []board.Attachment{{ID: "f", Message: "m", Digest: "d"}}, Blobs: []board.Blob{{Digest: "d", Bytes: []byte("x")}},
		Events: []board.Event{{ID: "e", Places: places}},
	})
	task.Labels, task.Search = []string{"m"}, "a submarine"
	keepBoard(t, db, board.Change{Tasks: []board.Task{task}, Left: places[:1]})
	expectRows(t, db, map[string]int64{"board_tag": 2, "board_event": 1, "board_delivery": 1, "board_task_body": 1})
	keepBoard(t, db, board.Change{GoneTasks: []string{"t"}, Left: places})
	expectRows(t, db, map[string]int64{
		"board_task": 0, "board_task_body": 0, "board_tag": 0, "board_step": 0, "board_message": 0, "board_file": 0, "board_blob": 0,
		"board_event": 0, "board_delivery": 0, "board_queue": 2,
	})
}

// expectRows counts rows, and compares the index of texts with the texts.
func expectRows(t *testing.T, db *DB, want map[string]int64) {
	t.Helper()
	err := db.Update(t.Context(), func(tx Tx) error {
		for table, n := range want {
			var got int64
			if _, err := tx.t.one("select count(*) from "+table, nil, &got); err != nil || got != n {
				t.Errorf("%s has %d rows, %v, want %d", table, got, err, n)
			}
		}
		_, err := tx.t.exec(`insert into board_search (board_search, rank) values ('integrity-check', 1)`)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A list is read from what has the fewest rows: a text that many have is looked for in the
// order of the list, a rare one is found first.
func TestListsOfTasksTakeTheShortestWay(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	var c board.Change
	for i := range foundMost + 44 {
		task := board.Task{ID: fmt.Sprint("t", i), Key: fmt.Sprint("P-", i), Project: "p", Creator: "ann", Labels: []string{"all"}, Search: "a pump"}
		if i%100 == 0 {
			task.Creator, task.Labels, task.Search = "bob", []string{"all", "few"}, "a submarine"
		}
		c.Tasks = append(c.Tasks, task)
	}
	keepBoard(t, db, c)
	for want, all := range map[string][]board.TaskQuery{
		tasksFrom + tasksEnd: {{}, {Text: "pu"}, {Text: "a pump"}},
		tasksFound:           {{Text: "submarine"}, {Text: "submarine", Project: "p"}, {Text: "nowhere", Labels: []string{"all"}}},
		tasksTagged:          {{Labels: []string{"few", "all"}}, {Labels: []string{"few"}, Project: "p", Text: "pump"}},
		tasksFrom + ` and t.creator = $9` + tasksEnd: {{Creator: "bob", Project: "p"}, {Creator: "bob", Labels: []string{"all"}}},
	} {
		for _, q := range all {
			err := db.View(t.Context(), func(tx Tx) error {
				w, err := tx.shortest(ways(q, ""))
				if w.list != want {
					t.Errorf("%+v is read by %s", q, w.list)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}
