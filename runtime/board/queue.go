package board

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// dropAtOnce is how many of the oldest events go when a queue is full, so that a full queue
// is not trimmed, and its agent told so, at every event.
const dropAtOnce = tracker.QueueMost / 10

// post gives every event its places in queues.
func (w *work) post() error {
	all := map[string]bool{}
	for _, n := range w.news {
		maps.Copy(all, n.to)
	}
	if len(all) == 0 {
		return nil
	}
	if err := w.learn(all); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(slug string, _ bool) bool { return !w.hasQueue(slug) })
	if err := w.learnQueues(slices.Sorted(maps.Keys(all))...); err != nil {
		return err
	}
	for _, n := range w.news {
		if err := w.postOne(n); err != nil {
			return err
		}
	}
	return nil
}

// learnQueues reads queues that are not known yet.
func (w *work) learnQueues(slugs ...string) error {
	slugs = slices.DeleteFunc(slugs, func(slug string) bool { _, ok := w.queues[slug]; return ok })
	if len(slugs) == 0 {
		return nil
	}
	known, err := w.r.Queues(slugs)
	for _, slug := range slugs {
		w.queues[slug] = known[slug]
	}
	return err
}

// hasQueue: agents have one. People look at the board.
func (w *work) hasQueue(slug string) bool {
	m, ok := w.members[slug]
	return ok && m.Kind == tracker.Agent && !m.Archived
}

func (w *work) postOne(n news) error {
	data, err := json.Marshal(n.data)
	if err != nil {
		return err
	}
	e := Event{ID: w.id(), Name: n.name, Data: data, At: w.now}
	for _, slug := range slices.Sorted(maps.Keys(n.to)) {
		if !w.hasQueue(slug) {
			continue
		}
		if w.queues[slug].Count >= tracker.QueueMost {
			if err := w.makeRoom(slug); err != nil {
				return err
			}
		}
		q := w.queues[slug]
		q.Last++
		q.Count++
		w.queues[slug] = q
		e.Places = append(e.Places, Place{Member: slug, Number: q.Last})
	}
	if len(e.Places) > 0 {
		w.c.Events = append(w.c.Events, e)
	}
	return nil
}

// makeRoom drops the oldest events of a full queue, and says so in it.
func (w *work) makeRoom(slug string) error {
	oldest, err := w.r.Deliveries(DeliveryQuery{Member: slug, Any: true, Limit: dropAtOnce})
	if err != nil {
		return err
	}
	return w.drop(slug, oldest, "overflow")
}

// drop takes events from a queue and puts a resync there.
func (w *work) drop(slug string, gone []Delivery, reason string) error {
	q := w.queues[slug]
	for _, d := range gone {
		w.c.Left = append(w.c.Left, d.Place)
	}
	data, err := json.Marshal(tracker.Resync{Dropped: int64(len(gone)), Reason: reason})
	if err != nil {
		return err
	}
	q.Last++
	q.Count += 1 - len(gone)
	w.queues[slug] = q
	w.c.Events = append(w.c.Events, Event{
		ID: w.id(), Name: tracker.EventResync, Data: data, At: w.now, Places: []Place{{Member: slug, Number: q.Last}},
	})
	return nil
}

// bells wake those who wait for events in this process.
type bells struct {
	mu  sync.Mutex
	all map[string]chan struct{} // by member; closed when it rings
}

func (b *bells) of(member string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]chan struct{}{}
	}
	if b.all[member] == nil {
		b.all[member] = make(chan struct{})
	}
	return b.all[member]
}

func (b *bells) ring(events []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		for _, p := range e.Places {
			if bell := b.all[p.Member]; bell != nil {
				close(bell)
				delete(b.all, p.Member)
			}
		}
	}
}

// listens refuses a caller whom a queue would show what it may not see.
func (s *Seat) listens() error {
	for _, scope := range []string{tracker.TasksRead, tracker.MessagesRead, tracker.MembersRead} {
		if err := s.can(scope); err != nil {
			return err
		}
	}
	return nil
}

// Events implements [tracker.Queue], as the methods below do.
func (s *Seat) Events(ctx context.Context, after int64, limit int) (out []tracker.Event, err error) {
	if err := s.listens(); err != nil {
		return nil, err
	}
	err = s.view(ctx, tracker.TasksRead, func(w *work) error {
		all, err := w.r.Deliveries(DeliveryQuery{Member: w.me.Slug, After: after, Limit: most(limit)})
		out = events(all)
		return err
	})
	return out, err
}

func events(all []Delivery) []tracker.Event {
	out := make([]tracker.Event, len(all))
	for i, d := range all {
		out[i] = tracker.Event{ID: d.ID, Name: d.Name, Data: d.Data, Seq: d.Number, At: d.At, Tries: d.Tries, Parked: d.Parked}
	}
	return out
}

// Take reads and counts at once.
func (s *Seat) Take(ctx context.Context, after int64, limit int) (out []tracker.Event, err error) {
	if err := s.listens(); err != nil {
		return nil, err
	}
	err = s.update(ctx, tracker.TasksRead, func(w *work) error {
		all, err := w.r.Deliveries(DeliveryQuery{Member: w.me.Slug, After: after, Limit: most(limit)})
		out = events(all)
		for i, d := range all {
			out[i].Parked = w.tried(d)
		}
		return err
	})
	return out, err
}

// Sent counts, and parks.
func (s *Seat) Sent(ctx context.Context, ids []string) (parked []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.update(ctx, tracker.TasksRead, func(w *work) error {
		parked = nil
		all, err := w.r.Deliveries(DeliveryQuery{Member: w.me.Slug, IDs: ids})
		for _, d := range all {
			if w.tried(d) {
				parked = append(parked, d.ID)
			}
		}
		return err
	})
	return parked, err
}

// tried counts that an event is sent, or parks it.
func (w *work) tried(d Delivery) (parked bool) {
	if d.Parked = d.Tries >= tracker.MaxTries; !d.Parked {
		d.Tries++
	}
	w.c.Tried = append(w.c.Tried, d)
	return d.Parked
}

// Ack takes events away.
func (s *Seat) Ack(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.update(ctx, tracker.TasksRead, func(w *work) error {
		all, err := w.r.Deliveries(DeliveryQuery{Member: w.me.Slug, IDs: ids, Any: true})
		for _, d := range all {
			w.c.Left = append(w.c.Left, d.Place)
		}
		return err
	})
}

// Wait waits for the caller's queue.
func (s *Seat) Wait(ctx context.Context, after int64) error {
	if err := s.listens(); err != nil {
		return err
	}
	for {
		bell := s.b.bells.of(s.caller.Slug)
		var q Queue
		err := s.view(ctx, tracker.TasksRead, func(w *work) error {
			queues, err := w.r.Queues([]string{w.me.Slug})
			q = queues[w.me.Slug]
			return err
		})
		if err != nil || q.Last > after {
			return err
		}
		if rang, err := s.rest(ctx, bell); rang || err != nil {
			return err
		}
	}
}

// rest waits for the bell, or for the time to look at what others have rung.
func (s *Seat) rest(ctx context.Context, bell <-chan struct{}) (rang bool, err error) {
	var poll <-chan time.Time
	if s.b.o.Poll > 0 {
		t := time.NewTimer(s.b.o.Poll)
		defer t.Stop()
		poll = t.C
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-bell:
		return true, nil
	case <-poll:
		return false, nil
	}
}

// Parked lists what was given up.
func (s *Seat) Parked(ctx context.Context, member string, p tracker.Paging) (page tracker.Page[tracker.Event], err error) {
	err = s.view(ctx, tracker.TasksRead, func(w *work) error {
		m, err := w.ownOrAdmin(member)
		if err != nil {
			return err
		}
		after, err := cursorNumber(p)
		if err != nil {
			return err
		}
		limit := most(p.Limit)
		all, err := w.r.Deliveries(DeliveryQuery{Member: m.Slug, Parked: true, After: after, Limit: limit + 1})
		page = pageOf(events(all), limit, func(e tracker.Event) string { return numberCursor(e.Seq) })
		return err
	})
	return page, err
}

// Redrive gives an event another life.
func (s *Seat) Redrive(ctx context.Context, member, id string) error {
	slug := ""
	err := s.update(ctx, tracker.TasksRead, func(w *work) error {
		m, err := w.ownOrAdmin(member)
		if err != nil {
			return err
		}
		all, err := w.r.Deliveries(DeliveryQuery{Member: m.Slug, IDs: []string{id}, Parked: true})
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return notFound("parked event", id)
		}
		slug = m.Slug
		all[0].Tries, all[0].Parked = 0, false
		w.c.Tried = append(w.c.Tried, all[0])
		return nil
	})
	if err == nil {
		s.b.bells.ring([]Event{{Places: []Place{{Member: slug}}}})
	}
	return err
}

func (w *work) ownOrAdmin(member string) (Member, error) {
	m, err := w.findMember(member)
	if err == nil && m.Slug != w.me.Slug && !w.caller.Has(tracker.Admin) {
		err = tracker.Errorf(tracker.CodeForbidden, "this needs the scope %s for the events of others", tracker.Admin)
	}
	return m, err
}
