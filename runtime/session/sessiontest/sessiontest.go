// Package sessiontest is the contract of a store of threads, and a store in memory that
// fulfils it.
package sessiontest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
)

// A Place is where one store is, empty at first.
type Place struct {
	session.Store
	// Jobs returns the jobs that wait, as kind and key, in the order of their keys.
	Jobs func() ([]string, error)
}

// Store runs the whole contract. Each test gets a new place.
func Store(t *testing.T, open func(testing.TB) Place) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Place)
	}{
		{"threads", testThreads},
		{"heads", testHeads},
		{"at once", testAtOnce},
		{"messages", testMessages},
		{"messages, bounded", testWindows},
		{"messages, twice", testTwice},
		{"messages, dropped and trimmed", testDropped},
		{"events", testEvents},
		{"runs", testRuns},
		{"unfinished runs", testUnfinished},
		{"jobs", testJobs},
		{"owners", testOwners},
		{"lists", testLists},
		{"room", testRoom},
		{"deleted", testDeleted},
		{"old threads", testOldThreads},
		{"old events", testOldEvents},
		{"in small steps", testSteps},
		{"nothing by half", testNothingByHalf},
		{"cancelled", testCancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// noon is when the tests begin.
func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func thread(id string) session.Ref { return session.Ref{Owner: "ann", ID: id} }

func text(id, says string) chat.Message {
	return chat.Message{ID: id, Role: chat.User, Content: chat.Text(says)}
}

func body(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"type":"CUSTOM","n":%d}`, n)) }

func happened(run string, n int) (all []session.Kept) {
	for i := range n {
		all = append(all, session.Kept{Run: run, Body: body(i)})
	}
	return all
}

func running(id string) session.Record {
	return session.Record{ID: id, Trigger: session.ByClient, Agent: "agent", Status: session.Running, Digest: "digest", Created: noon(), Started: noon()}
}

func finished(id string, at time.Time) session.Record {
	r := running(id)
	r.Status, r.Ended = session.Finished, at
	return r
}

// commit makes a change of the thread as it is.
func commit(t *testing.T, s session.Store, c session.Change, jobs ...event.Job) session.Committed {
	t.Helper()
	if c.At.IsZero() {
		c.At = noon()
	}
	if c.Head == 0 {
		th, err := s.Thread(t.Context(), c.Ref)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			t.Fatal(err)
		}
		c.Head = th.Head
	}
	done, err := s.CommitThread(t.Context(), c, jobs...)
	if err != nil {
		t.Fatal(err)
	}
	if th := get(t, s, c.Ref); th.Head != c.NextHead() || !same(th, done.Thread) {
		t.Errorf("the thread is\n%+v, said was\n%+v, head %d", th, done.Thread, c.NextHead())
	}
	return done
}

func same(a, b any) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

func get(t *testing.T, s session.Store, ref session.Ref) session.Thread {
	t.Helper()
	th, err := s.Thread(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

func messages(t *testing.T, s session.Store, ref session.Ref, q session.MessageQuery) string {
	t.Helper()
	stored, err := s.ThreadMessages(t.Context(), ref, q)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range stored {
		all = append(all, m.ID)
	}
	return strings.Join(all, " ")
}

func numbers(t *testing.T, s session.Store, ref session.Ref, q session.EventQuery) string {
	t.Helper()
	kept, err := s.ThreadEvents(t.Context(), ref, q)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range kept {
		all = append(all, fmt.Sprint(e.Number, e.Run))
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func testThreads(t *testing.T, s Place) {
	_, err := s.Thread(t.Context(), thread("t"))
	wantErr(t, err, session.ErrNotFound)
	asked := session.Waiting{Run: "r", Client: []string{"c"}, Person: []event.Interrupt{{ID: "i", Reason: "tool_call", ToolCallID: "d"}}}
	commit(t, s, session.Change{Ref: thread("t"), Agent: "agent", State: json.RawMessage(`{"n":1.0}`), Waiting: &asked})
	th := get(t, s, thread("t"))
	if th.Ref != thread("t") || th.Agent != "agent" || th.Title != "" || string(th.State) != `{"n":1.0}` || !same(th.Waiting, asked) || !th.Created.Equal(noon()) || !th.Updated.Equal(noon()) {
		t.Errorf("%+v", th)
	}
	later := noon().Add(time.Hour)
	commit(t, s, session.Change{Ref: thread("t"), At: later, Agent: "other", Title: "title", Events: happened("r", 1)})
	commit(t, s, session.Change{Ref: thread("t"), At: later, Title: "other", State: json.RawMessage("null"), Waiting: &session.Waiting{}})
	th = get(t, s, thread("t"))
	if th.Agent != "agent" || th.Title != "title" || string(th.State) != "null" || !same(th.Waiting, session.Waiting{}) || !th.Created.Equal(noon()) || !th.Updated.Equal(later) {
		t.Errorf("%+v", th)
	}
	commit(t, s, session.Change{Ref: thread("t"), At: later.Add(time.Hour), New: []session.Record{running("r")}})
	if th := get(t, s, thread("t")); !th.Updated.Equal(later) {
		t.Errorf("used at %s by what only speaks of a run", th.Updated)
	}
}

func testHeads(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), Messages: []chat.Message{text("u", "hi")}})
	for head, want := range map[int64]error{0: session.ErrConflict, 2: session.ErrConflict, 99: session.ErrConflict} {
		_, err := s.CommitThread(t.Context(), session.Change{Ref: thread("t"), Head: head, At: noon(), Messages: []chat.Message{text("v", "hi")}})
		wantErr(t, err, want)
	}
	_, err := s.CommitThread(t.Context(), session.Change{Ref: thread("none"), Head: 1, At: noon()})
	wantErr(t, err, session.ErrConflict)
	want(t, "messages", messages(t, s, thread("t"), session.MessageQuery{Limit: 9}), "u")
	commit(t, s, session.Change{Ref: thread("t"), Events: happened("r", 3), Messages: []chat.Message{text("v", "hi")}})
	if th := get(t, s, thread("t")); th.Head != 4 {
		t.Errorf("head %d after 3 events behind 1", th.Head)
	}
}

// testAtOnce has many append to one thread, each as often as it takes.
func testAtOnce(t *testing.T, s Place) {
	const writers, each = 8, 5
	commit(t, s, session.Change{Ref: thread("t")})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; i < each; {
				th, err := s.Thread(t.Context(), thread("t"))
				if err != nil {
					t.Error(err)
					return
				}
				c := session.Change{Ref: thread("t"), Head: th.Head, At: noon(), Events: happened("r", 2), Messages: []chat.Message{text(fmt.Sprint(w, "-", i), "hi")}}
				switch _, err := s.CommitThread(t.Context(), c); {
				case err == nil:
					i++
				case !errors.Is(err, session.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	th := get(t, s, thread("t"))
	kept, err := s.ThreadEvents(t.Context(), thread("t"), session.EventQuery{Limit: 1000})
	if err != nil || th.Head != 1+2*writers*each || th.Messages != writers*each || len(kept) != 2*writers*each {
		t.Errorf("head %d, %d messages, %d events, %v", th.Head, th.Messages, len(kept), err)
	}
	for i, e := range kept {
		if e.Number != int64(i+2) {
			t.Errorf("event %d has the number %d", i, e.Number)
		}
	}
}

func testMessages(t *testing.T, s Place) {
	all := []chat.Message{
		{ID: "1", Role: chat.User, Name: "Ann", Content: chat.Parts(chat.Part{Type: chat.PartText, Text: "a \"text\"\u2028"}), Metadata: json.RawMessage(`{"n":1}`)},
		{ID: "2", Role: chat.Assistant, Incomplete: true, ToolCalls: []chat.ToolCall{{ID: "c", Type: "function", Function: chat.FunctionCall{Name: "f", Arguments: "{broken"}}}},
		{ID: "3", Role: chat.Tool, ToolCallID: "c", Content: chat.Text(""), Error: "declined"},
		{ID: "4", Role: chat.Reasoning, EncryptedValue: "xyz"},
	}
	done := commit(t, s, session.Change{Ref: thread("t"), Messages: all})
	stored, err := s.ThreadMessages(t.Context(), thread("t"), session.MessageQuery{Limit: 10})
	if err != nil || len(stored) != len(all) || len(done.Numbers) != len(all) {
		t.Fatal(len(stored), done.Numbers, err)
	}
	var bytes int64
	for i, m := range stored {
		got, err1 := json.Marshal(m.Message)
		put, err2 := json.Marshal(all[i])
		if err := errors.Join(err1, err2); err != nil || string(got) != string(put) || m.Number != done.Numbers[i] {
			t.Errorf("%s with number %d, want %s with %d, %v", got, m.Number, put, done.Numbers[i], err)
		}
		if wantBytes := int64(len(put)) + session.ItemOverhead; m.Bytes != wantBytes {
			t.Errorf("%d bytes, want %d", m.Bytes, wantBytes)
		}
		bytes += m.Bytes
	}
	if th := get(t, s, thread("t")); th.Messages != int64(len(all)) || th.Bytes != bytes {
		t.Errorf("%d messages, %d bytes, want %d, %d", th.Messages, th.Bytes, len(all), bytes)
	}
	known, err := s.ThreadKnows(t.Context(), thread("t"), []string{"0", "2", "", "4"})
	if err != nil || len(known) != 2 || known["2"] != done.Numbers[1] || known["4"] != done.Numbers[3] {
		t.Errorf("known are %v, %v", known, err)
	}
	for _, ref := range []session.Ref{thread("none"), {Owner: "bob", ID: "t"}} {
		known, err := s.ThreadKnows(t.Context(), ref, []string{"1"})
		if err != nil || len(known) != 0 || messages(t, s, ref, session.MessageQuery{Limit: 10}) != "" {
			t.Errorf("%v knows %v, %v", ref, known, err)
		}
	}
}

func ten() (all []chat.Message) {
	for i := range 10 {
		all = append(all, text(fmt.Sprint(i), strings.Repeat("x", 100)))
	}
	return all
}

func testWindows(t *testing.T, s Place) {
	done := commit(t, s, session.Change{Ref: thread("t"), Messages: ten()})
	const one = 100 + 60 + session.ItemOverhead // or somewhat less
	for _, c := range []struct {
		q    session.MessageQuery
		want string
	}{
		{session.MessageQuery{Limit: 3}, "0 1 2"},
		{session.MessageQuery{Limit: 3, After: done.Numbers[7]}, "8 9"},
		{session.MessageQuery{Limit: 3, After: done.Numbers[9]}, ""},
		{session.MessageQuery{Limit: 0}, ""},
		{session.MessageQuery{Last: true, Limit: 3}, "7 8 9"},
		{session.MessageQuery{Last: true, Limit: 3, Before: done.Numbers[2]}, "0 1"},
		{session.MessageQuery{Last: true, Limit: 3, Before: done.Numbers[0]}, ""},
		{session.MessageQuery{Last: true, Limit: 99, MaxBytes: 2 * one}, "8 9"},
		{session.MessageQuery{Last: true, Limit: 99, MaxBytes: 1}, "9"},
		{session.MessageQuery{Last: true, Limit: 99, MaxBytes: 99 * one}, "0 1 2 3 4 5 6 7 8 9"},
	} {
		want(t, fmt.Sprintf("%+v", c.q), messages(t, s, thread("t"), c.q), c.want)
	}
}

func testTwice(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), Messages: []chat.Message{text("1", "hi")}})
	head := get(t, s, thread("t")).Head
	for _, twice := range [][]chat.Message{{text("2", "hi"), text("1", "other")}, {text("2", "hi"), text("2", "hi")}} {
		_, err := s.CommitThread(t.Context(), session.Change{Ref: thread("t"), Head: head, At: noon(), Messages: twice})
		wantErr(t, err, session.ErrInvalid)
	}
	want(t, "messages", messages(t, s, thread("t"), session.MessageQuery{Limit: 9}), "1")
	commit(t, s, session.Change{Ref: thread("other"), Messages: []chat.Message{text("1", "hi")}})
}

func testDropped(t *testing.T, s Place) {
	done := commit(t, s, session.Change{Ref: thread("t"), Messages: ten()})
	size := get(t, s, thread("t")).Bytes / 10
	commit(t, s, session.Change{Ref: thread("t"), DropFrom: done.Numbers[8], Messages: []chat.Message{text("9", "edited"), text("10", "new")}})
	want(t, "dropped", messages(t, s, thread("t"), session.MessageQuery{Limit: 20}), "0 1 2 3 4 5 6 7 9 10")
	head := get(t, s, thread("t")).Head
	commit(t, s, session.Change{Ref: thread("t"), TrimTo: done.Numbers[3]})
	want(t, "trimmed", messages(t, s, thread("t"), session.MessageQuery{Limit: 20}), "3 4 5 6 7 9 10")
	th := get(t, s, thread("t"))
	if th.Head != head || th.Messages != 7 || th.Bytes <= 5*size || th.Bytes >= 7*size {
		t.Errorf("head %d, %d messages, %d bytes of %d each", th.Head, th.Messages, th.Bytes, size)
	}
	commit(t, s, session.Change{Ref: thread("t"), DropFrom: 1})
	if th := get(t, s, thread("t")); th.Messages != 0 || th.Bytes != 0 || th.Head != head+1 {
		t.Errorf("%d messages, %d bytes, head %d", th.Messages, th.Bytes, th.Head)
	}
}

func testEvents(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), Events: happened("a", 3)})
	commit(t, s, session.Change{Ref: thread("t"), Messages: []chat.Message{text("1", "a number passes")}})
	commit(t, s, session.Change{Ref: thread("t"), Events: happened("b", 2)})
	for _, c := range []struct {
		q    session.EventQuery
		want string
	}{
		{session.EventQuery{Limit: 9}, "1a 2a 3a 5b 6b"},
		{session.EventQuery{Limit: 2}, "1a 2a"},
		{session.EventQuery{Limit: 9, After: 2}, "3a 5b 6b"},
		{session.EventQuery{Limit: 9, After: 1, UpTo: 5}, "2a 3a 5b"},
		{session.EventQuery{Limit: 9, After: 6}, ""},
	} {
		want(t, fmt.Sprintf("%+v", c.q), numbers(t, s, thread("t"), c.q), c.want)
	}
	kept, err := s.ThreadEvents(t.Context(), thread("t"), session.EventQuery{After: 2, Limit: 1})
	if err != nil || len(kept) != 1 || string(kept[0].Body) != string(body(2)) {
		t.Errorf("%v, %v", kept, err)
	}
	size := int64(5*len(body(0)) + 5*session.ItemOverhead)
	if th := get(t, s, thread("t")); th.EventBytes != size {
		t.Errorf("%d bytes of events, want %d", th.EventBytes, size)
	}
	commit(t, s, session.Change{Ref: thread("t"), TrimEventsTo: 5})
	want(t, "trimmed", numbers(t, s, thread("t"), session.EventQuery{Limit: 9}), "5b 6b")
	if th := get(t, s, thread("t")); th.EventBytes != size/5*2 {
		t.Errorf("%d bytes of events, want %d", th.EventBytes, size/5*2)
	}
	want(t, "of another", numbers(t, s, thread("none"), session.EventQuery{Limit: 9}), "")
}

func testRuns(t *testing.T, s Place) {
	r := running("r")
	r.Parent, r.Trigger, r.First = "p", session.ByMessage, 1
	commit(t, s, session.Change{Ref: thread("t"), New: []session.Record{r}})
	commit(t, s, session.Change{Ref: thread("t"), New: []session.Record{finished("s", noon()), finished("q", noon())}})
	r.Status, r.Code, r.Message, r.Last, r.Ended = session.Failed, "code", "message", 7, noon().Add(time.Minute)
	r.Usage = []chat.Usage{{Provider: "p", Model: "m", InputTokens: 1}, {Model: "n"}}
	commit(t, s, session.Change{Ref: thread("t"), Runs: []session.Record{r}})
	found, err := s.ThreadRuns(t.Context(), thread("t"), "r", 1)
	if err != nil || len(found) != 1 || !same(found[0], r) {
		t.Errorf("%+v, %v, want %+v", found, err, r)
	}
	all, err := s.ThreadRuns(t.Context(), thread("t"), "", 2)
	if err != nil || len(all) != 2 || all[0].ID != "q" || all[1].ID != "s" {
		t.Errorf("%+v, %v", all, err)
	}
	none, err := s.ThreadRuns(t.Context(), thread("none"), "r", 1)
	if err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	head := get(t, s, thread("t")).Head
	_, err = s.CommitThread(t.Context(), session.Change{Ref: thread("t"), Head: head, At: noon(), New: []session.Record{running("s")}, Messages: []chat.Message{text("1", "hi")}})
	wantErr(t, err, session.ErrDuplicateRun)
	_, err = s.CommitThread(t.Context(), session.Change{Ref: thread("t"), Head: head, At: noon(), Runs: []session.Record{running("x")}})
	wantErr(t, err, session.ErrNotFound)
	want(t, "messages", messages(t, s, thread("t"), session.MessageQuery{Limit: 9}), "")
}

func testUnfinished(t *testing.T, s Place) {
	queued := running("q")
	queued.Status, queued.Started = session.Queued, time.Time{}
	commit(t, s, session.Change{Ref: thread("t"), New: []session.Record{running("r"), queued, finished("f", noon())}, Events: happened("r", 2)})
	commit(t, s, session.Change{Ref: thread("u"), New: []session.Record{running("r")}})
	left, err := s.UnfinishedRuns(t.Context(), 10)
	if err != nil || len(left) != 3 {
		t.Fatalf("%+v, %v", left, err)
	}
	if !same(left[1].Record, queued) || left[1].Ref != thread("t") || left[1].Head != 2 || left[0].Record.ID != "r" || left[2].Ref != thread("u") {
		t.Errorf("%+v", left)
	}
	if left, err := s.UnfinishedRuns(t.Context(), 1); err != nil || len(left) != 1 || left[0].Ref != thread("t") {
		t.Errorf("%+v, %v", left, err)
	}
	commit(t, s, session.Change{Ref: thread("t"), Runs: []session.Record{finished("r", noon()), finished("q", noon())}})
	if left, err := s.UnfinishedRuns(t.Context(), 10); err != nil || len(left) != 1 || left[0].Ref != thread("u") {
		t.Errorf("%+v, %v", left, err)
	}
}

func testJobs(t *testing.T, s Place) {
	waits := func(want ...string) {
		t.Helper()
		if got, err := s.Jobs(); err != nil || !slices.Equal(got, want) {
			t.Errorf("jobs %q, %v, want %q", got, err, want)
		}
	}
	commit(t, s, session.Change{Ref: thread("t")}, event.Job{Kind: "a", Key: "1", Payload: []byte("x")}, event.Job{Kind: "a", Key: "2", NotBefore: noon()})
	waits("a 1", "a 2")
	head := get(t, s, thread("t")).Head
	_, err := s.CommitThread(t.Context(), session.Change{Ref: thread("t"), Head: head + 1, At: noon()}, event.Job{Kind: "b", Key: "3"})
	wantErr(t, err, session.ErrConflict)
	waits("a 1", "a 2")
	commit(t, s, session.Change{Ref: thread("t")}, event.Job{Kind: "a", Key: "1", Payload: []byte("again")}, event.Job{Kind: "b", Key: "1"})
	waits("a 1", "b 1", "a 2")
	wantErr(t, s.DeleteThread(t.Context(), thread("none"), event.Job{Kind: "c", Key: "4"}), session.ErrNotFound)
	if err := s.DeleteThread(t.Context(), thread("t"), event.Job{Kind: "c", Key: "5"}); err != nil {
		t.Error(err)
	}
	waits("a 1", "b 1", "a 2", "c 5")
}

func testOwners(t *testing.T, s Place) {
	anns, bobs := session.Ref{Owner: "ann", ID: "t"}, session.Ref{Owner: "bob", ID: "t"}
	commit(t, s, session.Change{Ref: anns, Title: "ann's", Messages: []chat.Message{text("1", "hi")}, Events: happened("r", 1), New: []session.Record{finished("r", noon())}})
	_, err := s.Thread(t.Context(), bobs)
	wantErr(t, err, session.ErrNotFound)
	wantErr(t, s.DeleteThread(t.Context(), bobs), session.ErrNotFound)
	commit(t, s, session.Change{Ref: bobs, Title: "bob's", Messages: []chat.Message{text("2", "hi")}, Events: happened("s", 1), New: []session.Record{finished("s", noon())}})
	for ref, id := range map[session.Ref]string{anns: "1 1r", bobs: "2 1s"} {
		got := messages(t, s, ref, session.MessageQuery{Limit: 9}) + " " + numbers(t, s, ref, session.EventQuery{Limit: 9})
		want(t, ref.Owner, got, id)
	}
}

func testNothingByHalf(t *testing.T, s Place) {
	commit(t, s, session.Change{Ref: thread("t"), Messages: ten(), New: []session.Record{finished("r", noon())}})
	was := get(t, s, thread("t"))
	_, err := s.CommitThread(t.Context(), session.Change{
		Ref: thread("t"), Head: was.Head, At: noon().Add(time.Hour), DropFrom: 1, State: json.RawMessage("1"), Title: "title",
		Messages: []chat.Message{text("new", "hi")}, Events: happened("r", 1), New: []session.Record{running("s"), running("r")},
	}, event.Job{Kind: "a", Key: "1"})
	wantErr(t, err, session.ErrDuplicateRun)
	if is := get(t, s, thread("t")); !same(is, was) {
		t.Errorf("%+v, want %+v", is, was)
	}
	want(t, "messages", messages(t, s, thread("t"), session.MessageQuery{Limit: 20}), "0 1 2 3 4 5 6 7 8 9")
	want(t, "events", numbers(t, s, thread("t"), session.EventQuery{Limit: 20}), "")
	if jobs, err := s.Jobs(); err != nil || len(jobs) != 0 {
		t.Errorf("jobs %q, %v", jobs, err)
	}
	if runs, err := s.ThreadRuns(t.Context(), thread("t"), "", 9); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
	_, err = s.CommitThread(t.Context(), session.Change{Ref: thread("new"), At: noon(), Messages: []chat.Message{text("1", "a"), text("1", "b")}})
	wantErr(t, err, session.ErrInvalid)
	_, err = s.Thread(t.Context(), thread("new"))
	wantErr(t, err, session.ErrNotFound)
}

func testCancelled(t *testing.T, s Place) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := s.CommitThread(ctx, session.Change{Ref: thread("t"), At: noon()})
	wantErr(t, err, context.Canceled)
	_, err = s.Thread(t.Context(), thread("t"))
	wantErr(t, err, session.ErrNotFound)
}

// ByKey orders jobs as [Place] returns them.
func ByKey(a, b string) int {
	kindA, keyA, _ := strings.Cut(a, " ")
	kindB, keyB, _ := strings.Cut(b, " ")
	return cmp.Or(cmp.Compare(keyA, keyB), cmp.Compare(kindA, kindB))
}
