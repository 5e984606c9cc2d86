package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Who follows a task sees what happens, once, also while the tracker is away in between, and
// is told that the task came to a status that it has left already.
func TestFollowSeesWhatHappens(t *testing.T) {
	w := newTrackerElsewhere(t)
	w.do("init")
	w.do("task", "create", "team", "First")
	seat, begun := w.e.board.For(everything().Caller), false
	move := func(status tracker.Status) {
		_, err := seat.UpdateTask(t.Context(), "TE-1", tracker.UpdateTask{Status: tracker.Some(string(status))})
		must(t, err)
	}
	w.after = func(route string) {
		if begun || route != "GET /tasks/{id}/comments" { // what a look at a task ends with
			return
		}
		begun = true
		_, err := seat.TakeTask(t.Context(), "TE-1", tracker.TakeTask{})
		must(t, err)
		_, err = seat.SendMessage(t.Context(), tracker.SendMessage{TaskID: "TE-1", Content: "done so far"})
		must(t, err)
		move(tracker.InReview)
		move(tracker.InProgress)
		w.mu.Lock()
		w.away = 3 // as often as a request is tried
		w.mu.Unlock()
	}
	out, said, err := w.try("task", "follow", "TE-1", "--until", "review", "--json")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if strings.Count(said, "trying on") != 1 {
		t.Errorf("said %q", said)
	}
	var got []string
	for line := range strings.Lines(out) {
		var e trailEntry
		must(t, json.Unmarshal([]byte(line), &e))
		if e.Message != nil {
			got = append(got, e.Message.Content)
			continue
		}
		got = append(got, e.Activity.Action)
	}
	want := []string{"created", "taken", "done so far", "status_changed", "status_changed"}
	if !slices.Equal(got, want) {
		t.Errorf("saw %v, want %v", got, want)
	}
}

// A trail of several pages is read to its beginning, and no further than is new.
func TestUnseenReadsWhatIsNew(t *testing.T) {
	pages, asked := [][]int{{9, 8, 7}, {6, 5, 4}, {3, 2, 1}}, 0
	read := func(seen map[string]bool) (got []int) {
		asked = 0
		all, err := unseen(seen, func(p tracker.Paging) (tracker.Page[int], error) {
			page := tracker.Page[int]{Items: pages[asked]}
			if asked++; asked < len(pages) {
				page.NextCursor = "more"
			}
			return page, nil
		}, func(n *int) trailEntry { return trailEntry{Activity: &tracker.Activity{ID: string(rune('0' + *n))}} })
		must(t, err)
		for _, e := range all {
			got = append(got, int(e.Activity.ID[0]-'0'))
		}
		return got
	}
	if got := read(nil); len(got) != 9 || asked != 3 {
		t.Errorf("at first: %v in %d pages", got, asked)
	}
	if got := read(map[string]bool{"5": true, "4": true, "3": true}); !slices.Equal(got, []int{9, 8, 7, 6}) || asked != 2 {
		t.Errorf("then: %v in %d pages", got, asked)
	}
}
