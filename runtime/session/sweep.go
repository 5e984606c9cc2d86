package session

import (
	"context"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
)

// trimPage is how many messages or events one change removes at most.
const trimPage = 500

// trim brings a thread that is larger than it may be to nine tenths of that, oldest
// first: whole turns, and the events of whole runs. The next run begins
// behind it.
func (k *Keeper) trim(th *live) error {
	if k.stateless {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), endTime)
	defer stop()
	if err := th.lock(ctx); err != nil {
		return err
	}
	defer th.unlock()
	if err := th.load(ctx); err != nil {
		return err
	}
	t, most := th.now(), k.o.Thread
	if t.Messages > int64(most.Messages) || t.Bytes > most.Bytes {
		if err := th.trimMessages(ctx, most.Messages*9/10, most.Bytes*9/10); err != nil {
			return err
		}
	}
	if t.EventBytes > k.o.EventBytes {
		return th.trimEvents(ctx, k.o.EventBytes*9/10)
	}
	return nil
}

func (th *live) now() Thread {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.thread
}

func (th *live) trimMessages(ctx context.Context, most int, bytes int64) error {
	for {
		t := th.now()
		page, err := th.k.store.ThreadMessages(ctx, th.ref, MessageQuery{Limit: trimPage})
		if err != nil {
			return err
		}
		to := turnBehind(page, t.Messages-int64(most), t.Bytes-bytes, t.Messages > int64(len(page)))
		if to == 0 {
			return nil
		}
		if err := th.trimTo(ctx, Change{TrimTo: to}); err != nil {
			return err
		}
	}
}

func (th *live) trimTo(ctx context.Context, c Change) error {
	c.Ref, c.Head, c.At = th.ref, th.head(), th.k.o.Now()
	return th.commit(ctx, c, func() {})
}

// turnBehind is the number of the message before which enough goes, 0 if none needs to:
// one of a user, so that a turn is not cut. Where nothing that stays would be little
// enough, the last turn stays alone, or, if there is more than the page, its last message.
func turnBehind(page []Stored, messages, bytes int64, more bool) int64 {
	if messages <= 0 && bytes <= 0 || len(page) < 2 {
		return 0
	}
	var last int64
	for i, s := range page {
		if i > 0 && s.Role == chat.User {
			if last = s.Number; messages <= 0 && bytes <= 0 {
				return last
			}
		}
		messages--
		bytes -= s.Bytes
	}
	if more {
		return page[len(page)-1].Number
	}
	return last
}

func (th *live) trimEvents(ctx context.Context, bytes int64) error {
	for cut := ""; ; {
		t := th.now()
		page, err := th.k.store.ThreadEvents(ctx, th.ref, EventQuery{Limit: trimPage})
		if err != nil {
			return err
		}
		to, run := runBehind(page, cut, t.EventBytes-bytes)
		if to == 0 {
			return nil
		}
		if cut = run; to == t.Head { // the last run's last event stays, so that its number does
			return nil
		}
		if err := th.trimTo(ctx, Change{TrimEventsTo: to}); err != nil {
			return err
		}
	}
}

// runBehind is the number of the event before which enough goes, and the run that the
// last one of those is of; 0 if none needs to go. cut is a run whose beginning is gone.
func runBehind(page []Kept, cut string, bytes int64) (to int64, run string) {
	for i, e := range page {
		if bytes <= 0 && e.Run != cut {
			if i == 0 {
				return 0, ""
			}
			return e.Number, cut
		}
		cut = e.Run
		bytes -= int64(len(e.Body)) + ItemOverhead
	}
	if len(page) < trimPage {
		return 0, ""
	}
	return page[len(page)-1].Number, cut
}

// sweepRows is how many rows one change removes: others wait for it.
const sweepRows = 500

// sweep is the goroutine that removes what is too old. It goes on after a panic.
func (k *Keeper) sweep() {
	tick := time.NewTicker(k.o.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-tick.C:
		}
		if err := contained(func() error { return k.Sweep(k.ctx) }); err != nil && k.ctx.Err() == nil {
			k.o.Logger.Error("threads that are too old were not removed", "err", err)
		}
	}
}

// Sweep removes threads that nobody has used for too long, and events that are too old,
// in small changes. The keeper does so by itself from time to time.
func (k *Keeper) Sweep(ctx context.Context) error {
	for {
		now := k.o.Now()
		ages := Ages{Threads: now.Add(-k.o.KeepThreads), Events: now.Add(-k.o.KeepEvents)}
		removed, gone, err := k.store.SweepThreads(ctx, ages, sweepRows)
		if err != nil {
			return err
		}
		if k.gone(gone); removed == 0 {
			return nil
		}
	}
}
