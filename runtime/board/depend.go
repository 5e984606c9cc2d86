package board

import (
	"context"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// setBlockers makes a task wait for the tasks that refs name, and for no others.
func (w *work) setBlockers(t *Task, refs []string) error {
	if len(refs) > tracker.MaxBlockers {
		return invalid("blocked_by", "blocked_by has %d tasks, at most %d are allowed", len(refs), tracker.MaxBlockers)
	}
	var ids []string
	open := 0
	for _, ref := range refs {
		b, err := w.task(ref, t.Project)
		if err != nil {
			return err
		}
		if slices.Contains(ids, b.ID) {
			continue
		}
		if !slices.Contains(t.Blockers, b.ID) {
			if err := w.noCycle(*t, b); err != nil {
				return err
			}
		}
		ids = append(ids, b.ID)
		if !b.Status.Closed() {
			open++
		}
	}
	t.Blockers, t.OpenBlockers = ids, open
	return nil
}

// mostReached is how many tasks a dependency may lead to, behind all that they wait for.
const mostReached = 10_000

// A chain is what is found behind a task that another is to wait for: of each task, its
// key and which task waits for it.
type chain map[string]link

type link struct{ key, waiting string }

// noCycle refuses to let t wait for b if b waits for t.
func (w *work) noCycle(t, b Task) error {
	found := chain{b.ID: {key: b.Key}}
	for frontier := []Task{b}; len(frontier) > 0; {
		var next []string
		for _, f := range frontier {
			found[f.ID] = link{key: f.Key, waiting: found[f.ID].waiting}
			if f.ID == t.ID {
				return found.circle(t, b)
			}
			for _, id := range f.Blockers {
				if _, ok := found[id]; !ok {
					found[id] = link{waiting: f.ID}
					next = append(next, id)
				}
			}
		}
		if len(found) > mostReached {
			return invalid("blocked_by", "more than %d tasks stand behind %s", mostReached, b.Key)
		}
		var err error
		if frontier, err = w.byID(next); err != nil {
			return err
		}
	}
	return nil
}

// circle is the refusal, which names every task on the way from t over b back to t.
func (c chain) circle(t, b Task) error {
	path := []string{t.Key}
	for id := c[t.ID].waiting; id != ""; id = c[id].waiting {
		path = append(path, c[id].key)
	}
	path = append(path, t.Key)
	slices.Reverse(path)
	return tracker.Errorf(tracker.CodeCycle, "%s cannot wait for %s: that waits for it", t.Key, b.Key).
		With("path", path).Next("the circle would be: " + strings.Join(path, " waits for "))
}

// AddDependency makes a task wait for another.
func (s *Seat) AddDependency(ctx context.Context, ref string, d tracker.AddDependency) (out tracker.TaskOut, err error) {
	return s.depend(ctx, ref, d.BlockedBy, "blocked", func(refs []string, id string) []string {
		if slices.Contains(refs, id) {
			return refs
		}
		return append(refs, id)
	})
}

// RemoveDependency makes a task wait for another no more.
func (s *Seat) RemoveDependency(ctx context.Context, ref, blocker string) (out tracker.TaskOut, err error) {
	return s.depend(ctx, ref, blocker, "unblocked", without)
}

func (s *Seat) depend(ctx context.Context, ref, blocker, action string, change func([]string, string) []string) (out tracker.TaskOut, err error) {
	err = s.update(ctx, tracker.TasksWrite, func(w *work) error {
		t, err := w.task(ref, "")
		if err != nil {
			return err
		}
		b, err := w.task(blocker, t.Project)
		if err != nil {
			return err
		}
		e := w.edit(t)
		if err := w.setBlockers(e, change(slices.Clone(t.Blockers), b.ID)); err != nil {
			return err
		}
		if !slices.Equal(e.Blockers, t.Blockers) {
			if err := w.log(t.ID, action, map[string]tracker.Change{"blocked_by": {To: b.Key}}); err != nil {
				return err
			}
			w.tellUnblocked(t, *e)
		}
		out, err = w.taskOut(*e)
		return err
	})
	return out, err
}

// tellUnblocked tells the assignee of a task that was freed by a change of what it waits for,
// also if that is who changed it.
func (w *work) tellUnblocked(before, after Task) {
	if before.OpenBlockers == 0 || after.OpenBlockers > 0 || after.Assignee == "" || after.Status.Closed() {
		return
	}
	w.tellAlso(tracker.EventTaskStatus, tracker.TaskStatus{
		TaskID: after.ID, Key: after.Key, Title: after.Title, From: before.Status, To: after.Status, AssigneeSlug: after.Assignee,
		Actor: w.myself(), Unblocked: []tracker.Unblocked{{TaskID: after.ID, Key: after.Key, AssigneeSlug: after.Assignee}},
	}, map[string]bool{after.Assignee: true})
}
