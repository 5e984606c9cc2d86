// Package storetest is the contract of a store: every engine runs it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/store"
)

// A Place is where one database is, empty at first.
type Place struct {
	// Open opens the database, again after it was closed. It is the caller's to
	// close.
	Open func(context.Context, store.Options) (*store.DB, error)
	// Execute runs SQL on the database while it is closed, as another program would.
	Execute func(ctx context.Context, text string) error
	// Damage makes what is kept unreadable while it is closed; nil where that is
	// looked after by a server of the engine's own.
	Damage func() error
}

// Run runs the whole contract. Each test gets a new place.
func Run(t *testing.T, place func(testing.TB) Place) {
	lasting(t, place)
	open := func(t *testing.T, o store.Options) *store.DB { return opened(t, place(t), o) }
	for _, c := range []struct {
		name string
		test func(*testing.T, *store.DB, *Clock)
	}{
		{"kv", testKV},
		{"kv forget", testKVForget},
		{"kv versions", testVersions},
		{"kv quota", testQuota},
		{"kv expiry", testExpiry},
		{"kv keys", testKeys},
		{"kv bounds", testBounds},
		{"kv spaces", testSpaces},
		{"decisions", testDecisions},
		{"pins", testPins},
		{"tokens", testTokens},
		{"token bounds", testTokenBounds},
		{"tokens at once", testTokensAtOnce},
		{"counters", testCounters},
		{"counters at once", testCountersAtOnce},
		{"failing members", testFailingMembers},
		{"panic and exit", testPanicAndExit},
		{"cancelled", testCancelled},
		{"swallowed errors", testSwallowed},
		{"ended transactions", testEnded},
		{"views", testViews},
		{"closing", testClosing},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock, o := noon()
			c.test(t, open(t, o), clock)
		})
	}
}

// opened opens a place for as long as the test runs.
func opened(t *testing.T, p Place, o store.Options) *store.DB {
	t.Helper()
	db, err := p.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// A Clock stands still until it is set.
type Clock struct{ ms atomic.Int64 }

// Now returns the time that was set.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

// Set sets the time, to the millisecond.
func (c *Clock) Set(t time.Time) { c.ms.Store(t.UnixMilli()) }

// Add moves the time on.
func (c *Clock) Add(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// roomy is a quota that no test here reaches by accident.
const roomy = 1 << 30

// put keeps a value for ever, whatever is there.
func put(t *testing.T, db *store.DB, space, key, value string) int64 {
	t.Helper()
	version, _, err := db.KVPut(t.Context(), space, key, "test", []byte(value), 0, store.AnyVersion, roomy)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// holds fails unless the space has that value under the key; "" stands for none.
func holds(t *testing.T, db *store.DB, space, key, want string) {
	t.Helper()
	value, version, _, err := db.KVGet(t.Context(), space, key)
	if err != nil {
		t.Fatal(err)
	}
	if string(value) != want || (version > 0) != (want != "") {
		t.Errorf("%s of %s: %q (version %d), want %q", key, space, value, version, want)
	}
}

func usage(t *testing.T, db *store.DB, space string, wantBytes, wantValues int64) {
	t.Helper()
	bytes, values, err := db.KVUsage(t.Context(), space)
	if err != nil {
		t.Fatal(err)
	}
	if bytes != wantBytes || values != wantValues {
		t.Errorf("%s holds %d bytes in %d values, want %d in %d", space, bytes, values, wantBytes, wantValues)
	}
}

func testFailingMembers(t *testing.T, db *store.DB, _ *Clock) {
	const members = 200
	own := errors.New("own")
	results := atOnce(members, func(i int) error {
		return db.Update(t.Context(), func(tx store.Tx) error {
			_, _, err := tx.KVPut(write("space", fmt.Sprint(i), "value"))
			if i%3 == 0 {
				err = errors.Join(err, own)
			}
			return err
		})
	})
	for i, err := range results {
		want := "value"
		if i%3 == 0 {
			want = ""
		}
		if (want == "") != errors.Is(err, own) || want != "" && err != nil {
			t.Errorf("member %d: %v", i, err)
		}
		holds(t, db, "space", fmt.Sprint(i), want)
	}
}

func write(space, key, value string) store.KVWrite {
	return store.KVWrite{
		Space: space, Key: key, Writer: "test", Value: []byte(value), IfVersion: store.AnyVersion, MaxBytes: roomy,
	}
}

// atOnce calls do n times at once.
func atOnce(n int, do func(i int) error) []error {
	results := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = do(i) })
	}
	wg.Wait()
	return results
}

func testPanicAndExit(t *testing.T, db *store.DB, _ *Clock) {
	started := make(chan struct{})
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		_ = db.Update(t.Context(), func(tx store.Tx) error {
			close(started)
			_, _, _ = tx.KVPut(write("space", "panicked", "value"))
			panic("the function's own")
		})
	}()
	<-started
	put(t, db, "space", "beside", "value")
	if got := <-panicked; got != "the function's own" {
		t.Errorf("recovered %v", got)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = db.Update(t.Context(), func(tx store.Tx) error {
			_, _, _ = tx.KVPut(write("space", "exited", "value"))
			runtime.Goexit()
			return nil
		})
	}()
	<-exited
	holds(t, db, "space", "exited", "")
	holds(t, db, "space", "panicked", "")
	holds(t, db, "space", "beside", "value")
	if err := db.View(t.Context(), func(store.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}

func testCancelled(t *testing.T, db *store.DB, _ *Clock) {
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Update(ctx, func(tx store.Tx) error {
		_, _, err := tx.KVPut(write("space", "key", "value"))
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it ran: %v", err)
	}
	for name, do := range map[string]func(context.Context, func(store.Tx) error) error{"update": db.Update, "view": db.View} {
		err := do(ctx, func(store.Tx) error { t.Errorf("%s ran", name); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled before: %v", name, err)
		}
	}
	holds(t, db, "space", "key", "")
	waits(t, db)
}

// waits cancels a change that waits behind another.
func waits(t *testing.T, db *store.DB) {
	ctx, cancel := context.WithCancel(t.Context())
	inside, leave := make(chan struct{}), make(chan struct{})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		first <- db.Update(t.Context(), func(tx store.Tx) error {
			close(inside)
			<-leave
			_, _, err := tx.KVPut(write("space", "first", "value"))
			return err
		})
	}()
	<-inside
	go func() {
		second <- db.Update(ctx, func(tx store.Tx) error {
			_, _, err := tx.KVPut(write("space", "second", "value"))
			return err
		})
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it waited: %v", err)
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	holds(t, db, "space", "first", "value")
	holds(t, db, "space", "second", "")
}

// An error of the engine may have undone more than its own statement, so it ends
// the change even if the function goes on.
func testSwallowed(t *testing.T, db *store.DB, _ *Clock) {
	ctx, cancel := context.WithCancel(t.Context())
	var again error
	err := db.Update(ctx, func(tx store.Tx) error {
		_, _, err := tx.KVPut(write("space", "before", "value"))
		cancel()
		_, _, _ = tx.KVPut(write("space", "refused", "value"))
		_, _, again = tx.KVPut(write("space", "after", "value"))
		return err
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(again, context.Canceled) {
		t.Errorf("got %v, and inside %v", err, again)
	}
	holds(t, db, "space", "before", "")
}

func testEnded(t *testing.T, db *store.DB, _ *Clock) {
	var kept []store.Tx
	keep := func(tx store.Tx) error { kept = append(kept, tx); return nil }
	if err := errors.Join(db.Update(t.Context(), keep), db.View(t.Context(), keep)); err != nil {
		t.Fatal(err)
	}
	for i, tx := range kept {
		if _, _, err := tx.KVGet("space", "key"); err == nil {
			t.Errorf("transaction %d still reads", i)
		}
		if _, _, err := tx.KVPut(write("space", "key", "value")); err == nil {
			t.Errorf("transaction %d still writes", i)
		}
	}
}

func testViews(t *testing.T, db *store.DB, _ *Clock) {
	put(t, db, "space", "key", "old")
	err := db.View(t.Context(), func(tx store.Tx) error {
		before, _, err := tx.KVGet("space", "key")
		put(t, db, "space", "key", "new") // from outside: a view holds up nobody
		after, _, err2 := tx.KVGet("space", "key")
		if string(before.Value) != "old" || string(after.Value) != "old" {
			t.Errorf("a view saw %q, then %q", before.Value, after.Value)
		}
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Error(err)
	}
	holds(t, db, "space", "key", "new")
	changes := map[string]func(store.Tx) error{
		"put":    func(tx store.Tx) error { _, _, err := tx.KVPut(write("space", "key", "view")); return err },
		"space":  func(tx store.Tx) error { _, _, err := tx.KVPut(write("another", "key", "view")); return err },
		"delete": func(tx store.Tx) error { _, err := tx.KVDelete("space", "key", store.AnyVersion); return err },
		"decide": func(tx store.Tx) error { _, err := tx.Decide(decision("a.wasm", "grant")); return err },
		"pin":    func(tx store.Tx) error { _, err := tx.SetPin("a.wasm", "digest", "definitions"); return err },
		"count":  func(tx store.Tx) error { _, _, err := tx.Count("a", store.Use{Calls: 1}, store.Use{}); return err },
	}
	for name, change := range changes {
		var before error
		err := db.View(t.Context(), func(tx store.Tx) error {
			before = change(tx)
			_, _, err := tx.KVGet("space", "key") // it goes on reading
			return err
		})
		if !errors.Is(before, store.ErrReadOnly) || err != nil {
			t.Errorf("%s in a view: %v, then %v", name, before, err)
		}
	}
	own := errors.New("own")
	if err := db.View(t.Context(), func(store.Tx) error { return own }); !errors.Is(err, own) {
		t.Errorf("a view's own error: %v", err)
	}
	holds(t, db, "space", "key", "new")
}

func testClosing(t *testing.T, db *store.DB, _ *Clock) {
	results := atOnce(50, func(i int) error {
		if i == 25 {
			return db.Close()
		}
		err := db.Update(t.Context(), func(tx store.Tx) error {
			_, _, err := tx.KVPut(write("space", fmt.Sprint(i), "value"))
			return err
		})
		if errors.Is(err, store.ErrClosed) {
			return nil
		}
		return err
	})
	if err := errors.Join(results...); err != nil {
		t.Error(err)
	}
	nothing := func(store.Tx) error { return nil }
	for i, err := range []error{db.Update(t.Context(), nothing), db.View(t.Context(), nothing)} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%d: closed: %v", i, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func testDecisions(t *testing.T, db *store.DB, clock *Clock) {
	var ids []int64
	for _, d := range []store.Decision{decision("a.wasm", "grant"), decision("b.wasm", "approve"), decision("a.wasm", "revoke")} {
		id, err := db.Decide(t.Context(), d.Who, d.Action, d.Module, d.Digest, d.Definitions, string(d.Grant))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		clock.Add(time.Second)
	}
	if !slices.IsSorted(ids) {
		t.Errorf("numbers %v", ids)
	}
	for _, c := range []struct {
		module string
		before int64
		limit  int
		want   []int64
	}{
		{"", 0, 10, []int64{ids[2], ids[1], ids[0]}},
		{"a.wasm", 0, 10, []int64{ids[2], ids[0]}},
		{"a.wasm", ids[2], 10, []int64{ids[0]}},
		{"", 0, 1, []int64{ids[2]}},
		{"c.wasm", 0, 10, nil},
		{"", 0, 0, nil},
		{"", 0, -1, nil},
	} {
		got, err := db.Decisions(t.Context(), c.module, c.before, c.limit)
		var found []int64
		for _, d := range got {
			found = append(found, d.ID)
		}
		if err != nil || !slices.Equal(found, c.want) {
			t.Errorf("%+v: %v, %v", c, found, err)
		}
	}
	last, err := db.Decisions(t.Context(), "", 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := decision("a.wasm", "revoke")
	want.ID, want.At = ids[2], clock.Now().Add(-time.Second)
	if got := fmt.Sprintf("%+v", last[0]); got != fmt.Sprintf("%+v", want) {
		t.Errorf("got %s\nwant %+v", got, want)
	}
	for _, version := range [][2]string{{"", ""}, {"digest", ""}} {
		if _, err := db.Decide(t.Context(), "alice", "revoke", "c.wasm", version[0], version[1], "[]"); err != nil {
			t.Errorf("about the version %q: %v", version, err)
		}
	}
	badDecisions(t, db)
}

func decision(module, action string) store.Decision {
	return store.Decision{
		Who: "alice", Action: action, Module: module, Digest: "digest of " + module, Definitions: "definitions",
		Grant: []byte(`{"http":[{"host":"example.org"}]}`),
	}
}

func badDecisions(t *testing.T, db *store.DB) {
	for name, spoil := range map[string]func(*store.Decision){
		"action":         func(d *store.Decision) { d.Action = "allow" },
		"nobody":         func(d *store.Decision) { d.Who = "" },
		"module":         func(d *store.Decision) { d.Module = string(make([]byte, 513)) },
		"digest":         func(d *store.Decision) { d.Digest = "\xff" },
		"definitions":    func(d *store.Decision) { d.Definitions = "a\x00b" },
		"grant":          func(d *store.Decision) { d.Grant = []byte(`{`) },
		"grant too long": func(d *store.Decision) { d.Grant = fmt.Appendf(nil, "%*q", 1<<20+1, "a") },
	} {
		d := decision("bad.wasm", "grant")
		spoil(&d)
		err := db.Update(t.Context(), func(tx store.Tx) error { _, err := tx.Decide(d); return err })
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func testPins(t *testing.T, db *store.DB, clock *Clock) {
	pin := func(digest string, wantRank int64) {
		t.Helper()
		rank, err := db.SetPin(t.Context(), "a.wasm", digest, "definitions of "+digest)
		if err != nil || rank != wantRank {
			t.Errorf("%s has rank %d, %v, want %d", digest, rank, err, wantRank)
		}
		got, definitions, found, err := db.Pin(t.Context(), "a.wasm")
		if err != nil || got != digest || definitions != "definitions of "+digest || found != wantRank {
			t.Errorf("pinned is %q %q %d, %v", got, definitions, found, err)
		}
	}
	pin("one", 1)
	pin("two", 2)
	pin("two", 2)
	pin("one", 1) // back to an old one: it stays old
	pin("three", 3)
	if _, err := db.SetPin(t.Context(), "b.wasm", "one", "definitions"); err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[string]int64{"one": 1, "two": 2, "three": 3, "four": 0} {
		if rank, err := db.PinRank(t.Context(), "a.wasm", digest); err != nil || rank != want {
			t.Errorf("%s has rank %d, %v, want %d", digest, rank, err, want)
		}
	}
	all, err := db.Pins(t.Context())
	want := []store.Pin{
		{Module: "a.wasm", Digest: "three", Definitions: "definitions of three", Rank: 3, At: clock.Now()},
		{Module: "b.wasm", Digest: "one", Definitions: "definitions", Rank: 1, At: clock.Now()},
	}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("got %+v, %v\nwant %+v", all, err, want)
	}
	if err := db.Unpin(t.Context(), "a.wasm"); err != nil {
		t.Fatal(err)
	}
	if _, _, rank, err := db.Pin(t.Context(), "a.wasm"); err != nil || rank != 0 {
		t.Errorf("unpinned, and still rank %d, %v", rank, err)
	}
	pin("four", 4)
	if _, err := db.SetPin(t.Context(), "", "one", "definitions"); err == nil {
		t.Error("pinned a module without a name")
	}
}

func testCounters(t *testing.T, db *store.DB, clock *Clock) {
	for i, c := range []struct {
		calls, bytes, maxCalls, maxBytes int64
		wantCalls, wantBytes             int64
		wantOK                           bool
	}{
		{1, 100, 3, 250, 1, 100, true},
		{1, 151, 3, 250, 1, 100, false}, // nothing is added, not even the call
		{1, 150, 3, 250, 2, 250, true},
		{1, 0, 3, 250, 3, 250, true},
		{1, 0, 3, 250, 3, 250, false},
		{1, 0, 0, 250, 4, 250, true}, // no limit on calls
		{0, 1, 0, 0, 4, 251, true},
		{0, 0, 1, 1, 4, 251, false}, // a limit that was lowered
	} {
		calls, bytes, ok, err := db.Count(t.Context(), "text.wasm/count", c.calls, c.bytes, c.maxCalls, c.maxBytes)
		if err != nil || calls != c.wantCalls || bytes != c.wantBytes || ok != c.wantOK {
			t.Errorf("%d: got %d, %d, %t, %v, want %d, %d, %t", i, calls, bytes, ok, err, c.wantCalls, c.wantBytes, c.wantOK)
		}
	}
	used := func(want int64) {
		t.Helper()
		if calls, _, err := db.Used(t.Context(), "text.wasm/count"); err != nil || calls != want {
			t.Errorf("used %d calls, %v, want %d", calls, err, want)
		}
	}
	used(4)
	clock.Add(12*time.Hour - time.Millisecond)
	used(4)
	clock.Add(time.Millisecond) // midnight
	used(0)
	for _, n := range []int64{-1, 1<<50 + 1} {
		if _, _, ok, err := db.Count(t.Context(), "subject", n, 0, 0, 0); ok || err == nil {
			t.Errorf("counted %d", n)
		}
	}
	clock.Add(32 * 24 * time.Hour)
	if n, err := db.Sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("swept %d old counters, %v, want 1", n, err)
	}
}

// A quota is never overdrawn, however many come at once.
func testCountersAtOnce(t *testing.T, db *store.DB, _ *Clock) {
	const quota = 40
	var granted atomic.Int64
	results := atOnce(100, func(int) error {
		_, _, ok, err := db.Count(t.Context(), "tool", 1, 10, quota, 0)
		if ok {
			granted.Add(1)
		}
		return err
	})
	if err := errors.Join(results...); err != nil || granted.Load() != quota {
		t.Errorf("granted %d of %d, %v", granted.Load(), quota, err)
	}
}
