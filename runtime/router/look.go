package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// What is to be done for an item, as its task is now.
const (
	run  = iota
	wait // until the task changes
	drop // it has no turn
	over // it had one, and the task is ready
)

// A verdict is one of these, with its reason.
type verdict struct {
	what int
	why  string
}

func (v verdict) state() State {
	if v.what == over {
		return Done
	}
	return Dropped
}

// look asks the tracker for the task of an item, and finds out what is to be done for it.
func (r *Router) look(ctx context.Context, i Item) (tracker.TaskOut, verdict, error) {
	t, err := r.o.Tracker.GetTask(ctx, i.Task)
	if errors.Is(err, &tracker.Error{Code: tracker.CodeForbidden}) {
		return t, verdict{wait, "the agent may not read the task: give its token the scope " + tracker.TasksRead + " and let it into the project"}, nil
	}
	if why, gone := refused(err); gone {
		return t, verdict{drop, why}, nil
	}
	if err != nil {
		return t, verdict{}, err
	}
	t = tidied(t, i)
	if v := judge(i, t, r.o.Agent); v.what != run {
		return t, v, nil
	}
	if v, err := r.covered(ctx, i); err != nil || v.what != run {
		return t, v, err
	}
	if holderOf(t) == r.o.Agent {
		return t, verdict{what: run}, nil
	}
	return r.take(ctx, i)
}

// refused reports whether the tracker's error is about the task and will be the same the
// next time, and what it says.
func refused(err error) (why string, is bool) {
	var e *tracker.Error
	if !errors.As(err, &e) {
		return "", false
	}
	switch s := e.Status(); {
	case s >= 500, s == 401, s == 408, s == 429:
		return "", false
	}
	return "the tracker says: " + e.Message, true
}

// judge says what is to be done for an item whose task is as given.
func judge(i Item, t tracker.TaskOut, agent string) verdict {
	holder := holderOf(t)
	switch {
	case holder != "" && holder != agent:
		return verdict{drop, "the task is " + holder + "'s"}
	case holder == "" && !i.Take:
		return verdict{drop, "the task is nobody's"}
	case i.Kind == KindFree && holder == "" && slices.Contains(t.RejectedBy, agent):
		return verdict{drop, "the agent has rejected the task"}
	case t.Status == tracker.Backlog:
		return verdict{wait, "the task is in the backlog: it begins when it is moved to todo"}
	case t.Status != tracker.Todo && t.Status != tracker.InProgress:
		if i.Attempt > 0 {
			return verdict{over, fmt.Sprintf("the task is %s", t.Status)}
		}
		return verdict{drop, fmt.Sprintf("the task is %s", t.Status)}
	case t.Blocked:
		return verdict{wait, "the task waits for " + strings.Join(t.BlockedBy, ", ")}
	}
	return verdict{what: run}
}

// covered finds an item whose turn has seen all that this one is about: it left the task in
// this version or a later one, or looked at it after the event.
func (r *Router) covered(ctx context.Context, i Item) (verdict, error) {
	if i.Attempt > 0 || i.Take {
		return verdict{what: run}, nil
	}
	before, err := r.o.Store.Items(ctx, Query{Agent: r.o.Agent, Task: i.Task, States: []State{Done, Failed}, Latest: true, Limit: 1})
	if err != nil || len(before) == 0 {
		return verdict{}, err
	}
	b := before[0]
	// The tracker's clock may be another one: it counts where no version does.
	seen := !i.At.IsZero() && i.At.Before(b.Began)
	if i.Version > 0 && b.Version > 0 {
		seen = b.Version >= i.Version
	}
	if seen {
		return verdict{drop, "the turn for another item of the task served it: " + b.ID}, nil
	}
	return verdict{what: run}, nil
}

// take takes the task of an item that is nobody's. It has no key that is known later: who holds a
// task may take it again, and an answer of before says nothing of whose it is now.
func (r *Router) take(ctx context.Context, i Item) (tracker.TaskOut, verdict, error) {
	t, err := r.o.Tracker.TakeTask(ctx, i.Task, tracker.TakeTask{})
	if why, gone := refused(err); gone {
		return t, verdict{drop, why}, nil
	}
	return tidied(t, i), verdict{what: run}, err
}

// tidied is a task that a tracker showed, with names that are some: what it called the task of
// an item by is as good as an id that is none.
func tidied(t tracker.TaskOut, i Item) tracker.TaskOut {
	if !isRef(t.ID) {
		t.ID = i.Task
	}
	t.Key = oneLine(t.Key, tracker.MaxRef)
	return t
}

// isRef reports whether a text can be an id.
func isRef(text string) bool {
	return text != "" && len(text) <= tracker.MaxRef && !strings.ContainsFunc(text, isBreak)
}

// holderOf is the slug of whose the task is, or "".
func holderOf(t tracker.TaskOut) string {
	switch {
	case t.AssigneeSlug != nil:
		return *t.AssigneeSlug
	case t.Assignee != nil:
		return t.Assignee.Slug
	}
	return ""
}
