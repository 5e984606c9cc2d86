package sessiontest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/runtime/session"
)

func listed(t *testing.T, s session.Store, q session.ThreadQuery) string {
	t.Helper()
	found, err := s.Threads(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, th := range found {
		if th.State != nil {
			t.Errorf("a list has the state %s", th.State)
		}
		all = append(all, th.Owner+"/"+th.ID)
	}
	return strings.Join(all, " ")
}

func testLists(t *testing.T, s Place) {
	for i, ref := range []session.Ref{{Owner: "ann", ID: "1"}, {Owner: "bob", ID: "1"}, {Owner: "ann", ID: "2"}, {Owner: "ann", ID: "3"}, {Owner: "bob", ID: "4"}} {
		commit(t, s, session.Change{Ref: ref, At: noon().Add(time.Duration(i) * time.Minute), State: []byte("1")})
	}
	commit(t, s, session.Change{Ref: thread("1"), At: noon().Add(time.Hour), Events: happened("r", 1)})
	for _, c := range []struct {
		q    session.ThreadQuery
		want string
	}{
		{session.ThreadQuery{Limit: 9}, "ann/1 bob/4 ann/3 ann/2 bob/1"},
		{session.ThreadQuery{Limit: 2}, "ann/1 bob/4"},
		{session.ThreadQuery{Owner: "ann", Limit: 9}, "ann/1 ann/3 ann/2"},
		{session.ThreadQuery{ID: "1", Limit: 9}, "ann/1 bob/1"},
		{session.ThreadQuery{Owner: "bob", ID: "1", Limit: 9}, "bob/1"},
		{session.ThreadQuery{Owner: "bob", ID: "2", Limit: 9}, ""},
		{session.ThreadQuery{Owner: "eve", Limit: 9}, ""},
		{session.ThreadQuery{Before: get(t, s, thread("3")), Limit: 9}, "ann/2 bob/1"},
		{session.ThreadQuery{Owner: "ann", Before: get(t, s, thread("1")), Limit: 1}, "ann/3"},
	} {
		want(t, fmt.Sprintf("%+v", c.q), listed(t, s, c.q), c.want)
	}
}

func testRoom(t *testing.T, s Place) {
	for i := range 4 {
		commit(t, s, session.Change{Ref: thread(fmt.Sprint(i)), At: noon().Add(time.Duration(i) * time.Minute)})
	}
	commit(t, s, session.Change{Ref: session.Ref{Owner: "bob", ID: "0"}})
	commit(t, s, session.Change{Ref: thread("0"), At: noon(), New: []session.Record{running("r")}})
	done := commit(t, s, session.Change{Ref: thread("5"), At: noon(), MostThreads: 3})
	if want := []session.Ref{thread("1"), thread("2")}; !slices.Equal(done.Gone, want) {
		t.Errorf("gone are %v, want %v", done.Gone, want)
	}
	want(t, "left", listed(t, s, session.ThreadQuery{Owner: "ann", Limit: 9}), "ann/3 ann/5 ann/0")
	done = commit(t, s, session.Change{Ref: thread("6"), At: noon(), MostThreads: 4})
	if len(done.Gone) != 0 {
		t.Errorf("gone are %v, and there was room", done.Gone)
	}
	want(t, "of others", listed(t, s, session.ThreadQuery{Owner: "bob", Limit: 9}), "bob/0")
}

func testDeleted(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), Title: "old", State: []byte("1"), Messages: ten(), Events: happened("r", 3), New: []session.Record{finished("r", noon())}})
	if err := s.DeleteThread(t.Context(), thread("t")); err != nil {
		t.Fatal(err)
	}
	_, err := s.Thread(t.Context(), thread("t"))
	wantErr(t, err, session.ErrNotFound)
	wantErr(t, s.DeleteThread(t.Context(), thread("t")), session.ErrNotFound)
	want(t, "list", listed(t, s, session.ThreadQuery{Limit: 9}), "")
	want(t, "messages", messages(t, s, thread("t"), session.MessageQuery{Limit: 9}), "")
	commit(t, s, session.Change{Ref: thread("t"), Title: "new", Messages: []chat.Message{text("1", "hi")}, New: []session.Record{running("r")}})
	sweep(t, s, session.Ages{}, 500)
	th := get(t, s, thread("t"))
	if th.Title != "new" || th.State != nil || th.Messages != 1 || th.EventBytes != 0 {
		t.Errorf("%+v", th)
	}
	want(t, "messages", messages(t, s, thread("t"), session.MessageQuery{Limit: 9}), "1")
}

// sweep sweeps until nothing is removed, and returns the threads that went.
func sweep(t *testing.T, s session.Store, before session.Ages, limit int) (all []session.Ref) {
	t.Helper()
	for {
		removed, gone, err := s.SweepThreads(t.Context(), before, limit)
		if err != nil || removed > int64(limit) {
			t.Fatal(removed, err)
		}
		if all = append(all, gone...); removed == 0 {
			return all
		}
	}
}

func testOldThreads(t *testing.T, s Place) {
	for i := range 4 {
		commit(t, s, session.Change{Ref: thread(fmt.Sprint(i)), At: noon().Add(time.Duration(i) * time.Minute), Messages: ten()})
	}
	commit(t, s, session.Change{Ref: thread("0"), At: noon(), New: []session.Record{running("r")}})
	gone := sweep(t, s, session.Ages{Threads: noon().Add(2 * time.Minute)}, 500)
	if !slices.Equal(gone, []session.Ref{thread("1")}) {
		t.Errorf("gone are %v", gone)
	}
	want(t, "left", listed(t, s, session.ThreadQuery{Limit: 9}), "ann/3 ann/2 ann/0")
	if gone := sweep(t, s, session.Ages{}, 500); len(gone) != 0 {
		t.Errorf("gone are %v, and nothing is too old", gone)
	}
}

func testOldEvents(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), New: []session.Record{finished("a", noon()), finished("b", noon().Add(time.Hour)), running("c")}})
	for _, run := range []string{"a", "b", "c"} {
		commit(t, s, session.Change{Ref: thread("t"), Events: happened(run, 2)})
	}
	sweep(t, s, session.Ages{Events: noon().Add(time.Minute)}, 500)
	want(t, "left", numbers(t, s, thread("t"), session.EventQuery{Limit: 9}), "4b 5b 6c 7c")
	if th := get(t, s, thread("t")); th.EventBytes != int64(4*len(body(0))+4*session.ItemOverhead) {
		t.Errorf("%d bytes of events", th.EventBytes)
	}
	sweep(t, s, session.Ages{Events: noon().Add(24 * time.Hour)}, 1)
	want(t, "left", numbers(t, s, thread("t"), session.EventQuery{Limit: 9}), "6c 7c")
	if runs, err := s.ThreadRuns(t.Context(), thread("t"), "", 9); err != nil || len(runs) != 3 {
		t.Errorf("%d runs are left, %v", len(runs), err)
	}
	commit(t, s, session.Change{Ref: thread("t"), At: noon().Add(time.Hour), Events: happened("c", 1)})
	gone := sweep(t, s, session.Ages{Threads: noon().Add(time.Minute), Events: noon().Add(time.Minute)}, 500)
	runs, err := s.ThreadRuns(t.Context(), thread("t"), "", 9)
	if err != nil || len(gone) != 0 || len(runs) != 2 || runs[0].ID != "c" || runs[1].ID != "b" {
		t.Errorf("%v are left, %v went, %v", runs, gone, err)
	}
}

// testSteps has a large thread removed a few rows at a time.
func testSteps(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), Messages: ten(), Events: happened("r", 25), New: []session.Record{finished("r", noon())}})
	commit(t, s, session.Change{Ref: thread("u"), Messages: ten()})
	if err := s.DeleteThread(t.Context(), thread("t")); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, session.Ages{}, 3)
	if removed, _, err := s.SweepThreads(t.Context(), session.Ages{}, 3); removed != 0 || err != nil {
		t.Errorf("%d rows are left to be removed, %v", removed, err)
	}
	want(t, "of another", messages(t, s, thread("u"), session.MessageQuery{Limit: 20}), "0 1 2 3 4 5 6 7 8 9")
}
