package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// What an event may be of, in bytes. A tracker sends less.
const (
	maxEventID = 256
	maxData    = 1 << 20
	maxHeard   = 128 << 10 // of one that is kept for a prompt
)

// ErrEvent refuses an event that cannot be told from others.
var ErrEvent = errors.New("no such event can be kept")

// news is what an event says, as far as anything is decided by it.
type news struct {
	about About
	task  subject
	chat  string
	// unblocked are the agent's tasks that wait for nothing any more.
	unblocked []subject
	// took: the agent took the task itself.
	took bool
	// fault: the data is not what such an event has.
	fault error
}

// subject is a task as an event names it. Whatever is decided by it is asked of the tracker
// again before anything happens.
type subject struct {
	ID       string         `json:"id"`
	TaskID   string         `json:"task_id"`
	Key      string         `json:"key"`
	Title    string         `json:"title"`
	Status   tracker.Status `json:"status"`
	To       tracker.Status `json:"to"`
	Version  int64          `json:"version"`
	Assignee *struct {
		Slug string `json:"slug"`
	} `json:"assignee"`
	AssigneeSlug *string `json:"assignee_slug"`
}

// tidy makes the names of the task one, and refuses what can be no name.
func (s *subject) tidy() error {
	for _, ref := range []string{s.TaskID, s.Key} {
		if s.ID == "" {
			s.ID = ref
		}
	}
	if s.ID == "" {
		return errors.New("it names no task")
	}
	for _, ref := range []string{s.ID, s.Key} {
		if len(ref) > tracker.MaxRef {
			return fmt.Errorf("a task is named with %d bytes, at most %d are allowed", len(ref), tracker.MaxRef)
		}
	}
	if strings.ContainsFunc(s.ID, isBreak) {
		return errors.New("a task is named with spaces or with what is not seen")
	}
	s.Key, s.Title = oneLine(s.Key, tracker.MaxRef), oneLine(s.Title, tracker.MaxTitle)
	return nil
}

// isOf reports whether the task is somebody's. An event that does not say whose it is was
// sent to whom it concerns.
func (s *subject) isOf(slug string) bool {
	switch {
	case s.AssigneeSlug != nil:
		return *s.AssigneeSlug == slug
	case s.Assignee != nil:
		return s.Assignee.Slug == slug
	}
	return true
}

func (s *subject) owner() string {
	switch {
	case s.AssigneeSlug != nil:
		return *s.AssigneeSlug
	case s.Assignee != nil:
		return s.Assignee.Slug
	}
	return ""
}

// body is the data of every event there is. The task of one stands in a member or is the
// data itself.
type body struct {
	subject
	Task  json.RawMessage `json:"task"`
	Actor struct {
		Slug string `json:"slug"`
	} `json:"actor"`
	AuthorSlug string `json:"author_slug"`
	Author     struct {
		Slug string `json:"slug"`
	} `json:"author"`
	Mentions  []string  `json:"mentions"`
	System    bool      `json:"system"`
	ChatID    string    `json:"chat_id"`
	Unblocked []subject `json:"unblocked"`
}

// checkFrame refuses an event that has no id to know it by, or is larger than any.
func checkFrame(f tracker.EventFrame) error {
	switch {
	case f.ID == "" || len(f.ID) > maxEventID:
		return fmt.Errorf("%w: an id of %d bytes, allowed are 1 to %d", ErrEvent, len(f.ID), maxEventID)
	case len(f.Data) > maxData:
		return fmt.Errorf("%w: %d bytes of data, at most %d", ErrEvent, len(f.Data), maxData)
	}
	return nil
}

// read finds out what an event says to an agent.
func read(f tracker.EventFrame, slug string) news {
	n := news{about: About{Event: tracker.CanonicalEvent(f.Event, f.Data)}}
	var b body
	if data := bytes.TrimSpace(f.Data); len(data) > 0 {
		if n.fault = json.Unmarshal(data, &b); n.fault != nil {
			return n
		}
	}
	n.about.Own = slug == firstOf(b.Actor.Slug, b.AuthorSlug, b.Author.Slug)
	n.about.Mentioned = !b.System && slices.Contains(b.Mentions, slug)
	n.about.All = !b.System && slices.Contains(b.Mentions, tracker.All)
	switch n.about.Event {
	case tracker.EventChatMessage:
		n.chat = oneLine(b.ChatID, tracker.MaxRef)
	case tracker.EventTaskComment:
		n.fault = n.readTask(b, slug)
	case tracker.EventTaskAssigned, tracker.EventTaskTaken, tracker.EventTaskStatus, tracker.EventTaskRejected:
		n.fault = n.readTask(b, slug)
		n.took = n.about.Event == tracker.EventTaskAssigned && n.about.Own && n.about.Mine && n.task.Status == tracker.InProgress
		n.readUnblocked(b, slug)
	}
	return n
}

func (n *news) readTask(b body, slug string) error {
	n.task = b.subject
	if len(b.Task) > 0 && b.Task[0] == '{' {
		n.task = subject{}
		if err := json.Unmarshal(b.Task, &n.task); err != nil {
			return err
		}
	} else if n.about.Event == tracker.EventTaskComment {
		n.task.ID = "" // it is the message's
	}
	n.about.Mine = n.task.isOf(slug)
	return n.task.tidy()
}

// readUnblocked keeps those of the agent. One that is named badly is found when the tasks
// are listed the next time.
func (n *news) readUnblocked(b body, slug string) {
	if n.about.Event != tracker.EventTaskStatus {
		return
	}
	for _, u := range b.Unblocked {
		if u.owner() == slug && u.tidy() == nil {
			n.unblocked = append(n.unblocked, u)
		}
	}
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// oneLine is a foreign text as one line of at most so many bytes.
func oneLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\ufffd"), isBreak), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-len("…")], "") + "…"
	}
	return text
}
