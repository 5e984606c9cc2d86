package board

import (
	"context"
	"slices"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// TakeTask implements [tracker.Tasks], as the methods below do.
func (s *Seat) TakeTask(ctx context.Context, ref string, in tracker.TakeTask) (out tracker.TaskOut, err error) {
	err = s.update(ctx, tracker.TasksTake, func(w *work) error {
		out, err = once(w, in.IdempotencyKey, "take "+ref, in, func() (tracker.TaskOut, error) { return w.take(ref, in) })
		return err
	})
	return out, err
}

func (w *work) take(ref string, in tracker.TakeTask) (out tracker.TaskOut, err error) {
	t, err := w.task(ref, "")
	if err != nil {
		return out, err
	}
	m, err := w.inName(in.AgentSlug)
	if err != nil {
		return out, err
	}
	if err := w.takeable(t, m); err != nil {
		return out, err
	}
	e := w.edit(t)
	fresh := t.Assignee == ""
	e.Assignee = m.Slug
	e.Watchers = with(e.Watchers, m.Slug)
	if e.Status == tracker.Backlog || e.Status == tracker.Todo {
		if err := w.move(e, tracker.InProgress); err != nil {
			return out, err
		}
	}
	if out, err = w.taskOut(*e); err != nil || !visible(t, *e) {
		return out, err
	}
	err = w.log(t.ID, "taken", map[string]tracker.Change{
		"assignee": {From: t.Assignee, To: e.Assignee}, "status": {From: t.Status, To: e.Status},
	})
	if err != nil || !fresh {
		return out, err
	}
	return out, w.tellTaken(*e, out)
}

// takeable refuses a task that cannot be taken by m.
func (w *work) takeable(t Task, m Member) error {
	p, err := w.project(t.Project)
	switch {
	case err != nil:
		return err
	case p.Archived:
		return tracker.Errorf(tracker.CodeConflict, "the project %s is archived", tracker.Quote(p.Slug))
	case t.Assignee != "" && t.Assignee != m.Slug:
		return w.held(t)
	case t.Status.Closed():
		return tracker.Errorf(tracker.CodeTransition, "%s is %s", t.Key, t.Status).With("allowed", moves(t.Status)).
			Next("take another task, or reopen this one")
	case t.OpenBlockers > 0 && (t.Status == tracker.Backlog || t.Status == tracker.Todo):
		return w.blocked(t)
	}
	return nil
}

// tellTaken tells all agents that a task is free no more, and the one that got it.
func (w *work) tellTaken(t Task, out tracker.TaskOut) error {
	all, err := w.agents()
	if err != nil {
		return err
	}
	w.tell(tracker.EventTaskTaken, tracker.TaskTaken{TaskID: t.ID, Key: t.Key, AgentSlug: t.Assignee}, without(all, t.Assignee)...)
	w.tell(tracker.EventTaskAssigned, tracker.TaskAssigned{Task: out, Actor: w.myself()}, t.Assignee)
	return nil
}

// RejectTask gives a task back for a reason.
func (s *Seat) RejectTask(ctx context.Context, ref string, in tracker.RejectTask) (out tracker.Rejected, err error) {
	err = s.update(ctx, tracker.TasksTake, func(w *work) error {
		out, err = once(w, in.IdempotencyKey, "reject "+ref, in, func() (tracker.Rejected, error) { return w.reject(ref, in.Reason) })
		return err
	})
	return out, err
}

func (w *work) reject(ref, reason string) (out tracker.Rejected, err error) {
	if err := checkText("reason", reason, tracker.MaxReason, true); err != nil {
		return out, err
	}
	t, err := w.task(ref, "")
	if err != nil {
		return out, err
	}
	offered := t.Assignee == "" && t.Status == tracker.Todo
	switch {
	case t.Assignee != "" && t.Assignee != w.me.Slug:
		return out, w.held(t)
	case t.Status.Closed() || t.Assignee == "" && !offered:
		return out, tracker.Errorf(tracker.CodeConflict, "%s is %s and nobody's: there is nothing to reject", t.Key, t.Status)
	}
	e := w.edit(t)
	e.Assignee = ""
	e.RejectedBy = with(e.RejectedBy, w.me.Slug)
	w.systemComment(t, "rejected by "+w.me.Slug+": "+reason)
	if err := w.log(t.ID, "rejected", map[string]tracker.Change{"assignee": {From: t.Assignee}, "reason": {To: reason}}); err != nil {
		return out, err
	}
	if err := w.putBack(e); err != nil {
		return out, err
	}
	w.tell(tracker.EventTaskRejected, tracker.TaskRejected{TaskID: t.ID, Key: t.Key, AgentSlug: w.me.Slug, Reason: reason},
		append(slices.Clone(t.Watchers), t.Creator)...)
	return tracker.Rejected{OK: true, Reason: reason}, nil
}

// putBack makes a task that somebody worked on one to begin.
func (w *work) putBack(e *Task) error {
	if e.Status == tracker.InProgress || e.Status == tracker.InReview {
		return w.move(e, tracker.Todo)
	}
	return nil
}

// ReleaseTask gives a task back without a word against it.
func (s *Seat) ReleaseTask(ctx context.Context, ref string, in tracker.ReleaseTask) (out tracker.TaskOut, err error) {
	err = s.update(ctx, tracker.TasksTake, func(w *work) error {
		if err := checkText("reason", in.Reason, tracker.MaxReason, false); err != nil {
			return err
		}
		t, err := w.task(ref, "")
		if err != nil {
			return err
		}
		e := w.edit(t)
		if t.Assignee != "" {
			if err := w.letGo(t, e, in.Reason); err != nil {
				return err
			}
		}
		out, err = w.taskOut(*e)
		return err
	})
	return out, err
}

func (w *work) letGo(t Task, e *Task, reason string) error {
	if t.Assignee != w.me.Slug && !w.caller.Has(tracker.TasksAssign) {
		return w.held(t)
	}
	e.Assignee = ""
	changes := map[string]tracker.Change{"assignee": {From: t.Assignee}}
	if reason != "" {
		changes["reason"] = tracker.Change{To: reason}
	}
	if err := w.log(t.ID, "released", changes); err != nil {
		return err
	}
	if e.Status != tracker.InProgress {
		return w.tellAssigned(*e, t.Assignee)
	}
	return w.move(e, tracker.Todo)
}
