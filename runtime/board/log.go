package board

import (
	"context"
	"encoding/json"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// activities shows entries of the log.
func (w *work) activities(all []Activity) ([]tracker.Activity, error) {
	out := make([]tracker.Activity, len(all))
	for i, a := range all {
		actor, err := w.ref(a.Actor)
		if err != nil {
			return nil, err
		}
		out[i] = tracker.Activity{ID: a.ID, TaskID: a.Task, Actor: actor, Action: a.Action, CreatedAt: a.At}
		if a.Changes != nil {
			if err := json.Unmarshal(a.Changes, &out[i].Changes); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// TaskActivity lists what happened to a task.
func (s *Seat) TaskActivity(ctx context.Context, ref string, p tracker.Paging) (page tracker.Page[tracker.Activity], err error) {
	before, err := cursorOf(p)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, tracker.TasksRead, func(w *work) error {
		t, err := w.task(ref, "")
		if err != nil {
			return err
		}
		limit := most(p.Limit)
		all, err := w.r.Activity(ActivityQuery{Task: t.ID, Before: before, Limit: limit + 1})
		if err != nil {
			return err
		}
		out, err := w.activities(all)
		page = pageOf(out, limit, func(a tracker.Activity) string { return a.ID })
		return err
	})
	return page, err
}
