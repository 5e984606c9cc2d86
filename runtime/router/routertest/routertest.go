package routertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/router"
)

// Store is what every store must do. open returns an empty one.
func Store(t *testing.T, open func(*testing.T) router.Store) {
	for name, test := range map[string]func(*testing.T, router.Store){
		"add": add, "set": set, "find": find, "prune": prune, "all or nothing": allOrNothing, "at once": atOnce,
		"odd texts": oddTexts, "ended contexts": endedContexts, "many": many,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// at is a time as a store must give it back: to the millisecond, UTC.
func at(n int) time.Time { return time.UnixMilli(1_760_000_000_000 + int64(n)).UTC() }

const agent = "coder"

// item is one with all that there is.
func item(id string, state router.State) router.Item {
	return router.Item{
		ID: id, Agent: agent, Event: "event " + id, Kind: "task.assigned", State: state, Why: "because", Task: "task " + id, Key: "TE-1", Title: "title",
		Version: 7, Chat: "chat", At: at(3), Began: at(4), Data: json.RawMessage(`{"a":"<b>"}`), Attempt: 2, RunID: "run", Interrupted: true, Crashes: 1, Take: true,
		Created: at(1), Changed: at(2),
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put adds items that must be new.
func put(t *testing.T, s router.Store, items ...router.Item) []router.Item {
	t.Helper()
	added, err := s.AddItems(t.Context(), items)
	if err != nil || len(added) != len(items) {
		t.Fatalf("%d of %d were added, %v", len(added), len(items), err)
	}
	return added
}

func get(t *testing.T, s router.Store, q router.Query) []router.Item {
	t.Helper()
	if q.Agent == "" {
		q.Agent = agent
	}
	all, err := s.Items(t.Context(), q)
	must(t, err)
	return all
}

// ids are those of items, in their order.
func ids(items []router.Item) string {
	var all []string
	for _, i := range items {
		all = append(all, i.ID)
	}
	return strings.Join(all, " ")
}

func same(t *testing.T, what string, got, want router.Item) {
	t.Helper()
	var a, b any
	if len(got.Data)+len(want.Data) > 0 {
		must(t, errors.Join(json.Unmarshal(got.Data, &a), json.Unmarshal(want.Data, &b)))
	}
	if got.Data, want.Data = nil, nil; !reflect.DeepEqual(got, want) || !reflect.DeepEqual(a, b) {
		t.Errorf("%s: got %+v %v, want %+v %v", what, got, a, want, b)
	}
}

// An item is kept once, whoever adds it how often, and comes back as it was.
func add(t *testing.T, s router.Store) {
	first := put(t, s, item("a", router.Accepted), item("b", router.Accepted))
	if first[0].Number >= first[1].Number || first[0].Revision == 0 {
		t.Errorf("numbers %d and %d, revision %d", first[0].Number, first[1].Number, first[0].Revision)
	}
	again := item("a", router.Done)
	added, err := s.AddItems(t.Context(), []router.Item{again, item("c", router.Accepted), item("c", router.Failed)})
	if err != nil || ids(added) != "c" {
		t.Errorf("added %s, %v, want c", ids(added), err)
	}
	all := get(t, s, router.Query{})
	if ids(all) != "a b c" {
		t.Fatalf("there are %s", ids(all))
	}
	want := item("a", router.Accepted)
	want.Number, want.Revision = first[0].Number, first[0].Revision
	same(t, "the one that was added", first[0], want)
	same(t, "the one that is read", all[0], want)
	if none, err := s.AddItems(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("nothing is added as %v, %v", none, err)
	}
}

// An item is replaced if it is as it was read, and never becomes another.
func set(t *testing.T, s router.Store) {
	was := put(t, s, item("a", router.Accepted))[0]
	now := was
	now.State, now.Agent, now.Event, now.Number, now.Created, now.Changed, now.Owed = router.Failed, "other", "other", 99, at(9), at(5), "a reason"
	all, err := s.SetItems(t.Context(), []router.Item{now})
	must(t, err)
	want := was
	want.State, want.Changed, want.Owed, want.Revision = router.Failed, at(5), "a reason", all[0].Revision
	if all[0].Revision == was.Revision {
		t.Error("the revision is the same")
	}
	same(t, "the one that was set", all[0], want)
	same(t, "the one that is read", get(t, s, router.Query{})[0], want)
	if _, err := s.SetItems(t.Context(), []router.Item{now}); !errors.Is(err, router.ErrChanged) {
		t.Errorf("an old one is set: %v", err)
	}
	if _, err := s.SetItems(t.Context(), []router.Item{item("b", router.Done)}); !errors.Is(err, router.ErrNotFound) {
		t.Errorf("one that is not there is set: %v", err)
	}
	same(t, "what is left", get(t, s, router.Query{})[0], want)
}

// A query finds what it asks for, in its order.
func find(t *testing.T, s router.Store) {
	owed, other, sibling := item("owed", router.Failed), item("other", router.Accepted), item("sibling", router.Heard)
	owed.Owed, other.Agent, sibling.Task = "a reason", "tester", "task a"
	put(t, s, item("a", router.Accepted), item("r", router.Running), item("d", router.Done), owed, other, item("x", router.Dropped), sibling)
	number := get(t, s, router.Query{IDs: []string{"d"}})[0].Number
	for _, c := range []struct {
		q    router.Query
		want string
	}{
		{router.Query{}, "a r d owed x sibling"},
		{router.Query{Latest: true}, "sibling x owed d r a"},
		{router.Query{Limit: 2}, "a r"},
		{router.Query{Limit: 2, Latest: true}, "sibling x"},
		{router.Query{Agent: "tester"}, "other"},
		{router.Query{Agent: "nobody"}, ""},
		{router.Query{Open: true}, "a r owed"},
		{router.Query{Open: true, Latest: true, Limit: 1}, "owed"},
		{router.Query{States: []router.State{router.Accepted}}, "a"},
		{router.Query{States: []router.State{router.Accepted, router.Running}, Latest: true}, "r a"},
		{router.Query{States: []router.State{router.Failed, router.Heard}}, "owed sibling"},
		{router.Query{States: []router.State{}}, ""},
		{router.Query{Task: "task a"}, "a sibling"},
		{router.Query{Task: "task a", Latest: true, Limit: 1}, "sibling"},
		{router.Query{Task: "task a", States: []router.State{router.Accepted}, Latest: true}, "a"},
		{router.Query{IDs: []string{"x", "a", "nothing", "other"}}, "a x"},
		{router.Query{IDs: []string{"x", "a"}, Latest: true}, "x a"},
		{router.Query{IDs: []string{"x", "a"}, Limit: 1}, "a"},
		{router.Query{IDs: []string{}}, ""},
		{router.Query{IDs: []string{"a", "r"}, States: []router.State{router.Running}}, "r"},
		{router.Query{After: number}, "owed x sibling"},
		{router.Query{After: number, Latest: true}, "sibling x owed"},
		{router.Query{After: number, Open: true}, "owed"},
	} {
		if got := ids(get(t, s, c.q)); got != c.want {
			t.Errorf("%+v finds %s, want %s", c.q, got, c.want)
		}
	}
}

// What is open is never removed, of the rest what is old, and what is too much.
func prune(t *testing.T, s router.Store) {
	fill := func() {
		for n, state := range []router.State{router.Done, router.Accepted, router.Failed, router.Dropped, router.Heard, router.Running, router.Done} {
			i := item(fmt.Sprint(n), state)
			i.Changed = at(n)
			if _, err := s.AddItems(t.Context(), []router.Item{i}); err != nil {
				t.Fatal(err)
			}
		}
		owed := item("owed", router.Failed)
		owed.Owed, owed.Changed = "a reason", at(0)
		_, err := s.AddItems(t.Context(), []router.Item{owed})
		must(t, err)
	}
	for _, c := range []struct {
		before, keep, most, removed int
		want                        string
	}{
		{0, 10, 10, 0, "0 1 2 3 4 5 6 owed"},
		{3, 10, 10, 2, "1 3 4 5 6 owed"},
		{0, 2, 10, 1, "1 4 5 6 owed"},
		{5, 0, 1, 1, "1 5 6 owed"},
		{100, 0, 10, 1, "1 5 owed"},
		{100, 0, 10, 0, "1 5 owed"},
	} {
		if c.removed == 0 && c.before == 0 {
			fill()
		}
		n, err := s.PruneItems(t.Context(), agent, at(c.before), c.keep, c.most)
		if got := ids(get(t, s, router.Query{})); err != nil || n != c.removed || got != c.want {
			t.Errorf("before %d, keep %d, at most %d: %d are gone, %v, and there are %s, want %d and %s", c.before, c.keep, c.most, n, err, got, c.removed, c.want)
		}
	}
	if n, err := s.PruneItems(t.Context(), "tester", at(100), 0, 10); n != 0 || err != nil {
		t.Errorf("of another agent %d are gone, %v", n, err)
	}
	last := get(t, s, router.Query{Latest: true, Limit: 1})[0].Number
	if again := put(t, s, item("again", router.Accepted))[0]; again.Number <= last {
		t.Errorf("the number %d is behind %d", again.Number, last)
	}
}

// Of several items all are changed or none.
func allOrNothing(t *testing.T, s router.Store) {
	all := put(t, s, item("a", router.Accepted), item("b", router.Accepted))
	all[0].State, all[1].Revision = router.Running, all[1].Revision+1
	if _, err := s.SetItems(t.Context(), all); !errors.Is(err, router.ErrChanged) {
		t.Errorf("got %v", err)
	}
	if got := get(t, s, router.Query{States: []router.State{router.Accepted}}); ids(got) != "a b" {
		t.Errorf("only %s are as they were", ids(got))
	}
}

// Of several who add the same event one does, and of several who change an item one does.
func atOnce(t *testing.T, s router.Store) {
	const many = 8
	var all sync.WaitGroup
	var mu sync.Mutex
	added, changed := 0, 0
	for range many {
		all.Go(func() {
			got, err := s.AddItems(t.Context(), []router.Item{item("a", router.Accepted)})
			mu.Lock()
			defer mu.Unlock()
			if added += len(got); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	was := get(t, s, router.Query{})
	for range many {
		all.Go(func() {
			_, err := s.SetItems(t.Context(), was)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				changed++
			} else if !errors.Is(err, router.ErrChanged) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if added != 1 || changed != 1 || len(was) != 1 {
		t.Errorf("%d added, %d changed, %d are there", added, changed, len(was))
	}
}

// Whatever a text has in it can be kept, and does not make it another's.
func oddTexts(t *testing.T, s router.Store) {
	odd := "'; drop table inbox_item; -- \x00 \xff <&> é \U0001f600 %_\\"
	i := item("odd", router.Accepted)
	i.Why, i.Title, i.Task, i.Key = odd, odd, odd, odd
	put(t, s, i)
	got := get(t, s, router.Query{})
	if len(got) != 1 || !strings.Contains(got[0].Why, "drop table") || !strings.Contains(got[0].Title, "\U0001f600 %_\\") {
		t.Errorf("got %+v", got)
	}
	for _, q := range []router.Query{{Agent: odd}, {Agent: "%"}, {Task: "%"}, {IDs: []string{odd, "' or 1=1"}}} {
		if got := get(t, s, q); len(got) != 0 {
			t.Errorf("%+v finds %s", q, ids(got))
		}
	}
}

func endedContexts(t *testing.T, s router.Store) {
	was := put(t, s, item("a", router.Accepted))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := s.AddItems(ctx, []router.Item{item("b", router.Accepted)})
	_, err2 := s.SetItems(ctx, was)
	_, err3 := s.Items(ctx, router.Query{Agent: agent})
	_, err4 := s.PruneItems(ctx, agent, at(100), 0, 10)
	for n, err := range []error{err1, err2, err3, err4} {
		if err == nil {
			t.Errorf("call %d is answered after its context has ended", n)
		}
	}
	if got := get(t, s, router.Query{}); len(got) != 1 || got[0].Revision != was[0].Revision {
		t.Errorf("there are %+v", got)
	}
}

// More than any store reads at once comes in order and whole.
func many(t *testing.T, s router.Store) {
	const count = 700
	var items []router.Item
	for n := range count {
		i := item(fmt.Sprintf("%03d", n), router.Accepted)
		i.Task = fmt.Sprint("task ", n%2)
		if n%3 == 0 {
			i.State = router.Done
		}
		items = append(items, i)
	}
	put(t, s, items...)
	for _, c := range []struct {
		q    router.Query
		want func(n int) bool
	}{
		{router.Query{}, func(int) bool { return true }},
		{router.Query{Open: true}, func(n int) bool { return n%3 != 0 }},
		{router.Query{States: []router.State{router.Done}}, func(n int) bool { return n%3 == 0 }},
		{router.Query{Task: "task 1", Open: true}, func(n int) bool { return n%2 == 1 && n%3 != 0 }},
	} {
		var want []string
		for n := range count {
			if c.want(n) {
				want = append(want, fmt.Sprintf("%03d", n))
			}
		}
		for _, latest := range []bool{false, true} {
			if c.q.Latest = latest; latest {
				slices.Reverse(want)
			}
			if got := ids(get(t, s, c.q)); got != strings.Join(want, " ") {
				t.Errorf("%+v finds %d bytes of ids, want %d: %s", c.q, len(got), len(strings.Join(want, " ")), got)
			}
		}
		c.q.Limit = 300
		if got := get(t, s, c.q); len(got) != min(300, len(want)) || got[0].ID != want[0] {
			t.Errorf("%+v finds %d", c.q, len(got))
		}
	}
}
