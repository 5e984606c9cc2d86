package trackerclient

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// params are those of a query that have a value: pairs of a name and a value.
func params(pairs ...string) url.Values {
	all := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all.Set(pairs[i], pairs[i+1])
		}
	}
	return all
}

func paged(p tracker.Paging, pairs ...string) url.Values {
	all := params(append(pairs, "cursor", p.Cursor)...)
	if p.Limit > 0 {
		all.Set("limit", strconv.Itoa(min(p.Limit, tracker.MaxPage)))
	}
	return all
}

func flag(on bool) string {
	if on {
		return "true"
	}
	return ""
}

// ListTasks implements [tracker.Tasks], as the methods below do.
func (c *Client) ListTasks(ctx context.Context, q tracker.TaskQuery) (tracker.Page[tracker.TaskOut], error) {
	return ask[tracker.Page[tracker.TaskOut]](ctx, c, get("tasks").with(paged(q.Paging,
		"project_id", q.Project, "status", strings.Join(q.Statuses, ","), "assignee", q.Assignee, "labels", strings.Join(q.Labels, ","),
		"type", q.Type, "priority", q.Priority, "parent_id", q.Parent, "creator", q.Creator, "watcher", q.Watcher, "q", q.Text, "ready", flag(q.Ready),
	)))
}

// GetTask reads a task.
func (c *Client) GetTask(ctx context.Context, task string) (tracker.TaskOut, error) {
	return ask[tracker.TaskOut](ctx, c, get("tasks", task))
}

// CreateTask makes a task, once.
func (c *Client) CreateTask(ctx context.Context, in tracker.CreateTask) (tracker.TaskOut, error) {
	return ask[tracker.TaskOut](ctx, c, post(in, in.IdempotencyKey, "tasks"))
}

// UpdateTask changes a task.
func (c *Client) UpdateTask(ctx context.Context, task string, u tracker.UpdateTask) (tracker.TaskOut, error) {
	q := patch(u, "tasks", task)
	q.match = u.IfMatch
	return ask[tracker.TaskOut](ctx, c, q)
}

// DeleteTask deletes a task.
func (c *Client) DeleteTask(ctx context.Context, task string) error {
	return tell(ctx, c, remove("tasks", task))
}

// TakeTask takes a task.
func (c *Client) TakeTask(ctx context.Context, task string, t tracker.TakeTask) (tracker.TaskOut, error) {
	return ask[tracker.TaskOut](ctx, c, post(t, t.IdempotencyKey, "tasks", task, "take"))
}

// RejectTask gives a task back.
func (c *Client) RejectTask(ctx context.Context, task string, r tracker.RejectTask) (tracker.Rejected, error) {
	return ask[tracker.Rejected](ctx, c, post(r, r.IdempotencyKey, "tasks", task, "reject"))
}

// ReleaseTask puts a task back.
func (c *Client) ReleaseTask(ctx context.Context, task string, r tracker.ReleaseTask) (tracker.TaskOut, error) {
	return ask[tracker.TaskOut](ctx, c, once(r, "tasks", task, "release"))
}

// WatchTask has a member told of a task.
func (c *Client) WatchTask(ctx context.Context, task string, w tracker.WatchTask) (tracker.Watching, error) {
	return ask[tracker.Watching](ctx, c, once(w, "tasks", task, "watchers"))
}

// UnwatchTask ends that.
func (c *Client) UnwatchTask(ctx context.Context, task, member string) (tracker.Watching, error) {
	return ask[tracker.Watching](ctx, c, remove("tasks", task, "watchers", member))
}

// AddDependency makes a task wait for another.
func (c *Client) AddDependency(ctx context.Context, task string, d tracker.AddDependency) (tracker.TaskOut, error) {
	return ask[tracker.TaskOut](ctx, c, once(d, "tasks", task, "dependencies"))
}

// RemoveDependency ends that.
func (c *Client) RemoveDependency(ctx context.Context, task, blocker string) (tracker.TaskOut, error) {
	return ask[tracker.TaskOut](ctx, c, remove("tasks", task, "dependencies", blocker))
}

// TaskActivity lists what happened to a task.
func (c *Client) TaskActivity(ctx context.Context, task string, p tracker.Paging) (tracker.Page[tracker.Activity], error) {
	return ask[tracker.Page[tracker.Activity]](ctx, c, get("tasks", task, "activity").with(paged(p)))
}

// ListSteps implements [tracker.Steps], as the methods below do.
func (c *Client) ListSteps(ctx context.Context, task string) ([]tracker.StepOut, error) {
	return ask[[]tracker.StepOut](ctx, c, get("tasks", task, "steps"))
}

// GetStep reads a step.
func (c *Client) GetStep(ctx context.Context, task, step string) (tracker.StepOut, error) {
	return ask[tracker.StepOut](ctx, c, get("tasks", task, "steps", step))
}

// AddStep adds a step, once.
func (c *Client) AddStep(ctx context.Context, task string, a tracker.AddStep) (tracker.StepOut, error) {
	return ask[tracker.StepOut](ctx, c, post(a, a.IdempotencyKey, "tasks", task, "steps"))
}

// UpdateStep changes a step.
func (c *Client) UpdateStep(ctx context.Context, task, step string, u tracker.UpdateStep) (tracker.StepOut, error) {
	return ask[tracker.StepOut](ctx, c, patch(u, "tasks", task, "steps", step))
}

// DeleteStep deletes a step.
func (c *Client) DeleteStep(ctx context.Context, task, step string) error {
	return tell(ctx, c, remove("tasks", task, "steps", step))
}

// ListMessages implements [tracker.Messages], as the methods below do.
func (c *Client) ListMessages(ctx context.Context, q tracker.MessageQuery) (tracker.Page[tracker.MessageOut], error) {
	r := get("messages", q.ParentID, "replies")
	switch {
	case q.ChatID != "":
		r = get("chats", q.ChatID, "messages")
	case q.TaskID != "":
		r = get("tasks", q.TaskID, "comments")
	}
	return ask[tracker.Page[tracker.MessageOut]](ctx, c, r.with(paged(q.Paging)))
}

// GetMessage reads a message.
func (c *Client) GetMessage(ctx context.Context, id string) (tracker.MessageOut, error) {
	return ask[tracker.MessageOut](ctx, c, get("messages", id))
}

// SendMessage sends a message, once.
func (c *Client) SendMessage(ctx context.Context, m tracker.SendMessage) (tracker.MessageOut, error) {
	if (m.ChatID == "") == (m.TaskID == "") {
		return tracker.MessageOut{}, tracker.Errorf(tracker.CodeInvalid, "a message goes to a chat or to a task").With("field", "chat_id")
	}
	body := tracker.Reply{Content: m.Content, Mentions: m.Mentions}
	if m.ChatID != "" {
		return ask[tracker.MessageOut](ctx, c, post(body, m.IdempotencyKey, "chats", m.ChatID, "messages"))
	}
	return ask[tracker.MessageOut](ctx, c, post(body, m.IdempotencyKey, "tasks", m.TaskID, "comments"))
}

// ReplyMessage answers a message, once.
func (c *Client) ReplyMessage(ctx context.Context, parent string, r tracker.Reply) (tracker.MessageOut, error) {
	return ask[tracker.MessageOut](ctx, c, post(r, r.IdempotencyKey, "messages", parent, "replies"))
}

// ListChats implements [tracker.Chats], as the methods below do.
func (c *Client) ListChats(ctx context.Context, q tracker.ChatQuery) (tracker.Page[tracker.ChatOut], error) {
	return ask[tracker.Page[tracker.ChatOut]](ctx, c, get("chats").with(paged(q.Paging, "project_id", q.Project, "archived", flag(q.Archived))))
}

// GetChat reads a chat.
func (c *Client) GetChat(ctx context.Context, chat string) (tracker.ChatOut, error) {
	return ask[tracker.ChatOut](ctx, c, get("chats", chat))
}

// CreateChat makes a chat, once.
func (c *Client) CreateChat(ctx context.Context, in tracker.CreateChat) (tracker.ChatOut, error) {
	return ask[tracker.ChatOut](ctx, c, post(in, in.IdempotencyKey, "chats"))
}

// UpdateChat changes a chat.
func (c *Client) UpdateChat(ctx context.Context, chat string, u tracker.UpdateChat) (tracker.ChatOut, error) {
	return ask[tracker.ChatOut](ctx, c, patch(u, "chats", chat))
}

// ListProjects implements [tracker.Projects], as the methods below do.
func (c *Client) ListProjects(ctx context.Context, q tracker.ProjectQuery) (tracker.Page[tracker.ProjectOut], error) {
	return ask[tracker.Page[tracker.ProjectOut]](ctx, c, get("projects").with(paged(q.Paging, "archived", flag(q.Archived))))
}

// GetProject reads a project.
func (c *Client) GetProject(ctx context.Context, project string) (tracker.ProjectOut, error) {
	return ask[tracker.ProjectOut](ctx, c, get("projects", project))
}

// CreateProject makes a project, once.
func (c *Client) CreateProject(ctx context.Context, in tracker.CreateProject) (tracker.ProjectOut, error) {
	return ask[tracker.ProjectOut](ctx, c, post(in, in.IdempotencyKey, "projects"))
}

// UpdateProject changes a project.
func (c *Client) UpdateProject(ctx context.Context, project string, u tracker.UpdateProject) (tracker.ProjectOut, error) {
	return ask[tracker.ProjectOut](ctx, c, patch(u, "projects", project))
}

// ListMembers implements [tracker.Members], as the methods below do.
func (c *Client) ListMembers(ctx context.Context, q tracker.MemberQuery) (tracker.Page[tracker.MemberOut], error) {
	return ask[tracker.Page[tracker.MemberOut]](ctx, c, get("members").with(paged(q.Paging,
		"project_id", q.Project, "kind", q.Kind, "archived", flag(q.Archived))))
}

// GetMember reads a member.
func (c *Client) GetMember(ctx context.Context, member string) (tracker.MemberOut, error) {
	return ask[tracker.MemberOut](ctx, c, get("members", member))
}

// CreateMember makes a member, once.
func (c *Client) CreateMember(ctx context.Context, in tracker.CreateMember) (tracker.MemberOut, error) {
	return ask[tracker.MemberOut](ctx, c, post(in, in.IdempotencyKey, "members"))
}

// UpdateMember changes a member.
func (c *Client) UpdateMember(ctx context.Context, member string, u tracker.UpdateMember) (tracker.MemberOut, error) {
	return ask[tracker.MemberOut](ctx, c, patch(u, "members", member))
}

// UpdateMyStatus changes the caller's status.
func (c *Client) UpdateMyStatus(ctx context.Context, my tracker.MyStatus) (tracker.MyStatus, error) {
	return ask[tracker.MyStatus](ctx, c, patch(my, "members", "me"))
}

// ListFiles implements [tracker.Files], as the methods below do.
func (c *Client) ListFiles(ctx context.Context, q tracker.FileQuery) (tracker.Page[tracker.AttachmentOut], error) {
	r := get("messages", q.MessageID, "files")
	switch {
	case q.TaskID != "":
		r = get("tasks", q.TaskID, "files")
	case q.ProjectID != "":
		r = get("projects", q.ProjectID, "files")
	}
	return ask[tracker.Page[tracker.AttachmentOut]](ctx, c, r.with(paged(q.Paging)))
}

// UploadFile keeps a file, once.
func (c *Client) UploadFile(ctx context.Context, in tracker.UploadFile) (tracker.AttachmentOut, error) {
	if (in.TaskID == "") == (in.MessageID == "") {
		return tracker.AttachmentOut{}, tracker.Errorf(tracker.CodeInvalid, "a file is kept at a task or at a message").With("field", "task_id")
	}
	if in.TaskID != "" {
		return ask[tracker.AttachmentOut](ctx, c, post(in, in.IdempotencyKey, "tasks", in.TaskID, "files"))
	}
	return ask[tracker.AttachmentOut](ctx, c, post(in, in.IdempotencyKey, "messages", in.MessageID, "files"))
}

// DownloadFile reads a file.
func (c *Client) DownloadFile(ctx context.Context, id string) (tracker.FileOut, error) {
	return ask[tracker.FileOut](ctx, c, get("attachments", id))
}

// Parked lists the events that an agent never accepted.
func (c *Client) Parked(ctx context.Context, member string, p tracker.Paging) (tracker.Page[tracker.EventOut], error) {
	return ask[tracker.Page[tracker.EventOut]](ctx, c, get("members", member, "parked").with(paged(p)))
}

// Redrive sends a parked event again.
func (c *Client) Redrive(ctx context.Context, member, id string) error {
	return tell(ctx, c, once(nil, "members", member, "parked", id, "redrive"))
}

// Events asks for the caller's events behind a seq that wait, the oldest first. Each time
// counts as one delivery.
func (c *Client) Events(ctx context.Context, after int64, limit int) (tracker.Page[tracker.EventOut], error) {
	return c.events(ctx, after, limit, 0)
}

// events is Events that waits so many seconds for the first one.
func (c *Client) events(ctx context.Context, after int64, limit, wait int) (tracker.Page[tracker.EventOut], error) {
	query := paged(tracker.Paging{Limit: limit}, "after", strconv.FormatInt(after, 10), "wait", strconv.Itoa(wait))
	q := get("events").with(query)
	q.longer = time.Duration(wait) * time.Second
	return ask[tracker.Page[tracker.EventOut]](ctx, c, q)
}

// Ack takes events from the caller's queue.
func (c *Client) Ack(ctx context.Context, ids ...string) error {
	q := once(tracker.AckEvents{IDs: ids}, "events", "ack")
	q.again = true
	return tell(ctx, c, q)
}

// Heartbeat keeps the caller online, and says what it does.
func (c *Client) Heartbeat(ctx context.Context, h tracker.Heartbeat) error {
	q := once(tracker.Beat{Status: h.Status, CurrentTasks: h.CurrentTasks}, "members", "me", "heartbeat")
	q.again = true
	return tell(ctx, c, q)
}
