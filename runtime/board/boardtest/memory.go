// Package boardtest has what every store of a board must do, and one in memory.
package boardtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hutch-run/hutch/runtime/board"
)

// Memory is a store in memory. Its zero value is empty.
type Memory struct {
	// Fail, if not nil, is asked before each change is kept; what it returns fails it.
	Fail func(board.Change) error
	// Again has each function of a change run twice, as one whose first state was outdated,
	// and each of a view.
	Again bool

	mu sync.RWMutex
	s  state
}

var _ board.Store = (*Memory)(nil)

type state struct {
	projects    map[string]board.Project // by id, as what follows
	members     map[string]board.Member
	chats       map[string]board.Chat
	tasks       map[string]board.Task
	steps       map[string]board.Step
	messages    map[string]board.Message
	attachments map[string]board.Attachment
	blobs       map[string][]byte
	activity    map[string]board.Activity
	answers     map[[2]string]board.Answer
	deliveries  map[board.Place]board.Delivery
	last        map[string]int64 // by member
}

// ViewBoard implements [board.Store].
func (m *Memory) ViewBoard(ctx context.Context, fn func(board.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.Again {
		_ = fn(&m.s) // what came of it nobody sees
	}
	return fn(&m.s)
}

// UpdateBoard implements [board.Store].
func (m *Memory) UpdateBoard(ctx context.Context, fn func(board.Reader) (board.Change, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Again {
		_, _ = fn(&m.s) // what came of it nobody sees
	}
	c, err := fn(&m.s)
	if err != nil {
		return err
	}
	if m.Fail != nil {
		if err := m.Fail(c); err != nil {
			return err
		}
	}
	m.s.apply(c)
	return nil
}

// put keeps clones of values.
func put[K comparable, V any](all *map[K]V, values []V, key func(V) K, clone func(V) V) {
	if *all == nil {
		*all = map[K]V{}
	}
	for _, v := range values {
		(*all)[key(v)] = clone(v)
	}
}

func same[V any](v V) V { return v }

func cloneMember(m board.Member) board.Member {
	m.Capabilities, m.Projects, m.CurrentTasks = slices.Clone(m.Capabilities), slices.Clone(m.Projects), slices.Clone(m.CurrentTasks)
	return m
}

func cloneChat(c board.Chat) board.Chat {
	c.Members = slices.Clone(c.Members)
	return c
}

func cloneTask(t board.Task) board.Task {
	t.Labels, t.Watchers = slices.Clone(t.Labels), slices.Clone(t.Watchers)
	t.Blockers, t.RejectedBy = slices.Clone(t.Blockers), slices.Clone(t.RejectedBy)
	return t
}

func cloneMessage(m board.Message) board.Message {
	m.Mentions = slices.Clone(m.Mentions)
	return m
}

func (s *state) apply(c board.Change) {
	put(&s.projects, c.Projects, func(p board.Project) string { return p.ID }, same)
	put(&s.members, c.Members, func(m board.Member) string { return m.ID }, cloneMember)
	put(&s.chats, c.Chats, func(h board.Chat) string { return h.ID }, cloneChat)
	put(&s.tasks, c.Tasks, func(t board.Task) string { return t.ID }, cloneTask)
	put(&s.steps, c.Steps, func(p board.Step) string { return p.ID }, same)
	put(&s.messages, c.Messages, func(m board.Message) string { return m.ID }, cloneMessage)
	put(&s.attachments, c.Attachments, func(a board.Attachment) string { return a.ID }, same)
	put(&s.activity, c.Activity, func(a board.Activity) string { return a.ID }, same)
	put(&s.answers, c.Answers, func(a board.Answer) [2]string { return [2]string{a.Member, a.Key} }, same)
	if s.blobs == nil {
		s.blobs = map[string][]byte{}
	}
	for _, b := range c.Blobs {
		s.blobs[b.Digest] = slices.Clone(b.Bytes)
	}
	s.queue(c)
	for _, id := range c.GoneSteps {
		delete(s.steps, id)
	}
	for _, id := range c.GoneTasks {
		s.remove(id)
	}
	maps.DeleteFunc(s.answers, func(_ [2]string, a board.Answer) bool { return a.At.Before(c.AnswersBefore) })
}

func (s *state) queue(c board.Change) {
	if s.deliveries == nil {
		s.deliveries, s.last = map[board.Place]board.Delivery{}, map[string]int64{}
	}
	for _, e := range c.Events {
		for _, p := range e.Places {
			s.deliveries[p] = board.Delivery{Place: p, ID: e.ID, Name: e.Name, Data: slices.Clone(e.Data), At: e.At}
			s.last[p.Member] = max(s.last[p.Member], p.Number)
		}
	}
	for _, t := range c.Tried {
		if d, ok := s.deliveries[t.Place]; ok {
			d.Tries, d.Parked = t.Tries, t.Parked
			s.deliveries[t.Place] = d
		}
	}
	for _, p := range c.Left {
		delete(s.deliveries, p)
	}
}

// remove takes a task away with what belongs to it.
func (s *state) remove(task string) {
	delete(s.tasks, task)
	maps.DeleteFunc(s.steps, func(_ string, p board.Step) bool { return p.Task == task })
	gone := map[string]bool{}
	maps.DeleteFunc(s.messages, func(id string, m board.Message) bool {
		gone[id] = m.Task == task
		return gone[id]
	})
	maps.DeleteFunc(s.attachments, func(_ string, a board.Attachment) bool { return a.Task == task || gone[a.Message] })
	used := map[string]bool{}
	for _, a := range s.attachments {
		used[a.Digest] = true
	}
	maps.DeleteFunc(s.blobs, func(digest string, _ []byte) bool { return !used[digest] })
}

// list returns clones of those that fit, in order, at most limit if that is not 0.
func list[K comparable, V any](all map[K]V, fits func(V) bool, order func(a, b V) int, limit int, clone func(V) V) []V {
	var out []V
	for _, v := range all {
		if fits(v) {
			out = append(out, clone(v))
		}
	}
	slices.SortFunc(out, order)
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	return out
}

// find returns the one that fits.
func find[K comparable, V any](all map[K]V, fits func(V) bool, clone func(V) V) (V, error) {
	for _, v := range all {
		if fits(v) {
			return clone(v), nil
		}
	}
	var none V
	return none, board.ErrNotFound
}

// is reports whether a condition that is not empty holds.
func is[T comparable](want, got T) bool {
	var none T
	return want == none || want == got
}

func (s *state) Project(ref string) (board.Project, error) {
	return find(s.projects, func(p board.Project) bool { return p.ID == ref || p.Slug == ref }, same)
}

func (s *state) Projects(q board.ProjectQuery) ([]board.Project, error) {
	return list(s.projects, func(p board.Project) bool {
		return (q.Archived || !p.Archived) && is(q.Key, p.Key) && p.Slug > q.After
	}, func(a, b board.Project) int { return cmp.Compare(a.Slug, b.Slug) }, q.Limit, same), nil
}

func (s *state) Member(ref string) (board.Member, error) {
	return find(s.members, func(m board.Member) bool { return m.ID == ref || m.Slug == ref }, cloneMember)
}

func (s *state) Members(q board.MemberQuery) ([]board.Member, error) {
	return list(s.members, func(m board.Member) bool {
		return (q.Slugs == nil || slices.Contains(q.Slugs, m.Slug)) && (q.Archived || !m.Archived) && m.Slug > q.After &&
			(q.Project == "" || len(m.Projects) == 0 || slices.Contains(m.Projects, q.Project)) && is(q.Kind, m.Kind) &&
			(q.Unseen.IsZero() || m.Online && m.Seen.Before(q.Unseen)) &&
			(q.Announce.IsZero() || m.Announce && m.Changed.Before(q.Announce))
	}, func(a, b board.Member) int { return cmp.Compare(a.Slug, b.Slug) }, q.Limit, cloneMember), nil
}

func (s *state) Chat(ref string) (board.Chat, error) {
	return find(s.chats, func(c board.Chat) bool { return c.ID == ref || c.Slug == ref }, cloneChat)
}

func (s *state) Chats(q board.ChatQuery) ([]board.Chat, error) {
	return list(s.chats, func(c board.Chat) bool {
		return (q.Archived || !c.Archived) && is(q.Project, c.Project) && c.Slug > q.After &&
			(q.Member == "" || len(c.Members) == 0 || slices.Contains(c.Members, q.Member))
	}, func(a, b board.Chat) int { return cmp.Compare(a.Slug, b.Slug) }, q.Limit, cloneChat), nil
}

func (s *state) Task(ref string) (board.Task, error) {
	return find(s.tasks, func(t board.Task) bool { return t.ID == ref || t.Key == ref }, cloneTask)
}

func (s *state) Tasks(q board.TaskQuery) ([]board.Task, error) {
	return list(s.tasks, func(t board.Task) bool {
		return (q.IDs == nil || slices.Contains(q.IDs, t.ID)) && (q.Before == "" || t.ID < q.Before) &&
			is(q.Project, t.Project) && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, t.Status)) &&
			is(q.Assignee, t.Assignee) && (!q.Unassigned || t.Assignee == "") && hasAll(t.Labels, q.Labels) &&
			is(q.Type, t.Type) && is(q.Priority, t.Priority) && is(q.Parent, t.Parent) && is(q.Creator, t.Creator) &&
			(q.Watcher == "" || slices.Contains(t.Watchers, q.Watcher)) &&
			(q.Blocker == "" || slices.Contains(t.Blockers, q.Blocker)) && is(q.Number, t.Number) &&
			strings.Contains(t.Search, q.Text) && (!q.Unblocked || t.OpenBlockers == 0)
	}, func(a, b board.Task) int { return cmp.Compare(b.ID, a.ID) }, q.Limit, cloneTask), nil
}

func hasAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}

func (s *state) Steps(task string) ([]board.Step, error) {
	return list(s.steps, func(p board.Step) bool { return p.Task == task },
		func(a, b board.Step) int { return cmp.Compare(a.Position, b.Position) }, 0, same), nil
}

func (s *state) Messages(q board.MessageQuery) ([]board.Message, error) {
	return list(s.messages, func(m board.Message) bool {
		return is(q.ID, m.ID) && is(q.Chat, m.Chat) && is(q.Task, m.Task) && is(q.Parent, m.Parent) &&
			(q.Before == "" || m.ID < q.Before)
	}, func(a, b board.Message) int { return cmp.Compare(b.ID, a.ID) }, q.Limit, cloneMessage), nil
}

func (s *state) Attachments(q board.AttachmentQuery) ([]board.Attachment, error) {
	return list(s.attachments, func(a board.Attachment) bool {
		return is(q.ID, a.ID) && is(q.Task, a.Task) && is(q.Project, a.Project) &&
			(q.Messages == nil || slices.Contains(q.Messages, a.Message)) && a.ID > q.After
	}, func(a, b board.Attachment) int { return cmp.Compare(a.ID, b.ID) }, q.Limit, same), nil
}

func (s *state) Blob(digest string) ([]byte, error) {
	if b, ok := s.blobs[digest]; ok {
		return slices.Clone(b), nil
	}
	return nil, board.ErrNotFound
}

func (s *state) Activity(q board.ActivityQuery) ([]board.Activity, error) {
	return list(s.activity, func(a board.Activity) bool {
		return a.Task == q.Task && (q.Before == "" || a.ID < q.Before)
	}, func(a, b board.Activity) int { return cmp.Compare(b.ID, a.ID) }, q.Limit, same), nil
}

func (s *state) Queues(members []string) (map[string]board.Queue, error) {
	out := map[string]board.Queue{}
	for _, m := range members {
		if last := s.last[m]; last > 0 {
			out[m] = board.Queue{Last: last}
		}
	}
	for p := range s.deliveries {
		if q, ok := out[p.Member]; ok {
			q.Count++
			out[p.Member] = q
		}
	}
	return out, nil
}

func (s *state) Deliveries(q board.DeliveryQuery) ([]board.Delivery, error) {
	return list(s.deliveries, func(d board.Delivery) bool {
		return is(q.Member, d.Member) && (q.IDs == nil || slices.Contains(q.IDs, d.ID)) && (q.Any || d.Parked == q.Parked) &&
			(q.Older.IsZero() || d.At.Before(q.Older)) && d.Number > q.After && (q.UpTo == 0 || d.Number <= q.UpTo)
	}, func(a, b board.Delivery) int {
		return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.Number, b.Number))
	}, q.Limit, same), nil
}

func (s *state) Answer(member, key string) (board.Answer, error) {
	if a, ok := s.answers[[2]string{member, key}]; ok {
		return a, nil
	}
	return board.Answer{}, board.ErrNotFound
}
