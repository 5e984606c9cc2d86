package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
)

// lasting is the part of the contract about what is there when a database is opened
// again, and about one that must not be.
func lasting(t *testing.T, place func(testing.TB) Place) {
	t.Run("opened again", func(t *testing.T) { testOpenedAgain(t, place(t)) })
	t.Run("newer tables", func(t *testing.T) { testNewer(t, place(t)) })
	t.Run("damaged", func(t *testing.T) { testDamaged(t, place(t)) })
}

// noon is a clock that stands far from midnight, when counters begin anew, and the
// options with it.
func noon() (*Clock, store.Options) {
	clock := &Clock{}
	clock.Set(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	return clock, store.Options{Now: clock.Now}
}

// fill puts something of each kind into a database, and closes it.
func fill(t *testing.T, p Place, o store.Options) {
	t.Helper()
	db := opened(t, p, o)
	for i := range 200 { // over several pages, so that damage meets some
		put(t, db, "space", fmt.Sprint(i), strings.Repeat("value ", 100))
	}
	put(t, db, "space", "last", "value")
	_, _, err1 := db.KVPut(t.Context(), "space", "short", "test", []byte("value"), time.Hour, store.AnyVersion, roomy)
	_, err2 := db.SetPin(t.Context(), "a.wasm", "one", "definitions")
	_, err3 := db.SetPin(t.Context(), "a.wasm", "two", "definitions")
	_, err4 := db.Decide(t.Context(), "alice", "grant", "a.wasm", "one", "definitions", `{"kv":true}`)
	_, _, _, err5 := db.Count(t.Context(), "a.wasm", 3, 100, 0, 0)
	err6 := db.AddToken(t.Context(), aToken("aaaaaaaa", "ci", "admin"))
	_, err7 := db.CommitThread(t.Context(), aThread())
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// aThread makes a thread with one of each of what it may have.
func aThread() session.Change {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var said session.Stored
	said.ID, said.Role = "m", "user"
	c := session.Change{
		Ref: session.Ref{Owner: "ann", ID: "t"}, At: at, Agent: "agent", Title: "title", State: []byte(`{"n":1}`),
		New:    []session.Record{{ID: "r", Status: session.Finished, First: 1, Last: 1, Created: at, Started: at, Ended: at}},
		Events: []session.Kept{{Run: "r", Body: []byte(`{"type":"CUSTOM"}`)}},
	}
	c.Messages = append(c.Messages, said.Message)
	return c
}

// hasThread holds that the thread is there that aThread makes.
func hasThread(t *testing.T, db *store.DB) {
	t.Helper()
	c := aThread()
	th, err1 := db.Thread(t.Context(), c.Ref)
	messages, err2 := db.ThreadMessages(t.Context(), c.Ref, session.MessageQuery{Limit: 10})
	events, err3 := db.ThreadEvents(t.Context(), c.Ref, session.EventQuery{Limit: 10})
	runs, err4 := db.ThreadRuns(t.Context(), c.Ref, "", 10)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if th.Title != c.Title || string(th.State) != string(c.State) || th.Head != 1 || !th.Created.Equal(c.At) || len(messages) != 1 || len(events) != 1 || len(runs) != 1 {
		t.Errorf("the thread is %+v with %d messages, %d events, %d runs", th, len(messages), len(events), len(runs))
	}
}

// filled holds that all is there that fill put.
func filled(t *testing.T, db *store.DB) {
	t.Helper()
	holds(t, db, "space", "last", "value")
	holds(t, db, "space", "short", "value")
	hasThread(t, db)
	digest, _, rank, err1 := db.Pin(t.Context(), "a.wasm")
	before, err2 := db.PinRank(t.Context(), "a.wasm", "one")
	decisions, err3 := db.Decisions(t.Context(), "a.wasm", 0, 10)
	calls, bytes, err4 := db.Used(t.Context(), "a.wasm")
	tokens, err5 := db.Tokens(t.Context())
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	if len(tokens) != 1 || tokens[0].Name != "ci" {
		t.Errorf("tokens: %v", tokens)
	}
	if digest != "two" || rank != 2 || before != 1 || len(decisions) != 1 || calls != 3 || bytes != 100 {
		t.Errorf("pinned is %q of rank %d behind %d, %d decisions, used %d calls, %d bytes", digest, rank, before, len(decisions), calls, bytes)
	}
}

func testOpenedAgain(t *testing.T, p Place) {
	clock, o := noon()
	fill(t, p, o)
	db := opened(t, p, o)
	filled(t, db)
	_, version, _, err := db.KVGet(t.Context(), "space", "last")
	if err != nil {
		t.Fatal(err)
	}
	if next := put(t, db, "space", "last", "value"); next <= version {
		t.Errorf("version %d follows %d", next, version)
	}
	clock.Add(time.Hour)
	holds(t, db, "space", "short", "")
}

func testNewer(t *testing.T, p Place) {
	_, o := noon()
	fill(t, p, o)
	if err := p.Execute(t.Context(), "insert into migration (version, name, at) values (99, 'later', 0)"); err != nil {
		t.Fatal(err)
	}
	refuses(t, p, store.ErrNewer)
	if err := p.Execute(t.Context(), "delete from migration where version = 99"); err != nil {
		t.Fatal(err)
	}
	filled(t, opened(t, p, o)) // it was left as it was
}

func testDamaged(t *testing.T, p Place) {
	if p.Damage == nil {
		return
	}
	fill(t, p, store.Options{})
	if err := p.Damage(); err != nil {
		t.Fatal(err)
	}
	refuses(t, p, store.ErrCorrupt)
}

func refuses(t *testing.T, p Place, want error) {
	t.Helper()
	db, err := p.Open(t.Context(), store.Options{})
	if err == nil {
		t.Fatal(db.Close(), "opened")
	}
	if !errors.Is(err, want) || strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("got %v, want %v on one line", err, want)
	}
}
