package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/store"
)

// asTracker makes the test program keep a board in the database that is its next argument,
// in the name of the round after that, until it is killed.
const asTracker = "__tracker"

// So many agents are given tasks at once, and acknowledge every other event.
const crashAgents = 8

func crashAgent(i int) string { return fmt.Sprint("agent-", i) }

func seatOf(b *board.Board, slug string) *board.Seat {
	return b.For(tracker.Caller{Slug: slug, Scopes: []string{
		tracker.TasksRead, tracker.TasksWrite, tracker.TasksAssign, tracker.MessagesRead, tracker.MembersRead, tracker.MembersSelf, tracker.Admin,
	}})
}

// trackUntilKilled makes tasks and acknowledges events. What its clients were told stands on
// a line of its own: "task" with the key it was asked under, its id and its agent. A line
// "ack" comes before the store knows.
func trackUntilKilled(path, round string) error {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	db, err := open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	b := board.New(db, board.Options{})
	if _, err := b.Ensure(ctx, tracker.CreateMember{Slug: "ann", Kind: tracker.Human}); err != nil {
		return err
	}
	for i := range crashAgents {
		if _, err := b.Ensure(ctx, tracker.CreateMember{Slug: crashAgent(i)}); err != nil {
			return err
		}
	}
	_, err = seatOf(b, "ann").CreateProject(ctx, tracker.CreateProject{Slug: "p", Key: "P", IdempotencyKey: "the project"})
	if err != nil {
		return err
	}
	ended := make(chan error)
	for i := range crashAgents {
		go func() { ended <- assignTasks(ctx, b, crashAgent(i), round) }()
		go func() { ended <- acknowledge(ctx, b, crashAgent(i)) }()
	}
	return <-ended
}

func crashTask(agent, key string) tracker.CreateTask {
	return tracker.CreateTask{Project: "p", Title: key, AssigneeSlug: agent, Labels: []string{"crash"}, IdempotencyKey: key}
}

func assignTasks(ctx context.Context, b *board.Board, agent, round string) error {
	for i := 0; ; i++ {
		key := fmt.Sprintf("%s-%s-%d", round, agent, i)
		t, err := seatOf(b, "ann").CreateTask(ctx, crashTask(agent, key))
		if err != nil {
			return err
		}
		if _, err := fmt.Printf("task %s %s %s\n", key, t.ID, agent); err != nil {
			return err
		}
	}
}

func acknowledge(ctx context.Context, b *board.Board, agent string) error {
	seat := seatOf(b, agent)
	for last := int64(0); ; {
		events, err := seat.Events(ctx, last, 10)
		if err != nil {
			return err
		}
		for i, e := range events {
			last = e.Seq
			if i%2 > 0 {
				continue
			}
			if _, err := fmt.Println("ack", agent, taskOf(e.Data)); err != nil {
				return err
			}
			if err := seat.Ack(ctx, e.ID); err != nil {
				return err
			}
		}
		if err := seat.Wait(ctx, last); err != nil {
			return err
		}
	}
}

// taskOf is the id of the task that an event is about.
func taskOf(data []byte) string {
	var about struct {
		Task struct{ ID string } `json:"task"`
	}
	if json.Unmarshal(data, &about) != nil {
		return ""
	}
	return about.Task.ID
}

// No task that a client was told of is lost when the tracker is killed under load, and no
// event of any task: each is in the queue of its agent, or that agent has acknowledged it.
func TestH_03_NothingIsLostWhenTheTrackerIsKilled(t *testing.T) { everywhere(t, testTrackerKilled) }

func testTrackerKilled(t *testing.T, path string) {
	told, acked := map[string][]string{}, map[string]bool{} // by idempotency key; by task
	for round := range 3 {
		for _, line := range killedAfter(t, asTracker, path, fmt.Sprint("round", round), 300) {
			if f := strings.Fields(line); f[0] == "task" {
				told[f[1]] = f[2:]
			} else {
				acked[f[2]] = true
			}
		}
		verifyTracker(t, path, told, acked)
	}
}

func verifyTracker(t *testing.T, path string, told map[string][]string, acked map[string]bool) {
	t.Helper()
	db := openAt(t, path, store.Options{})
	b, tasks, left := board.New(db, board.Options{}), 0, 0
	for key, of := range told {
		again, err := seatOf(b, "ann").CreateTask(t.Context(), crashTask(of[1], key))
		if err != nil || again.ID != of[0] {
			t.Errorf("task %s was made as %s: asked again it is %s, %v", key, of[0], again.ID, err)
		}
	}
	for i := range crashAgents {
		err := db.ViewBoard(t.Context(), func(r board.Reader) error {
			all, events, err := verifyQueue(t, r, crashAgent(i), acked)
			tasks, left = tasks+all, left+events
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if tasks < len(told) || left == 0 || len(acked) == 0 {
		t.Errorf("%d tasks, told of were %d; %d events, %d acknowledged", tasks, len(told), left, len(acked))
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// verifyQueue looks at each task of an agent: made with one event, which has a number of its
// own.
func verifyQueue(t *testing.T, r board.Reader, agent string, acked map[string]bool) (tasks, left int, err error) {
	all, err := r.Tasks(board.TaskQuery{Assignee: agent})
	events, err2 := r.Deliveries(board.DeliveryQuery{Member: agent, Any: true})
	queues, err3 := r.Queues([]string{agent})
	if err := errors.Join(err, err2, err3); err != nil {
		return 0, 0, err
	}
	waiting := map[string]bool{}
	for _, e := range events {
		task := taskOf(e.Data)
		if task == "" || waiting[task] {
			t.Errorf("event %s of %s: %s", e.ID, agent, e.Data)
		}
		waiting[task] = true
	}
	for _, task := range all {
		if !waiting[task.ID] && !acked[task.ID] {
			t.Errorf("task %s of %s has no event, and nobody has acknowledged one", task.ID, agent)
		}
	}
	if q := queues[agent]; q.Count != len(events) || q.Last != int64(len(all)) {
		t.Errorf("%s has %d tasks and %d events: its queue says %+v", agent, len(all), len(events), q)
	}
	return len(all), len(events), nil
}
