package worker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/protocol/abi"
)

// wantLimit checks which limit an error is about, by name and in its text.
func wantLimit(t *testing.T, err error, class abi.Class, limit abi.LimitName) {
	t.Helper()
	wantClass(t, err, class, "("+limit.Key()+")")
	if f := err.(*abi.Failure); f.Limit != limit { //nolint:errorlint // wantClass saw that it is one
		t.Errorf("limit %q, want %q: %v", f.Limit, limit, err)
	}
}

// One call more than may run and wait is refused at once, before anything else.
func TestE17_QueueAtNAndAtOneMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const running, waiting = 2, 3
		f := newUsual(t, Options{Calls: running, Queue: waiting})
		var calls []func() (string, error)
		for range running + waiting {
			calls = append(calls, later(f, t.Context(), numbered(1), tool("slow", `{}`)))
			synctest.Wait()
		}
		began := time.Now()
		_, _, err := f.Call(t.Context(), numbered(1), tool("slow", `{}`))
		wantLimit(t, err, abi.ClassBusy, abi.LimitQueue)
		if took := time.Since(began); took != 0 {
			t.Errorf("refused after %v, want at once", took)
		}
		if body, _, err := f.Call(t.Context(), numbered(2), tool("echo", `{}`)); err != nil {
			t.Errorf("another module's call: %q, %v", body, err)
		}
		for _, wait := range calls {
			body, err := wait()
			wantAnswer(t, body, err, `{}`)
		}
		body, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantAnswer(t, string(body), err, `{}`)
	})
}

func TestRateAtNAndAtOneMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{Rate: 5})
		call := func() error {
			_, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
			return err
		}
		for i := range 5 {
			if err := call(); err != nil {
				t.Fatalf("call %d of 5: %v", i+1, err)
			}
		}
		err := call()
		wantLimit(t, err, abi.ClassBusy, abi.LimitRate)
		if !strings.Contains(err.Error(), "more than 5 calls of its module in a second, try again in 200ms") {
			t.Errorf("error %q", err)
		}
		time.Sleep(200 * time.Millisecond) // a refused call uses nothing up
		if err := call(); err != nil {
			t.Error(err)
		}
		wantLimit(t, call(), abi.ClassBusy, abi.LimitRate)
	})
}

// A caller with many calls in line does not keep another's single one waiting.
func TestLinesTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{Calls: 1})
		var mu sync.Mutex
		var order []string
		var calls sync.WaitGroup
		for _, who := range []string{"a", "a", "a", "a", "b", "b", "c"} {
			calls.Go(func() {
				in := tool("slow", `{}`)
				in.Line = who
				if _, _, err := f.Call(t.Context(), numbered(1), in); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, who)
			})
			synctest.Wait()
		}
		calls.Wait()
		// The first a was in before anybody waited.
		if got := strings.Join(order, ""); got != "aabcaba" {
			t.Errorf("served in order %s, want aabcaba", got)
		}
	})
}

func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newUsual(t, Options{Calls: 1, Queue: 1})
		first := later(f, t.Context(), numbered(1), tool("slow", `{}`))
		synctest.Wait()
		for range 3 { // each takes the one place to wait, and gives it back
			ctx, cancel := context.WithCancel(t.Context())
			second := later(f, ctx, numbered(1), tool("echo", `{}`))
			synctest.Wait()
			cancel()
			_, err := second()
			wantClass(t, err, abi.ClassCancelled, "other calls of the tool were running")
		}
		body, err := first()
		wantAnswer(t, body, err, `{}`)
		body2, _, err := f.Call(t.Context(), numbered(1), tool("echo", `{}`))
		wantAnswer(t, string(body2), err, `{}`)
	})
}

// Whoever is let in just as he gives up is in: no place is lost. Places are
// counted at the end, after many goroutines came, waited and gave up.
func TestHammerTurnstile(t *testing.T) {
	turn := newTurnstile(3, 1000)
	var inside gauge
	var callers sync.WaitGroup
	for i := range 32 {
		callers.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j%5)*time.Microsecond)
				if in, _ := turn.enter(ctx, fmt.Sprint(i%7), false); in {
					inside.enter()
					inside.leave()
					turn.leave()
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if turn.inside != 0 || turn.waiting != 0 || len(turn.lines) != 0 || len(turn.order) != 0 {
		t.Errorf("left behind: %d inside, %d waiting, lines %v, order %q", turn.inside, turn.waiting, turn.lines, turn.order)
	}
	if inside.most.Load() > 3 {
		t.Errorf("%d inside at once, at most 3", inside.most.Load())
	}
}

// The names of limits cross the wall, and only those that exist.
func TestLimitsCrossTheWall(t *testing.T) {
	sent := abi.Exceeded(abi.ClassLimit, abi.LimitStack, "too deep")
	body, err := encodeFailed(sent, abi.Usage{})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := decodeFailed(body)
	if err != nil || *got != *sent {
		t.Errorf("got %+v, %v, want %+v", got, err, sent)
	}
	if _, _, err := decodeFailed([]byte(`{"class":"limit","limit":"patience"}`)); err == nil {
		t.Error("a limit that does not exist passed")
	}
}
