package board

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func (w *work) memberOut(m Member) (tracker.MemberOut, error) {
	out := tracker.MemberOut{
		ID: m.ID, Slug: m.Slug, Name: m.Name, Kind: m.Kind, Capabilities: list(m.Capabilities), Status: m.Status,
		Activity: activity(m), Presence: presence(m), CurrentTasks: list(m.CurrentTasks), Projects: []string{},
		Archived: m.Archived, CreatedAt: m.Created,
	}
	if !m.Seen.IsZero() {
		out.SeenAt = &m.Seen
	}
	for _, id := range m.Projects {
		p, err := w.project(id)
		if err != nil {
			return out, err
		}
		out.Projects = with(out.Projects, p.Slug)
	}
	return out, nil
}

func activity(m Member) string {
	if m.Busy {
		return tracker.Busy
	}
	return tracker.Idle
}

func presence(m Member) tracker.Presence {
	if m.Online {
		return tracker.Online
	}
	return tracker.Offline
}

// findMember returns the member with that id or slug; "me" is the caller.
func (w *work) findMember(ref string) (Member, error) {
	name := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(ref), "@"))
	if name == "me" {
		return w.me, nil
	}
	if checkText("member", name, tracker.MaxRef, true) != nil {
		return Member{}, notFound("member", ref)
	}
	m, err := w.r.Member(name)
	if errors.Is(err, ErrNotFound) {
		return m, notFound("member", ref)
	}
	if err == nil {
		w.members[m.Slug] = m
	}
	return m, err
}

// activeMember is findMember for somebody who is to do something.
func (w *work) activeMember(field, ref string) (Member, error) {
	m, err := w.findMember(ref)
	var missing *tracker.Error
	switch {
	case errors.As(err, &missing):
		return m, invalid(field, "no member %s", tracker.Quote(ref)).Next("list_members says who there is")
	case err == nil && m.Archived:
		return m, invalid(field, "the member %s is archived", tracker.Quote(m.Slug))
	}
	return m, err
}

// ListMembers implements [tracker.Members], as the methods below do.
func (s *Seat) ListMembers(ctx context.Context, q tracker.MemberQuery) (page tracker.Page[tracker.MemberOut], err error) {
	after, err := cursorOf(q.Paging)
	if err != nil {
		return page, err
	}
	kind, err := kindOf(q.Kind)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, tracker.MembersRead, func(w *work) error {
		limit := most(q.Limit)
		find := MemberQuery{Kind: kind, Archived: q.Archived, After: after, Limit: limit + 1}
		if q.Project != "" {
			p, err := w.project(q.Project)
			if err != nil {
				return err
			}
			find.Project = p.ID
		}
		all, err := w.r.Members(find)
		if err != nil {
			return err
		}
		out := make([]tracker.MemberOut, len(all))
		for i, m := range all {
			if out[i], err = w.memberOut(m); err != nil {
				return err
			}
		}
		page = pageOf(out, limit, func(m tracker.MemberOut) string { return m.Slug })
		return nil
	})
	return page, err
}

// kindOf takes a kind, or nothing.
func kindOf(kind string) (tracker.Kind, error) {
	switch k := tracker.Kind(kind); k {
	case "", tracker.Human, tracker.Agent:
		return k, nil
	}
	return "", invalid("kind", "unknown kind %s", tracker.Quote(kind)).Next("use one of: human, agent")
}

// GetMember returns a member.
func (s *Seat) GetMember(ctx context.Context, ref string) (out tracker.MemberOut, err error) {
	err = s.view(ctx, tracker.MembersRead, func(w *work) error {
		m, err := w.findMember(ref)
		if err == nil {
			out, err = w.memberOut(m)
		}
		return err
	})
	return out, err
}

// CreateMember makes a member.
func (s *Seat) CreateMember(ctx context.Context, c tracker.CreateMember) (out tracker.MemberOut, err error) {
	err = s.update(ctx, tracker.Admin, func(w *work) error {
		out, err = once(w, c.IdempotencyKey, "create member", c, func() (out tracker.MemberOut, err error) {
			if err = w.free("member", c.Slug, func() error { _, err := w.r.Member(c.Slug); return err }); err != nil {
				return out, err
			}
			m, err := w.addMember(c)
			if err == nil {
				out, err = w.memberOut(m)
			}
			return out, err
		})
		return err
	})
	return out, err
}

func (w *work) addMember(c tracker.CreateMember) (m Member, err error) {
	m = Member{ID: w.id(), Slug: c.Slug, Name: c.Name, Kind: c.Kind, Created: w.now}
	if err = checkSlug(c.Slug); err != nil {
		return m, err
	}
	if m.Kind, err = kindOf(string(c.Kind)); err == nil && m.Kind == "" {
		m.Kind = tracker.Agent
	}
	if err == nil && m.Name == "" {
		m.Name = m.Slug
	} else if err == nil {
		m.Name, err = checkLine("name", m.Name, tracker.MaxName)
	}
	if err == nil {
		m.Capabilities, err = checkWords("capabilities", c.Capabilities)
	}
	if err == nil {
		m.Projects, err = w.projectIDs(c.Projects)
	}
	w.setMember(m)
	return m, err
}

func (w *work) projectIDs(refs []string) (ids []string, err error) {
	if len(refs) > tracker.MaxLabels {
		return nil, invalid("projects", "%d projects, at most %d are allowed: none means all of them", len(refs), tracker.MaxLabels)
	}
	for _, ref := range refs {
		p, err := w.project(ref)
		if err != nil {
			return nil, err
		}
		ids = with(ids, p.ID)
	}
	return ids, nil
}

// UpdateMember changes a member.
func (s *Seat) UpdateMember(ctx context.Context, ref string, u tracker.UpdateMember) (out tracker.MemberOut, err error) {
	scope := tracker.Admin
	if onlyStatus := (tracker.UpdateMember{Status: u.Status}); (ref == "me" || ref == s.caller.Slug) && u.Status.Has() && !anyOther(u) {
		u, scope = onlyStatus, tracker.MembersSelf
	}
	err = s.update(ctx, scope, func(w *work) error {
		m, err := w.findMember(ref)
		if err == nil {
			m, err = w.changeMember(m, u)
		}
		if err != nil {
			return err
		}
		w.setMember(m)
		out, err = w.memberOut(m)
		return err
	})
	return out, err
}

// anyOther reports whether more than the status is to change.
func anyOther(u tracker.UpdateMember) bool {
	return u.Name.Set || u.Capabilities.Set || u.Projects.Set || u.Archived.Set
}

func (w *work) changeMember(m Member, u tracker.UpdateMember) (_ Member, err error) {
	if u.Name.Has() {
		m.Name, err = checkLine("name", u.Name.Value, tracker.MaxName)
	}
	if err == nil && u.Capabilities.Set {
		m.Capabilities, err = checkWords("capabilities", u.Capabilities.Value)
	}
	if err == nil && u.Projects.Set {
		m.Projects, err = w.projectIDs(u.Projects.Value)
	}
	if err == nil && u.Status.Set {
		m, err = w.changeStatus(m, u.Status.Value)
	}
	if u.Archived.Has() {
		m.Archived = u.Archived.Value
		if m.Archived && m.Slug == w.me.Slug {
			err = tracker.Errorf(tracker.CodeConflict, "nobody archives themselves")
		}
	}
	return m, err
}

// changeStatus sets what a member says of itself.
func (w *work) changeStatus(m Member, status string) (Member, error) {
	status = strings.TrimSpace(status)
	if n := utf8.RuneCountInString(status); n > tracker.MaxStatusText {
		return m, invalid("status", "the status has %d characters, at most %d are allowed", n, tracker.MaxStatusText)
	}
	if status != "" {
		if _, err := checkLine("status", status, 4*tracker.MaxStatusText); err != nil {
			return m, err
		}
	}
	if m.Status != status {
		m.Status, m.Announce, m.Changed = status, true, w.now
	}
	return m, nil
}

// UpdateMyStatus changes the caller's status.
func (s *Seat) UpdateMyStatus(ctx context.Context, my tracker.MyStatus) (tracker.MyStatus, error) {
	out, err := s.UpdateMember(ctx, "me", tracker.UpdateMember{Status: tracker.Some(my.Status)})
	return tracker.MyStatus{Status: out.Status}, err
}
