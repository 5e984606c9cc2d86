package board

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// oneRef refuses any number of references but one.
func oneRef(names string, refs ...string) error {
	n := 0
	for _, ref := range refs {
		if ref != "" {
			n++
		}
	}
	if n == 1 {
		return nil
	}
	return tracker.Errorf(tracker.CodeInvalid, "%d of %s were given", n, names).Next("give exactly one of them")
}

// where is where a message stands: in a chat or at a task.
type where struct {
	chat Chat
	task Task
}

// where finds where messages stand, if the caller may read there.
func (w *work) where(chat, task string) (at where, err error) {
	if chat != "" {
		at.chat, err = w.chat(chat)
		return at, err
	}
	at.task, err = w.task(task, "")
	return at, err
}

// message returns one message, if the caller may read where it stands.
func (w *work) message(ref string) (Message, where, error) {
	id := strings.ToLower(strings.TrimSpace(ref))
	if !isID(id) {
		return Message{}, where{}, notFound("message", ref)
	}
	all, err := w.r.Messages(MessageQuery{ID: id, Limit: 1})
	if err != nil {
		return Message{}, where{}, err
	}
	if len(all) == 0 {
		return Message{}, where{}, notFound("message", ref)
	}
	at, err := w.where(all[0].Chat, all[0].Task)
	var refused *tracker.Error
	if errors.As(err, &refused) && refused.Code == tracker.CodeNotFound {
		err = notFound("message", ref)
	}
	return all[0], at, err
}

// messageOuts shows messages with their files.
func (w *work) messageOuts(all []Message) ([]tracker.MessageOut, error) {
	people, ids := map[string]bool{}, make([]string, len(all))
	for i, m := range all {
		people[m.Author], ids[i] = true, m.ID
	}
	if err := w.learn(people); err != nil {
		return nil, err
	}
	files := map[string][]tracker.AttachmentOut{}
	if len(all) > 0 {
		attached, err := w.r.Attachments(AttachmentQuery{Messages: ids})
		if err != nil {
			return nil, err
		}
		for _, a := range attached {
			files[a.Message] = append(files[a.Message], attachmentOut(a))
		}
	}
	out := make([]tracker.MessageOut, len(all))
	for i, m := range all {
		author, err := w.ref(m.Author)
		if err != nil {
			return nil, err
		}
		out[i] = tracker.MessageOut{
			ID: m.ID, ChatID: pointer(m.Chat), TaskID: pointer(m.Task), ParentID: pointer(m.Parent), Author: author, AuthorSlug: m.Author,
			Content: m.Content, Mentions: list(m.Mentions), Attachments: files[m.ID], System: m.System, CreatedAt: m.Created,
		}
		if out[i].Attachments == nil {
			out[i].Attachments = []tracker.AttachmentOut{}
		}
	}
	return out, nil
}

// ListMessages implements [tracker.Messages], as the methods below do.
func (s *Seat) ListMessages(ctx context.Context, q tracker.MessageQuery) (page tracker.Page[tracker.MessageOut], err error) {
	if err := oneRef("chat_id, task_id and parent_id", q.ChatID, q.TaskID, q.ParentID); err != nil {
		return page, err
	}
	before, err := cursorOf(q.Paging)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, tracker.MessagesRead, func(w *work) error {
		limit := most(q.Limit)
		find, err := w.messageQuery(q)
		if err != nil {
			return err
		}
		find.Before, find.Limit = before, limit+1
		all, err := w.r.Messages(find)
		if err != nil {
			return err
		}
		cut := pageOf(all, limit, func(m Message) string { return m.ID })
		slices.Reverse(cut.Items)
		page.NextCursor = cut.NextCursor
		page.Items, err = w.messageOuts(cut.Items)
		return err
	})
	return page, err
}

func (w *work) messageQuery(q tracker.MessageQuery) (find MessageQuery, err error) {
	if q.ParentID != "" {
		parent, _, err := w.message(q.ParentID)
		return MessageQuery{Parent: parent.ID}, err
	}
	at, err := w.where(q.ChatID, q.TaskID)
	return MessageQuery{Chat: at.chat.ID, Task: at.task.ID}, err
}

// GetMessage returns a message.
func (s *Seat) GetMessage(ctx context.Context, id string) (out tracker.MessageOut, err error) {
	err = s.view(ctx, tracker.MessagesRead, func(w *work) error {
		m, _, err := w.message(id)
		if err != nil {
			return err
		}
		all, err := w.messageOuts([]Message{m})
		if err == nil {
			out = all[0]
		}
		return err
	})
	return out, err
}

// SendMessage sends a message.
func (s *Seat) SendMessage(ctx context.Context, in tracker.SendMessage) (out tracker.MessageOut, err error) {
	if err := oneRef("chat_id and task_id", in.ChatID, in.TaskID); err != nil {
		return out, err
	}
	err = s.update(ctx, tracker.MessagesWrite, func(w *work) error {
		out, err = once(w, in.IdempotencyKey, "send message", in, func() (out tracker.MessageOut, err error) {
			at, err := w.where(in.ChatID, in.TaskID)
			if err != nil {
				return out, err
			}
			return w.send(at, "", in.Content, in.Mentions)
		})
		return err
	})
	return out, err
}

// ReplyMessage answers a message.
func (s *Seat) ReplyMessage(ctx context.Context, parent string, in tracker.Reply) (out tracker.MessageOut, err error) {
	err = s.update(ctx, tracker.MessagesWrite, func(w *work) error {
		out, err = once(w, in.IdempotencyKey, "reply "+parent, in, func() (out tracker.MessageOut, err error) {
			m, at, err := w.message(parent)
			if err != nil {
				return out, err
			}
			return w.send(at, m.ID, in.Content, in.Mentions)
		})
		return err
	})
	return out, err
}

func (w *work) send(at where, parent, content string, mentions []string) (out tracker.MessageOut, err error) {
	if err := checkText("content", content, tracker.MaxMessage, true); err != nil {
		return out, err
	}
	if at.chat.Archived {
		return out, tracker.Errorf(tracker.CodeConflict, "the chat %s is archived", tracker.Quote(at.chat.Slug))
	}
	named, unresolved, err := w.mentions(at, content, mentions)
	if err != nil {
		return out, err
	}
	m := Message{
		ID: w.id(), Chat: at.chat.ID, Task: at.task.ID, Parent: parent, Author: w.me.Slug, Content: content, Mentions: named, Created: w.now,
	}
	w.c.Messages = append(w.c.Messages, m)
	all, err := w.messageOuts([]Message{m})
	if err != nil {
		return out, err
	}
	out = all[0]
	if at.chat.ID != "" {
		err = w.tellChat(at.chat, out)
	} else {
		err = w.tellComment(at.task, out)
	}
	out.UnresolvedMentions = unresolved
	return out, err
}

// mentions says who is meant, and which names are nobody's who could read it.
func (w *work) mentions(at where, content string, explicit []string) (named, unresolved []string, err error) {
	slugs := mentioned(content)
	if explicit != nil {
		if slugs, err = checkList("mentions", explicit, tracker.MaxMentions, tracker.MaxSlug+1); err != nil {
			return nil, nil, err
		}
	}
	for _, slug := range slugs {
		slug = strings.ToLower(strings.TrimPrefix(slug, "@"))
		if slug == tracker.All {
			named = appendOnce(named, slug)
			continue
		}
		m, err := w.member(slug)
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && (m.Archived || !reads(at.chat, slug)) || len(named) >= tracker.MaxMentions:
			unresolved = appendOnce(unresolved, slug)
		case err != nil:
			return nil, nil, err
		default:
			named = appendOnce(named, slug)
		}
		if len(unresolved) >= tracker.MaxMentions {
			break
		}
	}
	return named, unresolved, nil
}

// tellChat tells the agents in a chat.
func (w *work) tellChat(c Chat, out tracker.MessageOut) error {
	to := c.Members
	if len(to) == 0 {
		var err error
		if to, err = w.agents(); err != nil {
			return err
		}
	}
	w.tell(tracker.EventChatMessage, tracker.ChatMessage{MessageOut: out, MessageID: out.ID}, to...)
	return nil
}

// tellComment tells those who follow a task and those who are meant, who all follow it from
// now on.
func (w *work) tellComment(t Task, out tracker.MessageOut) error {
	e := w.edit(t)
	for _, slug := range append(slices.Clone(out.Mentions), w.me.Slug) {
		if slug != tracker.All {
			e.Watchers = with(e.Watchers, slug)
		}
	}
	w.tell(tracker.EventTaskComment, tracker.TaskComment{
		MessageOut: out, MessageID: out.ID,
		Task: tracker.TaskShort{ID: t.ID, Key: t.Key, Title: t.Title, Status: t.Status, AssigneeSlug: t.Assignee},
	}, append(slices.Clone(e.Watchers), t.Assignee, t.Creator)...)
	return w.log(t.ID, "commented", map[string]tracker.Change{"message_id": {To: out.ID}})
}

// systemComment writes down at a task what the caller did.
func (w *work) systemComment(t Task, content string) {
	w.c.Messages = append(w.c.Messages, Message{
		ID: w.id(), Task: t.ID, Author: w.me.Slug, Content: content, System: true, Created: w.now,
	})
}
