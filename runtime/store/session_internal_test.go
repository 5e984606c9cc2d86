package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	threads "github.com/hutch-run/hutch/runtime/session"
)

// Whatever is asked of threads, and whatever changes one, reads only rows that it is
// about: that the ten thousandth turn costs what the tenth does hangs on it.
func TestThreadStatementsUseIndexes(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	if err := db.Update(t.Context(), everyStatement); err != nil {
		t.Fatal(err)
	}
	db.stop()
	checked := 0
	for query := range db.committer.s.prepared {
		if !strings.Contains(query, "thread") && !strings.Contains(query, "job") {
			continue
		}
		for _, step := range threadPlan(t, db.committer.s, query) {
			checked++
			whole := strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "USING INDEX") && !strings.Contains(step, "USING COVERING INDEX")
			if whole || strings.Contains(step, "USE TEMP B-TREE") {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d steps were looked at", checked)
	}
}

// everyStatement has every statement about threads prepared.
func everyStatement(tx Tx) error {
	now := time.Now()
	ref, run := threads.Ref{Owner: "ann", ID: "t"}, threads.Record{ID: "r", Status: threads.Finished, Created: now, Ended: now}
	c := threads.Change{
		Ref: ref, At: now, MostThreads: 1, State: []byte("1"), New: []threads.Record{run}, Runs: []threads.Record{run},
		Messages: []chat.Message{{ID: "m", Role: chat.User}}, Events: []threads.Kept{{Run: "r", Body: []byte("{}")}, {Run: "r", Body: []byte("{}")}},
	}
	other := c
	other.ID = "u"
	_, err1 := tx.CommitThread(c, event.Job{Kind: "a", Key: "1"})
	_, err2 := tx.CommitThread(other)
	_, err3 := tx.CommitThread(threads.Change{Ref: other.Ref, Head: 2, At: now, DropFrom: 1, TrimTo: 1, TrimEventsTo: 2})
	var all []error
	for _, q := range []threads.ThreadQuery{{Limit: 1}, {Owner: "ann", Limit: 1}, {ID: "u", Limit: 1}} {
		_, err := tx.Threads(q)
		all = append(all, err)
	}
	for _, q := range []threads.MessageQuery{{Limit: 1}, {Last: true, Limit: 1}} {
		_, err := tx.ThreadMessages(ref, q)
		all = append(all, err)
	}
	_, err4 := tx.ThreadKnows(other.Ref, []string{"m"})
	_, err5 := tx.ThreadEvents(ref, threads.EventQuery{Limit: 1})
	_, err6 := tx.ThreadRuns(ref, "", 1)
	_, err7 := tx.ThreadRuns(ref, "r", 1)
	_, err8 := tx.UnfinishedRuns(1)
	_, err9 := tx.DueJobs("a", 1)
	_, err10 := tx.EndJob(1)
	err11 := tx.PutOffJob(1, time.Second)
	_, _, err12 := tx.SweepThreads(threads.Ages{Threads: now.Add(-time.Hour), Events: now.Add(time.Hour)}, 100)
	return errors.Join(append(all, err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, err11, err12, tx.DeleteThread(other.Ref))...)
}

func threadPlan(t *testing.T, s *session, query string) (steps []string) {
	t.Helper()
	rows, err := s.conn.QueryContext(t.Context(), "explain query plan "+query, make([]any, 30)...)
	if err != nil {
		t.Fatal(query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	return steps
}

// A database of the version before gets its tables, and keeps what it has.
func TestThreadsComeToAnOlderDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hutch.db")
	db := openTest(t, path)
	if _, _, err := db.KVPut(t.Context(), "space", "key", "test", []byte("value"), 0, AnyVersion, 1<<20); err != nil {
		t.Fatal(err)
	}
	db.stop()
	for _, table := range []string{
		"inbox_item", "board_delivery", "board_event", "board_queue", "board_answer", "board_activity", "board_blob", "board_file", "board_message", "board_step",
		"board_tag", "board_search", "board_task_body", "board_task", "board_chat", "board_member", "board_project", "token", "job", "thread_run", "thread_event", "thread_message", "thread_state", "thread"} {
		if err := db.committer.s.script("drop table " + table); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(db.committer.s.script("delete from migration where version > 1"), db.Close()); err != nil {
		t.Fatal(err)
	}
	db = openTest(t, path)
	defer func() { _ = db.Close() }()
	ref := threads.Ref{Owner: "ann", ID: "t"}
	if _, err := db.CommitThread(t.Context(), threads.Change{Ref: ref, At: time.Now()}); err != nil {
		t.Error(err)
	}
	if value, _, _, err := db.KVGet(t.Context(), "space", "key"); err != nil || string(value) != "value" {
		t.Errorf("%q, %v", value, err)
	}
}

// A job is bounded, waits for its time, and ends once.
func TestJobs(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "hutch.db"), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	add := func(j event.Job) error { return db.Update(t.Context(), func(tx Tx) error { return tx.AddJob(j) }) }
	for i, j := range []event.Job{{Key: "k"}, {Kind: "a"}, {Kind: "a", Key: "k", Payload: make([]byte, maxPayload+1)}} {
		if err := add(j); err == nil {
			t.Errorf("%d was kept", i)
		}
	}
	err = errors.Join(add(event.Job{Kind: "a", Key: "later", NotBefore: now.Add(time.Minute)}), add(event.Job{Kind: "a", Key: "now", Payload: []byte("x")}))
	if err != nil {
		t.Fatal(err)
	}
	due := func(want string) []WaitingJob {
		t.Helper()
		jobs, err := db.DueJobs(t.Context(), "a", 10)
		var got []string
		for _, j := range jobs {
			got = append(got, fmt.Sprintf("%s=%s", j.Key, j.Payload))
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("due are %q, %v, want %s", got, err, want)
		}
		return jobs
	}
	first := due("now=x")
	if err := db.Update(t.Context(), func(tx Tx) error { return tx.PutOffJob(first[0].ID, time.Hour) }); err != nil {
		t.Error(err)
	}
	due("")
	now = now.Add(2 * time.Minute)
	due("later=")
	now = now.Add(time.Hour)
	due("later= now=x")
	for _, want := range []bool{true, false} {
		if was, err := db.EndJob(t.Context(), first[0].ID); err != nil || was != want {
			t.Errorf("ended %t, %v", was, err)
		}
	}
	due("later=")
}
