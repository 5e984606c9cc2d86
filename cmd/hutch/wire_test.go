package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/worker"
	"github.com/hutch-run/hutch/runtime/worker/workertest"
)

// With --require-jail a pool is either whole or an error with a hint, before any
// module is touched.
func TestPoolThatRequiresAJail(t *testing.T) {
	st, err := openState(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	pool, err := newPool(Config{RequireJail: true}, st, workertest.Command(t), slog.New(slog.DiscardHandler), nil)
	if err != nil {
		if runtime.GOOS == "linux" && !errors.Is(err, worker.ErrNoJail) || hintOf(err) == "" {
			t.Error(err)
		}
		return
	}
	jail, err := pool.Jail(t.Context())
	if err = errors.Join(err, jail.Err(), pool.Close()); err != nil {
		t.Error(err)
	}
}

func TestUnjailed(t *testing.T) {
	err := unjailed(worker.Jail{}.Err())
	if !strings.HasPrefix(err.Error(), "--require-jail: workers cannot be jailed on this machine: no new privileges: not there; landlock: ") {
		t.Error(err)
	}
	if !strings.Contains(hintOf(err), `"hutch doctor"`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("hint %q", hintOf(err))
	}
}
