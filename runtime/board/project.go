package board

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func projectOut(p Project) tracker.ProjectOut {
	return tracker.ProjectOut{
		ID: p.ID, Slug: p.Slug, Key: p.Key, Name: p.Name, Description: p.Description, Archived: p.Archived, CreatedAt: p.Created,
	}
}

// project returns the project with that id, slug or key.
func (w *work) project(ref string) (Project, error) {
	if p, ok := w.projects[ref]; ok {
		return p, nil
	}
	name := strings.ToLower(strings.TrimSpace(ref))
	if len(name) > tracker.MaxRef || checkText("project", name, tracker.MaxRef, true) != nil {
		return Project{}, notFound("project", ref)
	}
	p, err := w.r.Project(name)
	if errors.Is(err, ErrNotFound) {
		return p, notFound("project", ref)
	}
	if err == nil {
		w.projects[ref], w.projects[p.ID] = p, p
	}
	return p, err
}

// openProject is project, and refuses one that is archived.
func (w *work) openProject(ref string) (Project, error) {
	p, err := w.project(ref)
	if err == nil && p.Archived {
		err = tracker.Errorf(tracker.CodeConflict, "the project %s is archived", tracker.Quote(p.Slug))
	}
	return p, err
}

// ListProjects implements [tracker.Projects], as the methods below do.
func (s *Seat) ListProjects(ctx context.Context, q tracker.ProjectQuery) (page tracker.Page[tracker.ProjectOut], err error) {
	after, err := cursorOf(q.Paging)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, tracker.ProjectsRead, func(w *work) error {
		limit := most(q.Limit)
		all, err := w.r.Projects(ProjectQuery{Archived: q.Archived, After: after, Limit: limit + 1})
		out := make([]tracker.ProjectOut, len(all))
		for i, p := range all {
			out[i] = projectOut(p)
		}
		page = pageOf(out, limit, func(p tracker.ProjectOut) string { return p.Slug })
		return err
	})
	return page, err
}

// GetProject returns a project.
func (s *Seat) GetProject(ctx context.Context, ref string) (out tracker.ProjectOut, err error) {
	err = s.view(ctx, tracker.ProjectsRead, func(w *work) error {
		p, err := w.project(ref)
		out = projectOut(p)
		return err
	})
	return out, err
}

// CreateProject makes a project.
func (s *Seat) CreateProject(ctx context.Context, c tracker.CreateProject) (out tracker.ProjectOut, err error) {
	err = s.update(ctx, tracker.Admin, func(w *work) error {
		out, err = once(w, c.IdempotencyKey, "create project", c, func() (tracker.ProjectOut, error) {
			p, err := w.addProject(c)
			return projectOut(p), err
		})
		return err
	})
	return out, err
}

func (w *work) addProject(c tracker.CreateProject) (Project, error) {
	p := Project{ID: w.id(), Slug: c.Slug, Name: c.Name, Description: c.Description, Created: w.now}
	err := checkSlug(c.Slug)
	if err == nil {
		err = w.free("project", c.Slug, func() error { _, err := w.r.Project(c.Slug); return err })
	}
	if err == nil && c.Name == "" {
		p.Name = c.Slug
	} else if err == nil {
		p.Name, err = checkLine("name", c.Name, tracker.MaxName)
	}
	if err == nil {
		err = checkText("description", c.Description, tracker.MaxDescription, false)
	}
	if err == nil {
		p.Key, err = w.key(c)
	}
	w.c.Projects = append(w.c.Projects, p)
	return p, err
}

// free refuses a slug for which look finds something.
func (w *work) free(what, slug string, look func() error) error {
	err := look()
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return tracker.Errorf(tracker.CodeExists, "there is a %s %s", what, tracker.Quote(slug)).With("slug", slug)
}

const mostKey = 10

// key returns the key that is asked for, or makes one that is free.
func (w *work) key(c tracker.CreateProject) (string, error) {
	if c.Key != "" {
		key := strings.ToUpper(c.Key)
		if !isProjectKey(key) {
			return "", invalid("key", "the key is %s", tracker.Quote(c.Key)).Next("use a letter, then letters and digits, at most 10")
		}
		taken, err := w.taken(key)
		if taken {
			err = tracker.Errorf(tracker.CodeExists, "another project has the key %s", key)
		}
		return key, err
	}
	base := keyOf(c.Slug)
	for n := 1; n < 1000; n++ {
		key := base
		if n > 1 {
			key += strconv.Itoa(n)
		}
		if taken, err := w.taken(key); err != nil || !taken {
			return key, err
		}
	}
	return "", tracker.Errorf(tracker.CodeExists, "no key is free that begins with %s", base).Next("name one")
}

func (w *work) taken(key string) (bool, error) {
	all, err := w.r.Projects(ProjectQuery{Archived: true, Key: key, Limit: 1})
	return len(all) > 0, err
}

// keyOf makes TB of team-board and TE of team.
func keyOf(slug string) string {
	words := strings.FieldsFunc(strings.ToUpper(slug), func(r rune) bool { return r == '-' || r == '_' })
	var key strings.Builder
	for _, word := range words {
		key.WriteByte(word[0])
	}
	out := key.String()
	if len(words) == 1 {
		out = words[0][:min(2, len(words[0]))]
	}
	if out[0] <= '9' {
		out = "P" + out
	}
	return out[:min(len(out), mostKey-3)] // room for a number
}

func isProjectKey(key string) bool {
	for i, c := range key {
		if (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return key != "" && len(key) <= mostKey
}

// UpdateProject changes a project.
func (s *Seat) UpdateProject(ctx context.Context, ref string, u tracker.UpdateProject) (out tracker.ProjectOut, err error) {
	err = s.update(ctx, tracker.Admin, func(w *work) error {
		p, err := w.project(ref)
		if err == nil && u.Name.Has() {
			p.Name, err = checkLine("name", u.Name.Value, tracker.MaxName)
		}
		if err == nil && u.Description.Set {
			p.Description, err = u.Description.Value, checkText("description", u.Description.Value, tracker.MaxDescription, false)
		}
		if u.Archived.Has() {
			p.Archived = u.Archived.Value
		}
		w.c.Projects = append(w.c.Projects, p)
		out = projectOut(p)
		return err
	})
	return out, err
}
