package board

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func (w *work) stepOut(p Step) (tracker.StepOut, error) {
	out := tracker.StepOut{ID: p.ID, Index: p.Position, Title: p.Title, Done: p.Done}
	if !p.Done {
		return out, nil
	}
	who, err := w.ref(p.DoneBy)
	out.DoneAt, out.DoneBy = &p.DoneAt, &who
	return out, err
}

// checklist is a task with its steps.
func (w *work) checklist(ref string) (Task, []Step, error) {
	t, err := w.task(ref, "")
	if err != nil {
		return t, nil, err
	}
	steps, err := w.r.Steps(t.ID)
	return t, steps, err
}

// step finds one by its id or its index.
func step(t Task, steps []Step, ref string) (int, error) {
	ref = strings.TrimSpace(ref)
	if n, err := strconv.ParseUint(ref, 10, 31); err == nil {
		if int(n) < len(steps) {
			return int(n), nil
		}
		return 0, tracker.Errorf(tracker.CodeNotFound, "%s has no step %d", t.Key, n).
			Next("it has " + strconv.Itoa(len(steps)) + " steps, counted from 0")
	}
	if i := slices.IndexFunc(steps, func(p Step) bool { return p.ID == strings.ToLower(ref) }); i >= 0 {
		return i, nil
	}
	return 0, tracker.Errorf(tracker.CodeNotFound, "%s has no step %s", t.Key, tracker.Quote(ref)).
		Next("list_steps says which it has; a step is named by its id or by its index from 0 on")
}

// ListSteps implements [tracker.Steps], as the methods below do.
func (s *Seat) ListSteps(ctx context.Context, ref string) (out []tracker.StepOut, err error) {
	err = s.view(ctx, tracker.StepsRead, func(w *work) error {
		_, steps, err := w.checklist(ref)
		out = make([]tracker.StepOut, len(steps))
		for i := 0; i < len(steps) && err == nil; i++ {
			out[i], err = w.stepOut(steps[i])
		}
		return err
	})
	return out, err
}

// GetStep returns a step.
func (s *Seat) GetStep(ctx context.Context, ref, which string) (out tracker.StepOut, err error) {
	err = s.view(ctx, tracker.StepsRead, func(w *work) error {
		t, steps, err := w.checklist(ref)
		if err != nil {
			return err
		}
		i, err := step(t, steps, which)
		if err == nil {
			out, err = w.stepOut(steps[i])
		}
		return err
	})
	return out, err
}

// AddStep adds a step.
func (s *Seat) AddStep(ctx context.Context, ref string, a tracker.AddStep) (out tracker.StepOut, err error) {
	err = s.update(ctx, tracker.StepsWrite, func(w *work) error {
		out, err = once(w, a.IdempotencyKey, "add step "+ref, a, func() (tracker.StepOut, error) { return w.addStep(ref, a) })
		return err
	})
	return out, err
}

func (w *work) addStep(ref string, a tracker.AddStep) (out tracker.StepOut, err error) {
	title, err := checkLine("title", a.Title, tracker.MaxTitle)
	if err != nil {
		return out, err
	}
	t, steps, err := w.checklist(ref)
	if err != nil {
		return out, err
	}
	if len(steps) >= tracker.MaxSteps {
		return out, invalid("title", "%s has %d steps, which is as many as there may be", t.Key, len(steps)).
			Next("make a subtask instead")
	}
	at := len(steps)
	if a.Index != nil {
		if at, err = place(*a.Index, len(steps)); err != nil {
			return out, err
		}
	}
	p := Step{ID: w.id(), Task: t.ID, Position: -1, Title: title}
	placed := w.renumber(slices.Insert(slices.Clone(steps), at, p))
	w.edit(t).StepsTotal++
	if err := w.log(t.ID, "step_added", map[string]tracker.Change{"title": {To: title}}); err != nil {
		return out, err
	}
	return w.stepOut(placed[at])
}

// place refuses an index behind the last step.
func place(index, most int) (int, error) {
	if index < 0 || index > most {
		return 0, invalid("index", "there is no place %d: they go from 0 to %d", index, most)
	}
	return index, nil
}

// renumber gives steps their positions, and keeps those that have changed.
func (w *work) renumber(steps []Step) []Step {
	for i := range steps {
		if steps[i].Position != i {
			steps[i].Position = i
			w.c.Steps = append(w.c.Steps, steps[i])
		}
	}
	return steps
}

// UpdateStep changes a step, or completes it.
func (s *Seat) UpdateStep(ctx context.Context, ref, which string, u tracker.UpdateStep) (out tracker.StepOut, err error) {
	if u.Empty() {
		u.Done = tracker.Some(true)
	}
	err = s.update(ctx, tracker.StepsWrite, func(w *work) error {
		t, steps, err := w.checklist(ref)
		if err != nil {
			return err
		}
		i, err := step(t, steps, which)
		if err != nil {
			return err
		}
		before := steps[i]
		p, err := w.changedStep(t, before, u)
		if err != nil {
			return err
		}
		if u.Index.Has() {
			if p.Position, err = place(u.Index.Value, len(steps)-1); err != nil {
				return err
			}
			w.moveStep(steps, i, p)
		} else if p != before {
			w.c.Steps = append(w.c.Steps, p)
		}
		if p != before {
			err = w.log(t.ID, "step_updated", map[string]tracker.Change{
				"title": {From: before.Title, To: p.Title}, "done": {From: before.Done, To: p.Done}, "index": {From: before.Position, To: p.Position},
			})
		}
		if err == nil {
			out, err = w.stepOut(p)
		}
		return err
	})
	return out, err
}

func (w *work) changedStep(t Task, p Step, u tracker.UpdateStep) (_ Step, err error) {
	if u.Title.Set {
		if p.Title, err = checkLine("title", u.Title.Value, tracker.MaxTitle); err != nil {
			return p, err
		}
	}
	if !u.Done.Has() || u.Done.Value == p.Done {
		return p, nil
	}
	p.Done = u.Done.Value
	if p.Done {
		p.DoneAt, p.DoneBy = w.now, w.me.Slug
		w.edit(t).StepsDone++
	} else {
		p.DoneAt, p.DoneBy = Step{}.DoneAt, ""
		w.edit(t).StepsDone--
	}
	return p, nil
}

// moveStep puts the step that was at i to the position that p has.
func (w *work) moveStep(steps []Step, i int, p Step) {
	at := p.Position
	p.Position = -1 // it is kept wherever it goes
	rest := slices.Delete(slices.Clone(steps), i, i+1)
	w.renumber(slices.Insert(rest, at, p))
}

// DeleteStep takes a step away.
func (s *Seat) DeleteStep(ctx context.Context, ref, which string) error {
	return s.update(ctx, tracker.StepsWrite, func(w *work) error {
		t, steps, err := w.checklist(ref)
		if err != nil {
			return err
		}
		i, err := step(t, steps, which)
		if err != nil {
			return err
		}
		gone := steps[i]
		w.c.GoneSteps = append(w.c.GoneSteps, gone.ID)
		w.renumber(slices.Delete(slices.Clone(steps), i, i+1))
		e := w.edit(t)
		e.StepsTotal--
		if gone.Done {
			e.StepsDone--
		}
		return w.log(t.ID, "step_deleted", map[string]tracker.Change{"title": {From: gone.Title}})
	})
}
