package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
	"github.com/hutch-run/hutch/runtime/store"
)

// toldLines are what clients were told.
type toldLines struct {
	mu    sync.Mutex
	lines map[string]bool
	ended int
}

func (l *toldLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[line] = true
}

func (l *toldLines) end() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
	return l.ended
}

// follow notes what a client is told of one run, to its end or until that breaks.
func (l *toldLines) follow(ctx context.Context, s *session.Stream, owner, id string) {
	defer s.Close()
	for {
		item, err := s.Next(ctx)
		if err != nil {
			return
		}
		if item.Number > 0 {
			l.add(fmt.Sprintf("number %s %s %d", owner, id, item.Number))
		}
		if result, ok := item.Event.(event.ToolCallResult); ok && item.Number > 0 {
			l.add(fmt.Sprintf("result %s %s %s", owner, id, result.ToolCallID))
		}
	}
}

// What clients were told is there though the server was killed while runs went on, and
// each run has one end.
func TestRunsWhoseServerIsKilled(t *testing.T) {
	place, c := server.Database(t), server.For(t)
	db := openAt(t, place, store.Options{LockWait: 20 * time.Second})
	k, err := session.Open(t.Context(), db, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	told := &toldLines{lines: map[string]bool{}}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for p := range crashThreads {
		wg.Go(func() { turnsUntil(t, k, crashOwner(p), told, stop) })
	}
	runs := func() int {
		told.mu.Lock()
		defer told.mu.Unlock()
		return told.ended
	}
	last := 0
	for range 3 {
		before := runs()
		await(t, func() bool { return runs() >= before+2*crashThreads })
		last = killBackend(t, c, place, last)
	}
	before := runs()
	await(t, func() bool { return runs() >= before+2*crashThreads })
	close(stop)
	wg.Wait()
	if err := errors.Join(k.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	verifyThreads(t, place, told.lines, event.CodeInternal, session.CodeStore)
}

// turnsUntil runs turns one after the other. One that cannot begin is said again under
// another id.
func turnsUntil(t *testing.T, k *session.Keeper, p session.Principal, told *toldLines, stop chan struct{}) {
	ctx := t.Context()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		id := fmt.Sprint("r", i)
		said := chat.Message{ID: "u" + id, Role: chat.User, Content: chat.Text("do it")}
		s, err := k.Submit(ctx, p, session.Input{Thread: "t", RunID: id, Agent: p.Name, Messages: []chat.Message{said}}, quietTurn)
		if err != nil {
			continue
		}
		told.follow(ctx, s, p.Name, id)
		told.end()
	}
}

// quietTurn is crashTurn without a word about what its tools did.
func quietTurn(ctx context.Context, r *session.Run) (session.Outcome, error) {
	return turnOfRounds(ctx, r, io.Discard)
}
