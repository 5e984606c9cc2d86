package trackerrest

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tracker"
)

// maxWait is how many seconds a request may wait for an event.
const maxWait = 30

func (c *call) listTasks() (any, error) {
	return c.paged(func(p tracker.Paging) (any, error) {
		return c.service.ListTasks(c.ctx(), tracker.TaskQuery{
			Project: c.param("project_id"), Statuses: c.words("status"), Assignee: c.param("assignee"), Labels: c.words("labels"),
			Type: c.param("type"), Priority: c.param("priority"), Parent: c.param("parent_id"), Creator: c.param("creator"),
			Watcher: c.param("watcher"), Text: c.param("q"), Ready: c.flag("ready"), Paging: p,
		})
	})
}

func (c *call) createTask() (any, error) {
	in := tracker.CreateTask{IdempotencyKey: c.key()}
	return with(c, &in, func() (any, error) {
		out, err := c.service.CreateTask(c.ctx(), in)
		return out, err
	})
}

func (c *call) updateTask() (any, error) {
	var in tracker.UpdateTask
	return with(c, &in, func() (any, error) {
		version, err := c.ifMatch()
		if err != nil {
			return nil, err
		}
		in.IfMatch = version
		return c.service.UpdateTask(c.ctx(), c.at("id"), in)
	})
}

// ifMatch reads the version that a task must have: "3", as its ETag has it, or 3.
func (c *call) ifMatch() (int64, error) {
	tag := c.r.Header.Get("If-Match")
	if tag == "" || tag == "*" {
		return 0, nil
	}
	version, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(tag, "W/"), `"`), 10, 64)
	if err != nil || version <= 0 {
		return 0, tracker.Errorf(tracker.CodeBadRequest, "If-Match is %s", tracker.Quote(tag)).Next("use the ETag of the task")
	}
	return version, nil
}

func (c *call) messages(q tracker.MessageQuery) (any, error) {
	return c.paged(func(p tracker.Paging) (any, error) {
		q.Paging = p
		return c.service.ListMessages(c.ctx(), q)
	})
}

func (c *call) send(chat, task string) (any, error) {
	var in tracker.Reply
	return with(c, &in, func() (any, error) {
		return c.service.SendMessage(c.ctx(), tracker.SendMessage{
			ChatID: chat, TaskID: task, Content: in.Content, Mentions: in.Mentions, IdempotencyKey: c.key(),
		})
	})
}

const octets = "application/octet-stream"

// upload reads a file from a body that is JSON, or that is the file.
func (c *call) upload() (in tracker.UploadFile, err error) {
	in.Filename = c.param("filename")
	if c.mediaType() == octets {
		if in.Filename == "" {
			return in, tracker.Errorf(tracker.CodeInvalid, "filename is missing").With("field", "filename").Next("send it in the query: ?filename=NAME")
		}
		in.Content, err = c.bytes()
	} else {
		err = c.body(&in)
	}
	in.IdempotencyKey = c.key()
	return in, err
}

func (c *call) download() (any, error) {
	out, err := c.service.DownloadFile(c.ctx(), c.at("id"))
	if err == nil && strings.Contains(c.r.Header.Get("Accept"), octets) {
		return rawFile(out), nil
	}
	return out, err
}

// rawFile is a file that is sent as it is, never as what a browser would show.
type rawFile tracker.FileOut

func (f rawFile) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", octets)
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Filename}))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Content-Length", strconv.Itoa(len(f.Content)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(f.Content) // who does not read it has left
}

// events reads the caller's queue, and waits for something if it may. What it returns counts
// as sent.
func (c *call) events() (any, error) {
	after, limit := int64(c.number("after")), c.number("limit")
	if wait := c.number("wait"); wait > 0 {
		ctx, cancel := context.WithTimeout(c.ctx(), time.Duration(wait)*time.Second)
		defer cancel()
		err := c.service.Wait(ctx, after)
		if waited := errors.Is(err, context.DeadlineExceeded) && c.ctx().Err() == nil; err != nil && !waited {
			return nil, err
		}
	}
	return Deliver(c.ctx(), c.service, after, limit)
}

// Deliver returns the events of a queue with a seq above after, at most limit (0 is the usual
// page), as they are sent over REST: each counts as sent once more, and none that is parked by
// that is among them. Its errors are those of the queue.
func Deliver(ctx context.Context, q tracker.Queue, after int64, limit int) (page tracker.Page[tracker.EventOut], err error) {
	all, err := q.Take(ctx, after, limit)
	if err != nil {
		return page, err
	}
	return eventPage(slices.DeleteFunc(all, func(e tracker.Event) bool { return e.Parked }), ""), nil
}

// ParkedPage returns the parked events of a member as they are sent over REST.
func ParkedPage(ctx context.Context, q tracker.Queue, member string, p tracker.Paging) (tracker.Page[tracker.EventOut], error) {
	page, err := q.Parked(ctx, member, p)
	return eventPage(page.Items, page.NextCursor), err
}

func eventPage(all []tracker.Event, next string) tracker.Page[tracker.EventOut] {
	page := tracker.Page[tracker.EventOut]{Items: make([]tracker.EventOut, len(all)), NextCursor: next}
	for i, e := range all {
		page.Items[i] = tracker.EventOut{ID: e.ID, Event: e.Name, Data: e.Data, Seq: e.Seq, TS: e.At, Redelivery: e.Tries}
	}
	return page
}

func (c *call) ack(in tracker.AckEvents) error {
	if len(in.IDs) > tracker.MaxPage {
		return tracker.Errorf(tracker.CodeInvalid, "ids has %d entries, at most %d are allowed", len(in.IDs), tracker.MaxPage).With("field", "ids")
	}
	return c.service.Ack(c.ctx(), in.IDs...)
}
