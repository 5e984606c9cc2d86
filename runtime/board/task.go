package board

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// task returns the task that ref names: its id, its key, or #15 or 15, which are looked for
// in one project if there is one.
func (w *work) task(ref, project string) (Task, error) {
	name := strings.TrimSpace(ref)
	if checkText("task", name, tracker.MaxRef, true) != nil {
		return Task{}, notFound("task", ref)
	}
	if number, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 63); err == nil {
		return w.numbered(ref, int64(number), project)
	}
	if lower := strings.ToLower(name); isID(lower) {
		name = lower
	} else {
		name = strings.ToUpper(name)
	}
	t, err := w.r.Task(name)
	if errors.Is(err, ErrNotFound) {
		return t, noTask(ref)
	}
	return w.latest(t), err
}

// latest is the task as this work has changed it.
func (w *work) latest(t Task) Task {
	if have := w.tasks[t.ID]; have != nil {
		return *have
	}
	return t
}

func noTask(ref string) *tracker.Error {
	return notFound("task", ref).Next("list_tasks says which there are; a task is named by its id or by its key, like TE-15")
}

// numbered returns the one task with that number.
func (w *work) numbered(ref string, number int64, project string) (Task, error) {
	if number == 0 {
		return Task{}, noTask(ref)
	}
	const enough = 10 // to see that a name means nothing
	all, err := w.r.Tasks(TaskQuery{Number: number, Project: project, Limit: enough})
	switch {
	case err != nil:
		return Task{}, err
	case len(all) == 1:
		return w.latest(all[0]), nil
	case len(all) == 0:
		return Task{}, noTask(ref)
	}
	keys := make([]string, len(all))
	for i, t := range all {
		keys[i] = t.Key
	}
	slices.Sort(keys)
	return Task{}, tracker.Errorf(tracker.CodeAmbiguous, "%s is several tasks", tracker.Quote(ref)).
		With("candidates", keys).Next("name one by its key: " + strings.Join(keys, ", "))
}

// taskOuts shows tasks.
func (w *work) taskOuts(all []Task) ([]tracker.TaskOut, error) {
	people, blockers := map[string]bool{}, map[string]string{}
	for _, t := range all {
		people[t.Assignee], people[t.Creator] = true, true
		for _, id := range t.Blockers {
			blockers[id] = ""
		}
	}
	if err := w.learn(people); err != nil {
		return nil, err
	}
	if err := w.keysOf(blockers); err != nil {
		return nil, err
	}
	out := make([]tracker.TaskOut, len(all))
	for i, t := range all {
		var err error
		if out[i], err = w.show(t, blockers); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// byID returns the tasks with those ids.
func (w *work) byID(ids []string) ([]Task, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return w.r.Tasks(TaskQuery{IDs: ids})
}

// keysOf puts keys to ids.
func (w *work) keysOf(ids map[string]string) error {
	var wanted []string
	for id := range ids {
		wanted = append(wanted, id)
	}
	slices.Sort(wanted)
	all, err := w.byID(wanted)
	for _, t := range all {
		ids[t.ID] = t.Key
	}
	return err
}

func (w *work) show(t Task, keys map[string]string) (tracker.TaskOut, error) {
	out := tracker.TaskOut{
		ID: t.ID, Key: t.Key, Number: t.Number, ParentID: pointer(t.Parent), Title: t.Title, Description: t.Description,
		Type: t.Type, Priority: t.Priority, Status: t.Status, Labels: list(t.Labels), AssigneeSlug: pointer(t.Assignee),
		Watchers: list(t.Watchers), BlockedBy: []string{}, Blocked: t.OpenBlockers > 0, RejectedBy: list(t.RejectedBy),
		StepsTotal: t.StepsTotal, StepsDone: t.StepsDone, Version: t.Version, CreatedAt: t.Created, UpdatedAt: t.Updated,
	}
	p, err := w.project(t.Project)
	if err != nil {
		return out, err
	}
	out.Project = tracker.ProjectRef{ID: p.ID, Slug: p.Slug}
	for _, id := range t.Blockers {
		out.BlockedBy = append(out.BlockedBy, keys[id])
	}
	if t.Assignee != "" {
		m, err := w.member(t.Assignee)
		if err != nil {
			return out, err
		}
		out.Assignee = &tracker.MemberRef{Slug: m.Slug, Kind: m.Kind, Name: m.Name, Presence: presence(m)}
	}
	out.Creator, err = w.ref(t.Creator)
	return out, err
}

// taskOut shows one task as it will be when the work is done.
func (w *work) taskOut(t Task) (tracker.TaskOut, error) {
	if before, ok := w.before[t.ID]; ok && visible(before, t) {
		t.Version++
		t.Updated = w.now
	}
	all, err := w.taskOuts([]Task{t})
	if err != nil {
		return tracker.TaskOut{}, err
	}
	return all[0], nil
}

// GetTask implements [tracker.Tasks], as the methods below do.
func (s *Seat) GetTask(ctx context.Context, ref string) (out tracker.TaskOut, err error) {
	err = s.view(ctx, tracker.TasksRead, func(w *work) error {
		t, err := w.task(ref, "")
		if err == nil {
			out, err = w.taskOut(t)
		}
		return err
	})
	return out, err
}

// CreateTask makes a task.
func (s *Seat) CreateTask(ctx context.Context, c tracker.CreateTask) (out tracker.TaskOut, err error) {
	err = s.update(ctx, tracker.TasksWrite, func(w *work) error {
		out, err = once(w, c.IdempotencyKey, "create task", c, func() (tracker.TaskOut, error) { return w.createTask(c) })
		return err
	})
	return out, err
}

func (w *work) createTask(c tracker.CreateTask) (out tracker.TaskOut, err error) {
	p, err := w.openProject(c.Project)
	if err != nil {
		return out, err
	}
	p.LastNumber++
	w.c.Projects = append(w.c.Projects, p)
	t := Task{
		ID: w.id(), Key: p.Key + "-" + strconv.FormatInt(p.LastNumber, 10), Number: p.LastNumber, Project: p.ID,
		Description: c.Description, Status: tracker.Todo, Creator: w.me.Slug, Watchers: []string{w.me.Slug}, Created: w.now,
	}
	if err := w.fill(&t, c); err != nil {
		return out, err
	}
	edited := w.edit(t)
	if t.Assignee != "" {
		edited.Watchers = with(edited.Watchers, t.Assignee)
	}
	edited.Version, edited.Updated = 1, w.now
	w.fresh = t.ID
	w.before[t.ID] = cloned(*edited) // nothing of it has changed
	if err := w.log(t.ID, "created", nil); err != nil {
		return out, err
	}
	if out, err = w.taskOut(*edited); err == nil && t.Assignee != "" {
		w.tell(tracker.EventTaskAssigned, tracker.TaskAssigned{Task: out, Actor: w.myself()}, t.Assignee)
	}
	return out, err
}

// fill checks what a new task is to be.
func (w *work) fill(t *Task, c tracker.CreateTask) (err error) {
	if t.Title, err = checkLine("title", c.Title, tracker.MaxTitle); err != nil {
		return err
	}
	if err = checkText("description", c.Description, tracker.MaxDescription, false); err != nil {
		return err
	}
	if t.Type, err = tracker.ParseType(c.Type); err != nil {
		return err
	}
	if t.Priority, err = tracker.ParsePriority(c.Priority); err != nil {
		return err
	}
	if t.Labels, err = checkWords("labels", c.Labels); err != nil {
		return err
	}
	if c.Status != "" {
		if t.Status, err = tracker.ParseStatus(c.Status); err != nil {
			return err
		}
		if t.Status != tracker.Backlog && t.Status != tracker.Todo {
			return invalid("status", "a task begins in backlog or todo, not in %s", t.Status)
		}
	}
	if c.AssigneeSlug != "" {
		m, err := w.mayGive(c.AssigneeSlug)
		if err != nil {
			return err
		}
		t.Assignee = m.Slug
	}
	if c.ParentID != "" {
		if t.Parent, err = w.parentOf(*t, c.ParentID); err != nil {
			return err
		}
	}
	return w.setBlockers(t, c.BlockedBy)
}

// mayGive returns the member whom the caller wants to have a task.
func (w *work) mayGive(ref string) (Member, error) {
	m, err := w.activeMember("assignee_slug", ref)
	if err == nil && m.Slug != w.me.Slug && !w.caller.Has(tracker.TasksAssign) {
		err = tracker.Errorf(tracker.CodeForbidden, "giving a task to others needs the scope %s, which %s does not have",
			tracker.TasksAssign, tracker.Quote(w.me.Slug)).With("scope", tracker.TasksAssign)
	}
	return m, err
}

// mostDepth is how deep tasks may lie in tasks.
const mostDepth = 32

// parentOf returns the id of the task's parent, which is none of its own children.
func (w *work) parentOf(t Task, ref string) (string, error) {
	parent, err := w.task(ref, t.Project)
	if err != nil {
		return "", err
	}
	if parent.Project != t.Project {
		return "", invalid("parent_id", "%s is in another project", parent.Key)
	}
	above := parent
	for depth := 1; ; depth++ {
		if above.ID == t.ID {
			return "", tracker.Errorf(tracker.CodeCycle, "%s lies in %s already", parent.Key, t.Key).With("field", "parent_id")
		}
		if depth >= mostDepth {
			return "", invalid("parent_id", "%s lies %d deep, which is as deep as tasks may lie", parent.Key, mostDepth)
		}
		if above.Parent == "" {
			return parent.ID, nil
		}
		if above, err = w.r.Task(above.Parent); err != nil {
			return "", err
		}
	}
}

// DeleteTask takes a task away for good.
func (s *Seat) DeleteTask(ctx context.Context, ref string) error {
	return s.update(ctx, tracker.TasksWrite, func(w *work) error {
		t, err := w.task(ref, "")
		if err != nil {
			return err
		}
		if !w.caller.Has(tracker.TasksForce) && (t.Creator != w.me.Slug || t.Assignee != "" && t.Assignee != w.me.Slug) {
			return tracker.Errorf(tracker.CodeForbidden, "only who made a task that nobody else has deletes it, or who has the scope %s",
				tracker.TasksForce).Next("cancel it instead: status cancelled")
		}
		children, err := w.r.Tasks(TaskQuery{Parent: t.ID, Limit: 1})
		if err != nil {
			return err
		}
		if len(children) > 0 {
			return tracker.Errorf(tracker.CodeConflict, "%s has subtasks", t.Key).Next("delete those first, or cancel it: status cancelled")
		}
		w.c.GoneTasks = append(w.c.GoneTasks, t.ID)
		if err := w.log(t.ID, "deleted", map[string]tracker.Change{"key": {From: t.Key}, "title": {From: t.Title}}); err != nil {
			return err
		}
		return w.forget(t)
	})
}

// forget takes a task that is deleted out of what others wait for.
func (w *work) forget(t Task) error {
	waiting, err := w.r.Tasks(TaskQuery{Blocker: t.ID})
	if err != nil {
		return err
	}
	var freed []tracker.Unblocked
	for _, d := range waiting {
		e := w.edit(d)
		e.Blockers = without(e.Blockers, t.ID)
		if !t.Status.Closed() {
			if e.OpenBlockers--; e.OpenBlockers == 0 && !e.Status.Closed() {
				freed = append(freed, tracker.Unblocked{TaskID: e.ID, Key: e.Key, AssigneeSlug: e.Assignee, CancelledBlockers: []string{t.Key}})
			}
		}
	}
	return w.tellStatus(t, t.Status, tracker.Cancelled, freed)
}
