package board

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// reads reports whether a member may read a chat.
func reads(c Chat, member string) bool {
	return len(c.Members) == 0 || slices.Contains(c.Members, member)
}

// chat returns the chat with that id or slug, if the caller may read it.
func (w *work) chat(ref string) (Chat, error) {
	name := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(ref), "#"))
	if checkText("chat", name, tracker.MaxRef, true) != nil {
		return Chat{}, notFound("chat", ref)
	}
	c, err := w.r.Chat(name)
	if errors.Is(err, ErrNotFound) || err == nil && !reads(c, w.me.Slug) && !w.caller.Has(tracker.Admin) {
		return Chat{}, notFound("chat", ref)
	}
	return c, err
}

func (w *work) chatOut(c Chat) (tracker.ChatOut, error) {
	out := tracker.ChatOut{ID: c.ID, Slug: c.Slug, Name: c.Name, Members: list(c.Members), Archived: c.Archived, CreatedAt: c.Created}
	if c.Project == "" {
		return out, nil
	}
	p, err := w.project(c.Project)
	out.Project = &tracker.ProjectRef{ID: p.ID, Slug: p.Slug}
	return out, err
}

// ListChats implements [tracker.Chats], as the methods below do.
func (s *Seat) ListChats(ctx context.Context, q tracker.ChatQuery) (page tracker.Page[tracker.ChatOut], err error) {
	after, err := cursorOf(q.Paging)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, tracker.MessagesRead, func(w *work) error {
		limit := most(q.Limit)
		find := ChatQuery{Archived: q.Archived, After: after, Limit: limit + 1}
		if !w.caller.Has(tracker.Admin) {
			find.Member = w.me.Slug
		}
		if q.Project != "" {
			p, err := w.project(q.Project)
			if err != nil {
				return err
			}
			find.Project = p.ID
		}
		all, err := w.r.Chats(find)
		out := make([]tracker.ChatOut, len(all))
		for i := 0; i < len(all) && err == nil; i++ {
			out[i], err = w.chatOut(all[i])
		}
		page = pageOf(out, limit, func(c tracker.ChatOut) string { return c.Slug })
		return err
	})
	return page, err
}

// GetChat returns a chat.
func (s *Seat) GetChat(ctx context.Context, ref string) (out tracker.ChatOut, err error) {
	err = s.view(ctx, tracker.MessagesRead, func(w *work) error {
		c, err := w.chat(ref)
		if err == nil {
			out, err = w.chatOut(c)
		}
		return err
	})
	return out, err
}

// CreateChat makes a chat.
func (s *Seat) CreateChat(ctx context.Context, in tracker.CreateChat) (out tracker.ChatOut, err error) {
	err = s.update(ctx, tracker.Admin, func(w *work) error {
		out, err = once(w, in.IdempotencyKey, "create chat", in, func() (tracker.ChatOut, error) {
			c, err := w.addChat(in)
			if err != nil {
				return tracker.ChatOut{}, err
			}
			return w.chatOut(c)
		})
		return err
	})
	return out, err
}

func (w *work) addChat(in tracker.CreateChat) (c Chat, err error) {
	c = Chat{ID: w.id(), Slug: in.Slug, Name: in.Name, Created: w.now}
	if err = checkSlug(in.Slug); err != nil {
		return c, err
	}
	if err = w.free("chat", in.Slug, func() error { _, err := w.r.Chat(in.Slug); return err }); err != nil {
		return c, err
	}
	if in.Name == "" {
		c.Name = in.Slug
	} else if c.Name, err = checkLine("name", in.Name, tracker.MaxName); err != nil {
		return c, err
	}
	if in.Project != "" {
		p, err := w.openProject(in.Project)
		if err != nil {
			return c, err
		}
		c.Project = p.ID
	}
	c.Members, err = w.chatMembers(in.Members)
	w.c.Chats = append(w.c.Chats, c)
	return c, err
}

const mostInChat = 1000

func (w *work) chatMembers(refs []string) (slugs []string, err error) {
	if len(refs) > mostInChat {
		return nil, invalid("members", "%d members, at most %d are allowed: none means everybody", len(refs), mostInChat)
	}
	for _, ref := range refs {
		m, err := w.activeMember("members", ref)
		if err != nil {
			return nil, err
		}
		slugs = with(slugs, m.Slug)
	}
	return slugs, nil
}

// UpdateChat changes a chat.
func (s *Seat) UpdateChat(ctx context.Context, ref string, u tracker.UpdateChat) (out tracker.ChatOut, err error) {
	err = s.update(ctx, tracker.Admin, func(w *work) error {
		c, err := w.chat(ref)
		if err == nil && u.Name.Has() {
			c.Name, err = checkLine("name", u.Name.Value, tracker.MaxName)
		}
		if err == nil && u.Members.Set {
			c.Members, err = w.chatMembers(u.Members.Value)
		}
		if err != nil {
			return err
		}
		if u.Archived.Has() {
			c.Archived = u.Archived.Value
		}
		w.c.Chats = append(w.c.Chats, c)
		out, err = w.chatOut(c)
		return err
	})
	return out, err
}
