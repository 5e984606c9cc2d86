package sessiontest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hutch-run/hutch/protocol/chat"
	"github.com/hutch-run/hutch/protocol/event"
	"github.com/hutch-run/hutch/runtime/session"
)

// Memory is a store in memory. Its zero value is empty.
type Memory struct {
	// Fail, if not nil, is asked before each commit; what it returns fails it.
	Fail func(session.Change) error
	// Committed, if not nil, is told of each commit, while others wait.
	Committed func(session.Change)

	mu      sync.Mutex
	threads map[session.Ref]*kept
	order   int64 // of runs
	jobs    []event.Job
}

var _ session.Store = (*Memory)(nil)

// kept is one thread.
type kept struct {
	session.Thread
	last     int64 // number of a message
	messages []session.Stored
	events   []keptEvent
	runs     []keptRun
}

type keptEvent struct {
	session.Kept
	at time.Time
}

type keptRun struct {
	session.Record
	order int64
}

// Jobs returns the jobs that wait, each kind and key once.
func (m *Memory) Jobs() []event.Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.jobs)
}

func notFound(ref session.Ref) error { return fmt.Errorf("thread %q: %w", ref.ID, session.ErrNotFound) }

// Thread implements [session.Store], as the methods below do.
func (m *Memory) Thread(_ context.Context, ref session.Ref) (session.Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.threads[ref]; t != nil {
		return t.Thread, nil
	}
	return session.Thread{}, notFound(ref)
}

func usedLast(a, b session.Thread) int {
	return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.Owner, a.Owner), cmp.Compare(b.ID, a.ID))
}

// Threads returns threads without their states, those used last first.
func (m *Memory) Threads(_ context.Context, q session.ThreadQuery) ([]session.Thread, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []session.Thread
	for ref, t := range m.threads {
		if (q.Owner == "" || q.Owner == ref.Owner) && (q.ID == "" || q.ID == ref.ID) {
			th := t.Thread
			th.State = nil
			all = append(all, th)
		}
	}
	slices.SortFunc(all, usedLast)
	if q.Before.ID != "" {
		all = slices.DeleteFunc(all, func(t session.Thread) bool { return usedLast(t, q.Before) <= 0 })
	}
	return all[:min(len(all), q.Limit)], nil
}

// ThreadMessages returns messages in their order.
func (m *Memory) ThreadMessages(_ context.Context, ref session.Ref, q session.MessageQuery) ([]session.Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.threads[ref]
	if t == nil {
		return nil, nil
	}
	var all []session.Stored
	var bytes int64
	if !q.Last {
		for _, s := range t.messages {
			if s.Number > q.After && len(all) < q.Limit {
				all = append(all, s)
			}
		}
		return all, nil
	}
	for _, s := range slices.Backward(t.messages) {
		if q.Before > 0 && s.Number >= q.Before {
			continue
		}
		if bytes += s.Bytes; len(all) >= q.Limit || q.MaxBytes > 0 && bytes > q.MaxBytes && len(all) > 0 {
			break
		}
		all = append(all, s)
	}
	slices.Reverse(all)
	return all, nil
}

// ThreadKnows returns the numbers of messages that have one of the ids.
func (m *Memory) ThreadKnows(_ context.Context, ref session.Ref, ids []string) (map[string]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := map[string]int64{}
	if t := m.threads[ref]; t != nil {
		for _, s := range t.messages {
			if slices.Contains(ids, s.ID) {
				known[s.ID] = s.Number
			}
		}
	}
	return known, nil
}

// ThreadEvents returns events in their order.
func (m *Memory) ThreadEvents(_ context.Context, ref session.Ref, q session.EventQuery) (all []session.Kept, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.threads[ref]; t != nil {
		for _, e := range t.events {
			if e.Number > q.After && (q.UpTo == 0 || e.Number <= q.UpTo) && len(all) < q.Limit {
				all = append(all, e.Kept)
			}
		}
	}
	return all, nil
}

// ThreadRuns returns runs, those submitted last first.
func (m *Memory) ThreadRuns(_ context.Context, ref session.Ref, id string, limit int) (all []session.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.threads[ref]; t != nil {
		for _, r := range slices.Backward(t.runs) {
			if (id == "" || id == r.ID) && len(all) < limit {
				all = append(all, r.Record)
			}
		}
	}
	return all, nil
}

// UnfinishedRuns returns runs that have not ended, in the order of their submission.
func (m *Memory) UnfinishedRuns(_ context.Context, limit int) (all []session.Unfinished, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var orders []int64
	for ref, t := range m.threads {
		for _, r := range t.runs {
			if r.Status.Ended() {
				continue
			}
			i, _ := slices.BinarySearch(orders, r.order)
			orders = slices.Insert(orders, i, r.order)
			all = slices.Insert(all, i, session.Unfinished{Ref: ref, Head: t.Head, Record: r.Record})
		}
	}
	return all[:min(len(all), limit)], nil
}

// CommitThread makes a change.
func (m *Memory) CommitThread(ctx context.Context, c session.Change, jobs ...event.Job) (session.Committed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return session.Committed{}, err
	}
	if m.Fail != nil {
		if err := m.Fail(c); err != nil {
			return session.Committed{}, err
		}
	}
	t, err := m.changed(c)
	if err != nil {
		return session.Committed{}, err
	}
	if m.threads == nil {
		m.threads = map[session.Ref]*kept{}
	}
	m.threads[c.Ref] = t
	m.addJobs(jobs)
	if m.Committed != nil {
		m.Committed(c)
	}
	done := session.Committed{Thread: t.Thread}
	for _, s := range t.messages[len(t.messages)-len(c.Messages):] {
		done.Numbers = append(done.Numbers, s.Number)
	}
	if c.Head == 0 && c.MostThreads > 0 {
		done.Gone = m.makeRoom(c)
	}
	return done, nil
}

func (m *Memory) addJobs(jobs []event.Job) {
	for _, j := range jobs {
		if !slices.ContainsFunc(m.jobs, func(o event.Job) bool { return o.Kind == j.Kind && o.Key == j.Key }) {
			m.jobs = append(m.jobs, j)
		}
	}
}

// changed is the thread as it is after the change.
func (m *Memory) changed(c session.Change) (*kept, error) {
	old := m.threads[c.Ref]
	if (old == nil) != (c.Head == 0) || old != nil && old.Head != c.Head {
		return nil, session.ErrConflict
	}
	t := &kept{Thread: session.Thread{Ref: c.Ref, Agent: c.Agent, Created: c.At.Truncate(time.Millisecond).UTC()}}
	if old != nil {
		*t = *old
		t.messages, t.events, t.runs = slices.Clone(old.messages), slices.Clone(old.events), slices.Clone(old.runs)
	}
	if t.Title == "" {
		t.Title = c.Title
	}
	if c.Advances() {
		t.Updated = c.At.Truncate(time.Millisecond).UTC()
	}
	if c.State != nil {
		t.State = slices.Clone(c.State)
	}
	if c.Waiting != nil {
		t.Waiting = *c.Waiting
	}
	t.drop(c)
	if err := t.addMessages(c.Messages); err != nil {
		return nil, err
	}
	t.addEvents(c)
	t.Head = c.NextHead()
	return t, m.setRuns(t, c)
}

func (t *kept) drop(c session.Change) {
	t.messages = slices.DeleteFunc(t.messages, func(s session.Stored) bool {
		goes := c.DropFrom > 0 && s.Number >= c.DropFrom || s.Number < c.TrimTo
		if goes {
			t.Messages--
			t.Bytes -= s.Bytes
		}
		return goes
	})
	t.events = slices.DeleteFunc(t.events, func(e keptEvent) bool {
		goes := e.Number < c.TrimEventsTo
		if goes {
			t.EventBytes -= e.size()
		}
		return goes
	})
}

func (e keptEvent) size() int64 { return int64(len(e.Body)) + session.ItemOverhead }

func (t *kept) addMessages(messages []chat.Message) error {
	for _, m := range messages {
		if slices.ContainsFunc(t.messages, func(s session.Stored) bool { return s.ID == m.ID }) {
			return fmt.Errorf("%w: there is a message %q", session.ErrInvalid, m.ID)
		}
		body, err := json.Marshal(m)
		if err != nil {
			return err
		}
		var copied chat.Message
		if err := json.Unmarshal(body, &copied); err != nil {
			return err
		}
		t.last++
		s := session.Stored{Number: t.last, Bytes: int64(len(body)) + session.ItemOverhead, Message: copied}
		t.messages = append(t.messages, s)
		t.Messages++
		t.Bytes += s.Bytes
	}
	return nil
}

func (t *kept) addEvents(c session.Change) {
	for i, e := range c.Events {
		e.Number = c.Head + int64(i) + 1
		one := keptEvent{e, c.At}
		t.events = append(t.events, one)
		t.EventBytes += one.size()
	}
}

func (m *Memory) setRuns(t *kept, c session.Change) error {
	for _, r := range c.New {
		if t.run(r.ID) >= 0 {
			return session.ErrDuplicateRun
		}
		m.order++
		t.runs = append(t.runs, keptRun{toMillis(r), m.order})
	}
	for _, r := range c.Runs {
		i := t.run(r.ID)
		if i < 0 {
			return fmt.Errorf("run %q: %w", r.ID, session.ErrNotFound)
		}
		t.runs[i].Record = toMillis(r)
	}
	return nil
}

func toMillis(r session.Record) session.Record {
	for _, t := range []*time.Time{&r.Created, &r.Started, &r.Ended} {
		if !t.IsZero() {
			*t = t.Truncate(time.Millisecond).UTC()
		}
	}
	r.Usage = slices.Clone(r.Usage)
	return r
}

func (t *kept) run(id string) int {
	return slices.IndexFunc(t.runs, func(r keptRun) bool { return r.ID == id })
}

func (t *kept) busy() bool {
	return slices.ContainsFunc(t.runs, func(r keptRun) bool { return !r.Status.Ended() })
}

// makeRoom removes the threads that were used least lately.
func (m *Memory) makeRoom(c session.Change) (gone []session.Ref) {
	var own []session.Thread
	for ref, t := range m.threads {
		if ref.Owner == c.Owner {
			own = append(own, t.Thread)
		}
	}
	slices.SortFunc(own, usedLast)
	for over := len(own) - c.MostThreads; over > 0 && len(own) > 0; own = own[:len(own)-1] {
		if ref := own[len(own)-1].Ref; ref != c.Ref && !m.threads[ref].busy() {
			delete(m.threads, ref)
			gone = append(gone, ref)
			over--
		}
	}
	return gone
}

// DeleteThread removes a thread.
func (m *Memory) DeleteThread(_ context.Context, ref session.Ref, jobs ...event.Job) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.threads[ref] == nil {
		return notFound(ref)
	}
	delete(m.threads, ref)
	m.addJobs(jobs)
	return nil
}

// SweepThreads removes what is too old.
func (m *Memory) SweepThreads(_ context.Context, before session.Ages, limit int) (removed int64, gone []session.Ref, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ref, t := range m.threads {
		if t.Updated.Before(before.Threads) && !t.busy() && removed < int64(limit) {
			delete(m.threads, ref)
			gone = append(gone, ref)
			removed++
		}
	}
	for _, t := range m.threads {
		t.events = slices.DeleteFunc(t.events, func(e keptEvent) bool {
			i := t.run(e.Run)
			goes := removed < int64(limit) && i >= 0 && t.runs[i].Status.Ended() && t.runs[i].Ended.Before(before.Events)
			if goes {
				t.EventBytes -= e.size()
				removed++
			}
			return goes
		})
		t.runs = slices.DeleteFunc(t.runs, func(r keptRun) bool {
			goes := removed < int64(limit) && r.Status.Ended() && r.Ended.Before(before.Threads) && !t.has(r.ID)
			if goes {
				removed++
			}
			return goes
		})
	}
	return removed, gone, nil
}

// has reports whether the thread has events of a run.
func (t *kept) has(run string) bool {
	return slices.ContainsFunc(t.events, func(e keptEvent) bool { return e.Run == run })
}
