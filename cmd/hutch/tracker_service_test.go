package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/owner"
)

// Commands that run at once wait for each other, and each is carried out once.
func TestTrackerCommandsAtOnce(t *testing.T) {
	const many = 8
	cfg := Config{State: filepath.Join(t.TempDir(), "state")}
	cfg.Policy = state{cfg.State}.policy()
	if _, said, err := typed(t, cfg, program{}, "", nil, "tracker", "init"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			if _, said, err := typed(t, cfg, program{}, "", nil, "tracker", "task", "create", "team", fmt.Sprint("Task ", i)); err != nil {
				t.Errorf("%d: %v\n%s", i, err, said)
			}
		})
	}
	all.Wait()
	out, _, err := typed(t, cfg, program{}, "", nil, "tracker", "task", "show", fmt.Sprint("TE-", many))
	if err != nil {
		t.Errorf("the last of %d: %v\n%s", many, err, out)
	}
	if _, _, err := typed(t, cfg, program{}, "", nil, "tracker", "task", "show", fmt.Sprint("TE-", many+1)); err == nil {
		t.Errorf("there are more than %d", many)
	}
}

// A command that owns the folder for a moment answers nobody: another one waits for its end.
func TestTrackerWaitsForCommands(t *testing.T) {
	cfg, err := readConfig(t, "", nil)
	must(t, err)
	cfg.State = filepath.Join(t.TempDir(), "state")
	st, err := openState(cfg.State)
	must(t, err)
	o, err := owner.Claim(st.dir, cfg.ownerInfo(ownerTools))
	must(t, err)
	var held atomic.Bool
	held.Store(true)
	released := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() { held.Store(false); released <- o.Release() })
	err = cfg.withTracker(t.Context(), program{}, func(ctx context.Context, s trackerService) error {
		if held.Load() {
			return errors.New("asked who answers nobody")
		}
		_, err := s.UpdateMyStatus(ctx, tracker.MyStatus{Status: "here"}) // it is not tried again
		return err
	})
	if err := errors.Join(err, <-released); err != nil {
		t.Error(err)
	}
}

// An owner that ends before it has answered is nobody: the command goes on in the folder, and
// what it made under a key is made once.
func TestTrackerOfAnOwnerThatEnds(t *testing.T) {
	cfg, err := readConfig(t, "", nil)
	must(t, err)
	cfg.State = filepath.Join(t.TempDir(), "state")
	st, err := openState(cfg.State)
	must(t, err)
	o, err := owner.Claim(st.dir, cfg.ownerInfo(ownerServe))
	must(t, err)
	calls := 0
	err = cfg.withTracker(t.Context(), program{}, func(ctx context.Context, s trackerService) error {
		if calls++; calls == 1 {
			must(t, o.Release()) // between the look for it and the first request
		}
		_, err := s.GetMember(ctx, "me")
		return err
	})
	if err != nil || calls != 2 {
		t.Errorf("called %d times: %v", calls, err)
	}
	busy := errors.New("busy")
	if err := cfg.withTracker(t.Context(), program{}, func(context.Context, trackerService) error { return busy }); !errors.Is(err, busy) {
		t.Errorf("the error of a command became %v", err)
	}
}

// A tracker that does not answer is told in one line, and nothing of where it is.
func TestTrackerThatIsAway(t *testing.T) {
	w := newTrackerElsewhere(t)
	w.env[envTrackerURL] = "http://127.0.0.1:1/api/v1"
	_, _, err := w.try("task", "assign", "TE-1", "coder")
	if !isUnavailable(err) || err.Error() != "the tracker did not answer" || hintOf(err) != "try again in a moment, or see whether HUTCH_TRACKER_URL is right" {
		t.Errorf("got %v", err)
	}
	if !errors.Is(err, tracker.Errorf(tracker.CodeUnavailable, "")) || exitCode(err) != exitFailed {
		t.Errorf("exit code %d", exitCode(err))
	}
}

// Where a tracker has no routes, the address is what to mend.
func TestTrackerAtAnotherPath(t *testing.T) {
	w := newTrackerElsewhere(t)
	w.env[envTrackerURL] += "/nowhere"
	_, _, err := w.try("task", "list")
	if err == nil || !strings.Contains(hintOf(err), "https://HOST/api/v1") {
		t.Errorf("got %v, %q", err, hintOf(err))
	}
}
