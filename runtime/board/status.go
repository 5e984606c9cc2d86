package board

import (
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// moves has where a task can go from a status; cancelled is behind each of them.
func moves(from tracker.Status) []tracker.Status {
	switch from {
	case tracker.Backlog:
		return []tracker.Status{tracker.Todo, tracker.Cancelled}
	case tracker.Todo:
		return []tracker.Status{tracker.InProgress, tracker.Cancelled}
	case tracker.InProgress:
		return []tracker.Status{tracker.InReview, tracker.Cancelled}
	case tracker.InReview:
		return []tracker.Status{tracker.Done, tracker.InProgress, tracker.Cancelled}
	case tracker.Done:
		return []tracker.Status{tracker.Todo, tracker.Cancelled}
	}
	return nil
}

// mayMove refuses a move that a task cannot make.
func (w *work) mayMove(t Task, to tracker.Status, force bool) error {
	if force {
		if w.caller.Has(tracker.TasksForce) {
			return nil
		}
		return tracker.Errorf(tracker.CodeForbidden, "force needs the scope %s", tracker.TasksForce).With("scope", tracker.TasksForce)
	}
	allowed := moves(t.Status)
	switch {
	case !slices.Contains(allowed, to):
		e := tracker.Errorf(tracker.CodeTransition, "%s is %s and cannot become %s", t.Key, t.Status, to).With("allowed", allowed)
		if len(allowed) == 0 {
			return e.Next("make a new task instead")
		}
		return e.Next("from " + string(t.Status) + " it can become: " + joined(allowed))
	case to == tracker.InProgress && t.OpenBlockers > 0:
		return w.blocked(t)
	case to == tracker.Done && w.b.o.RequireReview && w.me.Kind == tracker.Agent && t.Assignee == w.me.Slug:
		return tracker.Errorf(tracker.CodeForbidden, "somebody else must review %s before it is done", t.Key).
			Next("leave it in in_review")
	case to == tracker.Done:
		return w.childrenDone(t)
	}
	return nil
}

// childrenDone refuses a task of which parts are still to be done.
func (w *work) childrenDone(t Task) error {
	open := []tracker.Status{tracker.Backlog, tracker.Todo, tracker.InProgress, tracker.InReview}
	const enough = 10 // to see what is to be done
	all, err := w.r.Tasks(TaskQuery{Parent: t.ID, Statuses: open, Limit: enough})
	if err != nil || len(all) == 0 {
		return err
	}
	keys := []string{}
	for _, child := range all {
		keys = with(keys, child.Key)
	}
	return tracker.Errorf(tracker.CodeConflict, "%s has subtasks that are open", t.Key).With("open_subtasks", keys).
		Next("finish or cancel them first: " + strings.Join(keys, ", "))
}

func joined(all []tracker.Status) string {
	words := make([]string, len(all))
	for i, s := range all {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// blocked is the refusal of a task that waits for others.
func (w *work) blocked(t Task) error {
	all, err := w.byID(t.Blockers)
	if err != nil {
		return err
	}
	open := []string{}
	for _, b := range all {
		if !w.latest(b).Status.Closed() {
			open = with(open, b.Key)
		}
	}
	return tracker.Errorf(tracker.CodeBlocked, "%s waits for others", t.Key).With("blocked_by", open).
		Next("take one of those, or another task, until they are done")
}

// move changes the status of a task, and of what waits for it, and tells of it.
func (w *work) move(t *Task, to tracker.Status) error {
	from := t.Status
	t.Status = to
	freed, err := w.recount(*t, from, to)
	if err != nil {
		return err
	}
	return w.tellStatus(*t, from, to, freed)
}

// recount counts anew what waits for a task, and returns what waits no more.
func (w *work) recount(t Task, from, to tracker.Status) (freed []tracker.Unblocked, err error) {
	if from.Closed() == to.Closed() {
		return nil, nil
	}
	waiting, err := w.r.Tasks(TaskQuery{Blocker: t.ID})
	if err != nil {
		return nil, err
	}
	for _, d := range waiting {
		e := w.edit(d)
		if !to.Closed() {
			e.OpenBlockers++
			continue
		}
		if e.OpenBlockers--; e.OpenBlockers > 0 || e.Status.Closed() {
			continue
		}
		u := tracker.Unblocked{TaskID: e.ID, Key: e.Key, AssigneeSlug: e.Assignee}
		if u.CancelledBlockers, err = w.cancelled(*e, t, to); err != nil {
			return nil, err
		}
		freed = append(freed, u)
	}
	slices.SortFunc(freed, func(a, b tracker.Unblocked) int { return strings.Compare(a.TaskID, b.TaskID) })
	return freed, nil
}

// cancelled returns the keys of blockers that will not come, now that closing became to.
func (w *work) cancelled(t, closing Task, to tracker.Status) (keys []string, err error) {
	all, err := w.byID(t.Blockers)
	for _, b := range all {
		if b.ID == closing.ID {
			b.Status = to
		}
		if b.Status == tracker.Cancelled {
			keys = with(keys, b.Key)
		}
	}
	return keys, err
}

// tellStatus tells those who follow the task, and those who can go on because of it: the
// assignee of a task that waits no more even if it is the one who did it, and every agent
// if anyone could take one.
func (w *work) tellStatus(t Task, from, to tracker.Status, freed []tracker.Unblocked) error {
	if from == to && len(freed) == 0 {
		return nil
	}
	everyone := to == tracker.Todo && t.Assignee == ""
	also := map[string]bool{}
	for _, u := range freed {
		if u.AssigneeSlug == "" {
			everyone = true
		} else {
			also[u.AssigneeSlug] = true
		}
	}
	followers := append(slices.Clone(t.Watchers), t.Assignee, t.Creator)
	if everyone {
		all, err := w.agents()
		if err != nil {
			return err
		}
		followers = append(followers, all...)
	}
	w.tellAlso(tracker.EventTaskStatus, tracker.TaskStatus{
		TaskID: t.ID, Key: t.Key, Title: t.Title, From: from, To: to, AssigneeSlug: t.Assignee, Actor: w.myself(), Unblocked: freed,
	}, also, followers...)
	return nil
}
