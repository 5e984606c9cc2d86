package board

import (
	"context"
	"slices"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// UpdateTask implements [tracker.Tasks], as the methods below do.
func (s *Seat) UpdateTask(ctx context.Context, ref string, u tracker.UpdateTask) (out tracker.TaskOut, err error) {
	scope := tracker.TasksWrite
	if onlyAssigns(u) {
		scope = tracker.TasksAssign
		if !s.caller.Has(scope) {
			scope = tracker.TasksWrite // the rules below say to whom
		}
	}
	err = s.update(ctx, scope, func(w *work) error {
		t, err := w.task(ref, "")
		if err != nil {
			return err
		}
		if err := checkVersion(t, u); err != nil {
			return err
		}
		e := w.edit(t)
		if err := w.change(t, e, u); err != nil {
			return err
		}
		out, err = w.taskOut(*e)
		return err
	})
	return out, err
}

// onlyAssigns reports whether the assignee alone is to change.
func onlyAssigns(u tracker.UpdateTask) bool {
	other := u.Title.Set || u.Description.Set || u.Type.Set || u.Priority.Set || u.Status.Set || u.ParentID.Set || u.Labels.Set || u.BlockedBy.Set
	return u.AssigneeSlug.Set && !other
}

// checkVersion refuses a change of what is not as the caller last saw it.
func checkVersion(t Task, u tracker.UpdateTask) error {
	code, want := "", int64(0)
	switch {
	case u.IfMatch != 0 && u.IfMatch != t.Version:
		code, want = tracker.CodePrecondition, u.IfMatch
	case u.Version != 0 && u.Version != t.Version:
		code, want = tracker.CodeVersion, u.Version
	default:
		return nil
	}
	return tracker.Errorf(code, "%s has version %d, not %d", t.Key, t.Version, want).With("version", t.Version).
		Next("read it again, and change what it is now")
}

// change makes the changes of u to e, which is t as yet, and tells of them.
func (w *work) change(t Task, e *Task, u tracker.UpdateTask) error {
	if err := changeTexts(e, u); err != nil {
		return err
	}
	if err := w.changeLinks(e, u); err != nil {
		return err
	}
	changes, err := w.differences(t, *e)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		if err := w.log(t.ID, "updated", changes); err != nil {
			return err
		}
		w.tellUnblocked(t, *e)
	}
	if u.AssigneeSlug.Set {
		if err := w.reassign(e, u.AssigneeSlug.Value); err != nil {
			return err
		}
	}
	if u.Status.Has() {
		return w.changeTaskStatus(e, u.Status.Value, u.Force)
	}
	return nil
}

func changeTexts(e *Task, u tracker.UpdateTask) (err error) {
	for name, null := range map[string]bool{
		"title": u.Title.Null, "type": u.Type.Null, "priority": u.Priority.Null, "status": u.Status.Null,
	} {
		if null {
			return invalid(name, "%s cannot be null", name)
		}
	}
	if u.Title.Set {
		e.Title, err = checkLine("title", u.Title.Value, tracker.MaxTitle)
	}
	if err == nil && u.Description.Set {
		e.Description, err = u.Description.Value, checkText("description", u.Description.Value, tracker.MaxDescription, false)
	}
	if err == nil && u.Type.Set {
		e.Type, err = tracker.ParseType(u.Type.Value)
	}
	if err == nil && u.Priority.Set {
		e.Priority, err = tracker.ParsePriority(u.Priority.Value)
	}
	if err == nil && u.Labels.Set {
		e.Labels, err = checkWords("labels", u.Labels.Value)
	}
	return err
}

func (w *work) changeLinks(e *Task, u tracker.UpdateTask) (err error) {
	if u.ParentID.Set {
		e.Parent = ""
		if u.ParentID.Value != "" {
			if e.Parent, err = w.parentOf(*e, u.ParentID.Value); err != nil {
				return err
			}
		}
	}
	if u.BlockedBy.Set {
		return w.setBlockers(e, u.BlockedBy.Value)
	}
	return nil
}

// differences are those of the fields that are only written down.
func (w *work) differences(a, b Task) (map[string]tracker.Change, error) {
	out := map[string]tracker.Change{}
	for _, f := range []struct{ name, from, to string }{
		{"title", a.Title, b.Title}, {"type", a.Type, b.Type}, {"priority", a.Priority, b.Priority}, {"parent_id", a.Parent, b.Parent},
	} {
		if f.from != f.to {
			out[f.name] = tracker.Change{From: f.from, To: f.to}
		}
	}
	if a.Description != b.Description { // long, and in the task
		out["description"] = tracker.Change{From: len(a.Description), To: len(b.Description)}
	}
	if !slices.Equal(a.Labels, b.Labels) {
		out["labels"] = tracker.Change{From: list(a.Labels), To: list(b.Labels)}
	}
	if !slices.Equal(a.Blockers, b.Blockers) {
		keys := map[string]string{}
		for _, id := range slices.Concat(a.Blockers, b.Blockers) {
			keys[id] = ""
		}
		if err := w.keysOf(keys); err != nil {
			return nil, err
		}
		out["blocked_by"] = tracker.Change{From: named(a.Blockers, keys), To: named(b.Blockers, keys)}
	}
	return out, nil
}

// named has the keys of tasks in the place of their ids.
func named(ids []string, keys map[string]string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = keys[id]
	}
	return out
}

// changeTaskStatus moves a task; to where it is, is nothing.
func (w *work) changeTaskStatus(e *Task, text string, force bool) error {
	to, err := tracker.ParseStatus(text)
	if err != nil || to == e.Status {
		return err
	}
	if err := w.mayMove(*e, to, force); err != nil {
		return err
	}
	if err := w.log(e.ID, "status_changed", map[string]tracker.Change{"status": {From: e.Status, To: to}}); err != nil {
		return err
	}
	return w.move(e, to)
}

// reassign gives a task to somebody, or to nobody.
func (w *work) reassign(e *Task, ref string) error {
	from := e.Assignee
	if ref == "" {
		return w.unassign(e)
	}
	m, err := w.mayGive(ref)
	if err != nil || m.Slug == from {
		return err
	}
	if from != "" && from != w.me.Slug && !w.caller.Has(tracker.TasksAssign) {
		return w.held(*e)
	}
	if e.Status.Closed() {
		return tracker.Errorf(tracker.CodeConflict, "%s is %s", e.Key, e.Status).Next("reopen it first: status todo")
	}
	e.Assignee = m.Slug
	e.Watchers = with(e.Watchers, m.Slug)
	e.RejectedBy = without(e.RejectedBy, m.Slug)
	if err := w.log(e.ID, "assigned", map[string]tracker.Change{"assignee": {From: from, To: m.Slug}}); err != nil {
		return err
	}
	return w.tellAssigned(*e, from)
}

// tellAssigned tells the new assignee, the one before, and who follows the task.
func (w *work) tellAssigned(t Task, from string) error {
	out, err := w.taskOut(t)
	if err != nil {
		return err
	}
	w.tell(tracker.EventTaskAssigned, tracker.TaskAssigned{Task: out, Actor: w.myself(), Previous: from},
		append(slices.Clone(t.Watchers), t.Assignee, from)...)
	return nil
}

func (w *work) unassign(e *Task) error {
	from := e.Assignee
	switch {
	case from == "":
		return nil
	case from != w.me.Slug && !w.caller.Has(tracker.TasksAssign):
		return w.held(*e)
	}
	e.Assignee = ""
	if err := w.log(e.ID, "unassigned", map[string]tracker.Change{"assignee": {From: from}}); err != nil {
		return err
	}
	return w.tellAssigned(*e, from)
}

// held is the refusal of a task that somebody has.
func (w *work) held(t Task) error {
	holder, err := w.member(t.Assignee)
	if err != nil {
		return err
	}
	e := tracker.Errorf(tracker.CodeTaken, "%s is %s's, who is %s", t.Key, holder.Slug, presence(holder)).
		With("holder", holder.Slug).With("holder_presence", presence(holder)).With("status", t.Status)
	return e.Next("take another task; list_tasks with assignee none says which are free")
}
