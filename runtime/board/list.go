package board

import (
	"context"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// ListTasks implements [tracker.Tasks], as the methods below do.
func (s *Seat) ListTasks(ctx context.Context, q tracker.TaskQuery) (page tracker.Page[tracker.TaskOut], err error) {
	err = s.view(ctx, tracker.TasksRead, func(w *work) error {
		find, none, err := w.taskQuery(q)
		if err != nil {
			return err
		}
		limit := most(q.Limit)
		find.Limit = limit + 1
		var all []Task
		if !none {
			if all, err = w.r.Tasks(find); err != nil {
				return err
			}
		}
		last := ""
		if len(all) > limit {
			all = all[:limit]
			last = cursor(all[limit-1].ID)
		}
		page.Items, err = w.taskOuts(all)
		page.NextCursor = last
		return err
	})
	return page, err
}

// taskQuery reads a query. none: nothing can fit.
func (w *work) taskQuery(q tracker.TaskQuery) (find TaskQuery, none bool, err error) {
	find = TaskQuery{Unblocked: q.Ready, Text: strings.ToLower(q.Text)}
	if find.Before, err = cursorOf(q.Paging); err != nil {
		return find, false, err
	}
	if find.Statuses, err = parseAll(q.Statuses); err != nil {
		return find, false, err
	}
	if q.Ready && len(find.Statuses) == 0 {
		find.Statuses = []tracker.Status{tracker.Todo}
	} else if q.Ready {
		none = !slices.Contains(find.Statuses, tracker.Todo)
		find.Statuses = []tracker.Status{tracker.Todo}
	}
	if find.Labels, err = checkWords("labels", q.Labels); err != nil {
		return find, none, err
	}
	if err = checkText("text", q.Text, tracker.MaxTitle, false); err != nil {
		return find, none, err
	}
	if q.Type != "" {
		find.Type, err = tracker.ParseType(q.Type)
	}
	if q.Priority != "" && err == nil {
		find.Priority, err = tracker.ParsePriority(q.Priority)
	}
	if err != nil {
		return find, none, err
	}
	return find, none, w.taskQueryRefs(q, &find)
}

func (w *work) taskQueryRefs(q tracker.TaskQuery, find *TaskQuery) error {
	if q.Project != "" {
		p, err := w.project(q.Project)
		if err != nil {
			return err
		}
		find.Project = p.ID
	}
	if q.Parent != "" {
		t, err := w.task(q.Parent, find.Project)
		if err != nil {
			return err
		}
		find.Parent = t.ID
	}
	find.Unassigned = q.Assignee == "none"
	for _, f := range []struct {
		ref string
		to  *string
	}{{q.Assignee, &find.Assignee}, {q.Creator, &find.Creator}, {q.Watcher, &find.Watcher}} {
		if f.ref == "" || f.to == &find.Assignee && find.Unassigned {
			continue
		}
		m, err := w.findMember(f.ref)
		if err != nil {
			return err
		}
		*f.to = m.Slug
	}
	return nil
}

func parseAll(statuses []string) (out []tracker.Status, err error) {
	for _, text := range statuses {
		s, err := tracker.ParseStatus(text)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
