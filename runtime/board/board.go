// Package board is the embedded tracker: tasks, steps, messages, members, and the rules
// between them.
//
// Each change is one step of its [Store]: what the rules look at, what they decide, the log
// of it and the events that it causes are kept together or not at all. Events wait in the
// queue of each agent until that agent has acknowledged them, across restarts of either.
//
// A [Board] may be used from any goroutine. It starts none: [Board.Run] is the caller's, and
// does what time does: members go offline, events and answers grow old.
package board

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// Options are what an operator may change. The zero value works.
type Options struct {
	// RequireReview forbids an agent to set its own task to done.
	RequireReview bool
	// Debounce is how long a member's state must have been the same before others are told;
	// default 1 s.
	Debounce time.Duration
	// AnswersFor is how long an idempotency key is known; default 24 h.
	AnswersFor time.Duration
	// Poll is how often a waiting queue looks for what another process has put there; 0 is
	// never, which is right for a store that is one process's own.
	Poll time.Duration
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
	// Logger is told what no caller is; nil is nobody.
	Logger *slog.Logger
}

func (o Options) filled() Options {
	if o.Debounce <= 0 {
		o.Debounce = time.Second
	}
	if o.AnswersFor <= 0 {
		o.AnswersFor = 24 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Board is a tracker over a store.
type Board struct {
	store  Store
	o      Options
	ids    ids
	bells  bells
	forgot seldom
}

// New returns a board. Who calls [Board.Run] sees to it that time does what it does.
func New(store Store, o Options) *Board {
	return &Board{store: store, o: o.filled()}
}

// A Seat is the board as one caller sees it, a [tracker.Service], where the errors are said.
type Seat struct {
	b      *Board
	caller tracker.Caller
}

var _ tracker.Service = (*Seat)(nil)

// For returns the caller's seat. The caller's slug is that of a member, or every call is
// refused.
func (b *Board) For(c tracker.Caller) *Seat { return &Seat{b: b, caller: c} }

// can refuses a caller without the scope.
func (s *Seat) can(scope string) error {
	if s.caller.Has(scope) {
		return nil
	}
	return tracker.Errorf(tracker.CodeForbidden, "this needs the scope %s, which %s does not have", scope, tracker.Quote(s.caller.Slug)).
		With("scope", scope).Next("ask whoever runs the tracker for a token with it")
}

// view runs fn on one state of the board.
func (s *Seat) view(ctx context.Context, scope string, fn func(*work) error) error {
	if err := s.can(scope); err != nil {
		return err
	}
	return s.b.store.ViewBoard(ctx, func(r Reader) error {
		w := s.b.work(r, s.caller)
		if err := w.identify(); err != nil {
			return err
		}
		return fn(w)
	})
}

// update runs fn on one state of the board and keeps what it changed.
func (s *Seat) update(ctx context.Context, scope string, fn func(*work) error) error {
	if err := s.can(scope); err != nil {
		return err
	}
	return s.b.change(ctx, s.caller, func(w *work) error {
		if err := w.identify(); err != nil {
			return err
		}
		return fn(w)
	})
}

// change is an update without a look at who asks.
func (b *Board) change(ctx context.Context, c tracker.Caller, fn func(*work) error) error {
	var events []Event
	err := b.store.UpdateBoard(ctx, func(r Reader) (Change, error) {
		w := b.work(r, c)
		if err := fn(w); err != nil {
			return Change{}, err
		}
		err := w.finish()
		events = w.c.Events
		return w.c, err
	})
	if err != nil {
		return err
	}
	b.bells.ring(events)
	return nil
}

// Ensure makes a member, or leaves the one with that slug as it is. It is for whoever sets a
// tracker up: nobody need be a member yet.
func (b *Board) Ensure(ctx context.Context, m tracker.CreateMember) (out tracker.MemberOut, err error) {
	err = b.change(ctx, tracker.Caller{Slug: m.Slug}, func(w *work) error {
		have, err := w.r.Member(m.Slug)
		if errors.Is(err, ErrNotFound) {
			have, err = w.addMember(m)
		}
		if err == nil {
			out, err = w.memberOut(have)
		}
		return err
	})
	return out, err
}

// Run does what time does, once a second, until ctx ends, and returns ctx's error. What fails
// is logged and tried at the next second.
func (b *Board) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := b.sweep(ctx); err != nil && ctx.Err() == nil {
			b.o.Logger.ErrorContext(ctx, "the board could not be kept in order", "err", err)
		}
	}
}

func (b *Board) sweep(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return b.Sweep(ctx)
}
