package store

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

// sweepRows is how many rows one change removes: others wait for it.
const sweepRows = 500

// counterDays is how long a day's counters are kept, for those who ask what was
// used lately.
const counterDays = 32

// Sweep removes values that have expired and counters of long ago, in small
// changes, and returns how many rows went. The DB does so by itself from time to
// time; nothing that has expired is given out before.
func (d *DB) Sweep(ctx context.Context) (removed int64, err error) {
	for {
		var n int64
		err := d.Update(ctx, func(tx Tx) (err error) {
			n, err = tx.sweep(sweepRows)
			return err
		})
		if removed += n; err != nil || n == 0 {
			return removed, err
		}
	}
}

func (x Tx) sweep(most int64) (removed int64, err error) {
	values, err := x.sweepKV("", most)
	if err != nil {
		return 0, err
	}
	const old = `delete from counter where id in (select id from counter where day < $1 limit $2)`
	counters, err := x.t.exec(old, dayOf(x.t.now)-counterDays, most)
	return values + counters, err
}

// A sweeper sweeps every so often until it is closed.
type sweeper struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func startSweeper(every time.Duration, logger *slog.Logger, sweep func(context.Context) (int64, error)) *sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sweeper{cancel: cancel, ended: make(chan struct{})}
	go s.loop(ctx, every, logger, sweep)
	return s
}

func (s *sweeper) loop(ctx context.Context, every time.Duration, logger *slog.Logger, sweep func(context.Context) (int64, error)) {
	defer close(s.ended)
	defer func() {
		if p := recover(); p != nil {
			logger.Error("the store's sweeper panicked and sweeps no more", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := sweep(ctx); err != nil && ctx.Err() == nil {
			logger.Error("what has expired in the store was not removed", "err", err)
		}
	}
}

func (s *sweeper) close() {
	s.cancel()
	<-s.ended
}
