package board

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// work is one look at a board, and the change that grows from it. It is used by one goroutine,
// in one function that a store runs.
type work struct {
	b      *Board
	r      Reader
	caller tracker.Caller
	me     Member
	now    time.Time
	c      Change

	members  map[string]Member // by slug, as they are to be
	projects map[string]Project
	tasks    map[string]*Task // those that change
	before   map[string]Task  // as they were
	fresh    string           // the one that is new
	queues   map[string]Queue // as they are to be
	news     []news
}

// news is an event that is to be.
type news struct {
	name string
	data any
	to   map[string]bool
}

func (b *Board) work(r Reader, c tracker.Caller) *work {
	return &work{
		b: b, r: r, caller: c, now: b.o.Now().UTC().Truncate(time.Millisecond),
		members: map[string]Member{}, projects: map[string]Project{}, tasks: map[string]*Task{}, before: map[string]Task{}, queues: map[string]Queue{},
	}
}

func (w *work) id() string { return w.b.ids.next(w.now) }

// identify finds who asks.
func (w *work) identify() error {
	me, err := w.member(w.caller.Slug)
	switch {
	case errors.Is(err, ErrNotFound):
		return tracker.Errorf(tracker.CodeForbidden, "%s is not a member of this tracker", tracker.Quote(w.caller.Slug)).
			Next("ask whoever runs it to make the member, or use the token of one")
	case err != nil:
		return err
	case me.Archived:
		return tracker.Errorf(tracker.CodeForbidden, "the member %s is archived", tracker.Quote(me.Slug))
	}
	w.me = me
	return nil
}

// member returns the member with that slug, or [ErrNotFound].
func (w *work) member(slug string) (Member, error) {
	if m, ok := w.members[slug]; ok {
		return m, nil
	}
	m, err := w.r.Member(slug)
	if err == nil && m.Slug != slug {
		err = ErrNotFound // an id, where only slugs are meant
	}
	if err == nil {
		w.members[slug] = m
	}
	return m, err
}

// learn reads members that will be asked for, at once.
func (w *work) learn(slugs map[string]bool) error {
	var unknown []string
	for slug := range slugs {
		if _, ok := w.members[slug]; !ok && slug != "" {
			unknown = append(unknown, slug)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	all, err := w.r.Members(MemberQuery{Slugs: unknown, Archived: true})
	for _, m := range all {
		w.members[m.Slug] = m
	}
	return err
}

// ref is a member in short; nobody has left a name only.
func (w *work) ref(slug string) (tracker.MemberRef, error) {
	m, err := w.member(slug)
	if errors.Is(err, ErrNotFound) {
		return tracker.MemberRef{Slug: slug, Kind: tracker.Human}, nil
	}
	return tracker.MemberRef{Slug: m.Slug, Kind: m.Kind, Name: m.Name}, err
}

func (w *work) myself() tracker.MemberRef {
	return tracker.MemberRef{Slug: w.me.Slug, Kind: w.me.Kind, Name: w.me.Name}
}

// setMember changes a member.
func (w *work) setMember(m Member) { w.members[m.Slug] = m; w.c.Members = append(w.c.Members, m) }

// edit returns the task that is to change. Whoever changes it more than once changes one.
func (w *work) edit(t Task) *Task {
	if have := w.tasks[t.ID]; have != nil {
		return have
	}
	w.before[t.ID] = cloned(t)
	w.tasks[t.ID] = &t
	return &t
}

func cloned(t Task) Task {
	t.Labels, t.Watchers = slices.Clone(t.Labels), slices.Clone(t.Watchers)
	t.Blockers, t.RejectedBy = slices.Clone(t.Blockers), slices.Clone(t.RejectedBy)
	return t
}

// log writes down what happened to a task.
func (w *work) log(task, action string, changes map[string]tracker.Change) error {
	a := Activity{ID: w.id(), Task: task, Actor: w.me.Slug, Action: action, At: w.now}
	if len(changes) > 0 {
		raw, err := json.Marshal(changes)
		if err != nil {
			return err
		}
		a.Changes = raw
	}
	w.c.Activity = append(w.c.Activity, a)
	return nil
}

// tell says something to members: those of them who are agents, and not who did it.
func (w *work) tell(name string, data any, to ...string) {
	w.tellAlso(name, data, nil, to...)
}

// tellAlso is tell, and besides to some who may have done it themselves.
func (w *work) tellAlso(name string, data any, also map[string]bool, to ...string) {
	n := news{name: name, data: data, to: maps.Clone(also)}
	if n.to == nil {
		n.to = map[string]bool{}
	}
	for _, slug := range to {
		if slug != "" && slug != w.me.Slug {
			n.to[slug] = true
		}
	}
	w.news = append(w.news, n)
}

// agents returns the slugs of all agents.
func (w *work) agents() ([]string, error) {
	all, err := w.r.Members(MemberQuery{Kind: tracker.Agent})
	slugs := make([]string, 0, len(all))
	for _, m := range all {
		if _, ok := w.members[m.Slug]; !ok {
			w.members[m.Slug] = m
		}
		slugs = append(slugs, m.Slug)
	}
	return slugs, err
}

// finish puts the change together.
func (w *work) finish() error {
	for _, id := range slices.Sorted(maps.Keys(w.tasks)) {
		t := w.tasks[id]
		switch before := w.before[id]; {
		case id == w.fresh:
		case visible(before, *t):
			t.Version++
			t.Updated = w.now
		case before.OpenBlockers == t.OpenBlockers:
			continue
		}
		t.Search = strings.ToLower(t.Key + "\n" + t.Title + "\n" + t.Description)
		w.c.Tasks = append(w.c.Tasks, *t)
	}
	return w.post()
}

// visible reports whether a task itself has changed, and not only what it waits for.
func visible(a, b Task) bool {
	return a.Title != b.Title || a.Description != b.Description || a.Type != b.Type || a.Priority != b.Priority ||
		a.Status != b.Status || a.Assignee != b.Assignee || a.Parent != b.Parent || a.StepsTotal != b.StepsTotal ||
		a.StepsDone != b.StepsDone || !slices.Equal(a.Labels, b.Labels) || !slices.Equal(a.Watchers, b.Watchers) ||
		!slices.Equal(a.Blockers, b.Blockers) || !slices.Equal(a.RejectedBy, b.RejectedBy)
}

// once answers a repeated request as it was answered first, under the caller's key.
func once[T any](w *work, key, operation string, request any, do func() (T, error)) (out T, err error) {
	if key == "" {
		return do()
	}
	if err := checkText("idempotency key", key, tracker.MaxKey, true); err != nil {
		return out, err
	}
	digest, err := digestOf(operation, request)
	if err != nil {
		return out, err
	}
	had, err := w.r.Answer(w.me.Slug, key)
	switch {
	case err == nil && had.Request != digest:
		return out, tracker.Errorf(tracker.CodeReused, "the idempotency key %s was used for another request", tracker.Quote(key)).
			Next("use a new key for a new request")
	case err == nil:
		return out, json.Unmarshal(had.Body, &out)
	case !errors.Is(err, ErrNotFound):
		return out, err
	}
	if out, err = do(); err != nil {
		return out, err
	}
	body, err := json.Marshal(out)
	w.c.Answers = append(w.c.Answers, Answer{Member: w.me.Slug, Key: key, Request: digest, Body: body, At: w.now})
	return out, err
}
