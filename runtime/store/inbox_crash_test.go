package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/store"
)

// asAgent makes the test program an agent with its inbox in the database that is its next
// argument, in the round after that, until it is killed.
const asAgent = "__agent"

const crashSlug = "coder"

// crashEvents is how many events each round sends, behind all that the rounds before sent.
const crashEvents = 400

// A crashDesk is a tracker in which every task is the agent's, and turns that take a moment.
type crashDesk struct {
	router.Tracker
	begun func(router.Turn)
}

func (d crashDesk) GetTask(_ context.Context, id string) (tracker.TaskOut, error) {
	slug := crashSlug
	return tracker.TaskOut{ID: id, Key: id, Status: tracker.Todo, AssigneeSlug: &slug}, nil
}

func (d crashDesk) ReleaseTask(ctx context.Context, id string, _ tracker.ReleaseTask) (tracker.TaskOut, error) {
	return d.GetTask(ctx, id)
}

func (d crashDesk) SendMessage(context.Context, tracker.SendMessage) (tracker.MessageOut, error) {
	return tracker.MessageOut{}, nil
}

func (d crashDesk) Run(_ context.Context, t router.Turn) error {
	d.begun(t)
	return nil
}

func crashFrame(n int) (tracker.EventFrame, error) {
	data, err := json.Marshal(map[string]any{"task": map[string]any{"id": fmt.Sprint("task-", n), "assignee_slug": crashSlug}})
	return tracker.EventFrame{ID: fmt.Sprint("event-", n), Event: tracker.EventTaskAssigned, Data: data}, err
}

// routeUntilKilled accepts events and works them off. A line "ack" is what the tracker is told,
// a line "begin" comes when a turn does.
func routeUntilKilled(path, round string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	db, err := open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	desk := crashDesk{begun: func(t router.Turn) { fmt.Println("begin", t.Task.ID, t.RunID) }}
	r, err := router.New(router.Options{Agent: crashSlug, Store: db, Turns: desk, Tracker: desk, Parallel: 4})
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- r.Run(ctx) }()
	go func() { ended <- acceptAll(ctx, r, round) }()
	return <-ended
}

// acceptAll sends the events of a round twice each, and then those of all rounds before again.
func acceptAll(ctx context.Context, r *router.Router, round string) error {
	var number int
	if _, err := fmt.Sscanf(round, "round%d", &number); err != nil {
		return err
	}
	for n := 0; n < (number+1)*crashEvents; n++ {
		f, err := crashFrame(n)
		if err != nil {
			return err
		}
		for range 2 {
			if err := r.Accept(ctx, f); err != nil {
				return err
			}
			if _, err := fmt.Println("ack", f.ID); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// An agent that is killed while it works loses no event that it acknowledged, and begins no
// turn again that had ended; one that it was killed in begins once more.
func TestE0_4_NothingIsLostWhenTheAgentIsKilled(t *testing.T) { everywhere(t, testAgentKilled) }

func testAgentKilled(t *testing.T, path string) {
	acked, begun, done := map[string]bool{}, map[string]map[string]bool{}, map[string]bool{} // by event; by task, runs; by task
	for round := range 3 {
		for _, line := range killedAfter(t, asAgent, path, fmt.Sprint("round", round), 700) {
			f := strings.Fields(line)
			if f[0] == "ack" {
				acked[f[1]] = true
				continue
			}
			if done[f[1]] {
				t.Errorf("%s had ended, and has begun again: %s", f[1], f[2])
			}
			note(begun, f[1], f[2])
		}
		db := openAt(t, path, store.Options{})
		verifyInbox(t, db, acked, begun, done)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	finishInbox(t, openAt(t, path, store.Options{}), begun)
	for task, runs := range begun {
		if len(runs) > 2 {
			t.Errorf("%s had the runs %v", task, runs)
		}
	}
	if len(acked) == 0 || len(done) == 0 || len(begun) == 0 {
		t.Errorf("%d events, %d turns, %d of them ended", len(acked), len(begun), len(done))
	}
}

func note(begun map[string]map[string]bool, task, run string) {
	if begun[task] == nil {
		begun[task] = map[string]bool{}
	}
	begun[task][run] = true
}

// verifyInbox looks for each event that was acknowledged, and notes which have ended.
func verifyInbox(t *testing.T, db *store.DB, acked map[string]bool, begun map[string]map[string]bool, done map[string]bool) {
	t.Helper()
	items, err := db.Items(t.Context(), router.Query{Agent: crashSlug})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, i := range items {
		if there[i.Event] {
			t.Errorf("there are two items of %s", i.Event)
		}
		there[i.Event] = true
		done[i.Task] = done[i.Task] || i.State == router.Done
		if i.State == router.Accepted && i.Attempt == 0 && begun[i.Task] != nil {
			t.Errorf("%s has begun, and its item does not know", i.Task)
		}
	}
	for event := range acked {
		if !there[event] {
			t.Errorf("%s was acknowledged, and there is no item", event)
		}
	}
}

// finishInbox works off what is left.
func finishInbox(t *testing.T, db *store.DB, begun map[string]map[string]bool) {
	t.Helper()
	var mu sync.Mutex
	desk := crashDesk{begun: func(t router.Turn) {
		mu.Lock()
		defer mu.Unlock()
		note(begun, t.Task.ID, t.RunID)
	}}
	changed := make(chan struct{}, 1)
	trail := func(router.Note) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	r, err := router.New(router.Options{Agent: crashSlug, Store: db, Turns: desk, Tracker: desk, Parallel: 4, Trail: trail})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for {
		open, err := db.Items(ctx, router.Query{Agent: crashSlug, Open: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(open) == 0 {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d items are open still, such as %+v", len(open), open[0])
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the router ended with %v", err)
	}
	all, err := db.Items(t.Context(), router.Query{Agent: crashSlug})
	for _, i := range all {
		if i.State != router.Done && (i.State != router.Failed || i.Crashes != 2) {
			t.Errorf("%s is %+v", i.Event, i)
		}
	}
	if err != nil || len(all) == 0 {
		t.Errorf("%d items, %v", len(all), err)
	}
}
