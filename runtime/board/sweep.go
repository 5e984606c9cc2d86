package board

import (
	"context"
	"errors"
	"slices"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// sweepMost is how many members or events one sweep looks at, and how often it tells one
// member of another, so that none takes long.
const sweepMost = 1000

// Sweep does once what time does: members that were not heard of for [tracker.OfflineAfter] are
// offline, others are told of changes that have settled, and events older than
// [tracker.QueueAge] and answers go, at most a thousand of each.
func (b *Board) Sweep(ctx context.Context) error {
	idle := true
	err := b.store.ViewBoard(ctx, func(r Reader) error {
		w := b.work(r, tracker.Caller{})
		if err := w.sweep(); err != nil {
			return err
		}
		idle = len(w.news) == 0 && w.c.Empty()
		return nil
	})
	if err == nil && !idle {
		err = b.change(ctx, tracker.Caller{}, (*work).sweep)
	}
	return errors.Join(err, b.forgetAnswers(ctx))
}

func (w *work) sweep() error {
	if err := w.presence(); err != nil {
		return err
	}
	return w.age()
}

// presence makes offline who was not heard of, and tells of members whose state has settled.
func (w *work) presence() error {
	silent, err := w.r.Members(MemberQuery{Archived: true, Unseen: w.now.Add(-tracker.OfflineAfter), Limit: sweepMost})
	if err != nil {
		return err
	}
	for _, m := range silent {
		w.leave(m)
	}
	settled, err := w.r.Members(MemberQuery{Announce: w.now.Add(-w.b.o.Debounce), Limit: sweepMost})
	if err != nil || len(settled) == 0 {
		return err
	}
	audience, err := w.online()
	if err != nil {
		return err
	}
	// The others have their turn in later sweeps, whoever has waited longest first.
	slices.SortStableFunc(settled, func(a, b Member) int { return a.Changed.Compare(b.Changed) })
	settled = settled[:min(len(settled), max(1, sweepMost/max(1, len(audience))))]
	for _, m := range settled {
		if now := w.members[m.Slug]; now.ID != "" && now.Changed.After(m.Changed) {
			continue // it has just gone offline, and that settles later
		}
		m.Announce = false
		w.setMember(m)
		w.tell(tracker.EventAgentStatus, tracker.AgentStatus{
			AgentSlug: m.Slug, Status: m.Status, Activity: activity(m), Presence: presence(m), CurrentTasks: list(m.CurrentTasks),
		}, without(audience, m.Slug)...)
	}
	return nil
}

// online are those who are, and who are told of others: who was away asks how it is now, and
// would find a queue full of how it was.
func (w *work) online() (slugs []string, err error) {
	all, err := w.r.Members(MemberQuery{Unseen: w.now.Add(tracker.OfflineAfter)})
	for _, m := range all {
		if now, changed := w.members[m.Slug]; !changed || now.Online {
			w.members[m.Slug] = m
			slugs = append(slugs, m.Slug)
		}
	}
	return slugs, err
}

// age drops events that nobody wanted for too long.
func (w *work) age() error {
	old, err := w.r.Deliveries(DeliveryQuery{Any: true, Older: w.now.Add(-tracker.QueueAge), Limit: sweepMost})
	if err != nil {
		return err
	}
	for len(old) > 0 {
		slug := old[0].Member
		n := 1
		for n < len(old) && old[n].Member == slug {
			n++
		}
		if err := w.expire(slug, old[:n]); err != nil {
			return err
		}
		old = old[n:]
	}
	return nil
}

// expire drops events of one queue. Where only a resync has grown old there is nothing new to
// say.
func (w *work) expire(slug string, old []Delivery) error {
	if len(old) == 1 && old[0].Name == tracker.EventResync {
		w.c.Left = append(w.c.Left, old[0].Place)
		return nil
	}
	if err := w.learnQueues(slug); err != nil {
		return err
	}
	return w.drop(slug, old, "age")
}

// forgetAnswers forgets idempotency keys, once in a while.
func (b *Board) forgetAnswers(ctx context.Context) error {
	now := b.o.Now()
	if !b.forgot.due(now) {
		return nil
	}
	return b.store.UpdateBoard(ctx, func(Reader) (Change, error) {
		return Change{AnswersBefore: now.Add(-b.o.AnswersFor)}, nil
	})
}
