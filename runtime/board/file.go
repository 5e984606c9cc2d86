package board

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/hutch-run/hutch/protocol/tracker"
)

func attachmentOut(a Attachment) tracker.AttachmentOut {
	return tracker.AttachmentOut{
		ID: a.ID, Filename: a.Filename, MIME: a.MIME, Size: a.Size, SHA256: a.Digest, TaskID: pointer(a.Task),
		MessageID: pointer(a.Message), CreatedAt: a.Created,
	}
}

// filename is a name without a path, which no system takes for more than a name.
func filename(name string) (string, error) {
	if err := checkText("filename", name, 4*tracker.MaxFilename, true); err != nil {
		return "", err
	}
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`<>:"|?*/`, r) {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimRight(strings.TrimSpace(name), ". ")
	switch {
	case strings.Trim(name, "._ ") == "":
		return "", invalid("filename", "the filename is no name").Next("name the file, like report.txt")
	case len(name) > tracker.MaxFilename:
		return "", invalid("filename", "the filename has %d bytes, at most %d are allowed", len(name), tracker.MaxFilename)
	}
	return name, nil
}

// sniff is the MIME type that content looks like, whoever says what of it.
func sniff(content []byte) string { return http.DetectContentType(content) }

// UploadFile implements [tracker.Files], as the methods below do.
func (s *Seat) UploadFile(ctx context.Context, in tracker.UploadFile) (out tracker.AttachmentOut, err error) {
	if err := oneRef("task_id and message_id", in.TaskID, in.MessageID); err != nil {
		return out, err
	}
	if len(in.Content) > tracker.MaxFile {
		return out, tracker.Errorf(tracker.CodeTooLarge, "the file has %d bytes, at most %d are allowed", len(in.Content), tracker.MaxFile)
	}
	name, err := filename(in.Filename)
	if err != nil {
		return out, err
	}
	sum := sha256.Sum256(in.Content)
	a := Attachment{Filename: name, MIME: sniff(in.Content), Digest: hex.EncodeToString(sum[:]), Size: int64(len(in.Content))}
	err = s.update(ctx, tracker.FilesWrite, func(w *work) error {
		out, err = once(w, in.IdempotencyKey, "upload file", []string{in.TaskID, in.MessageID, name, a.Digest}, func() (tracker.AttachmentOut, error) {
			err := w.attach(&a, in)
			return attachmentOut(a), err
		})
		return err
	})
	return out, err
}

// attach keeps a file where the upload says.
func (w *work) attach(a *Attachment, in tracker.UploadFile) error {
	a.ID, a.Author, a.Created, a.Task, a.Message, a.Project = w.id(), w.me.Slug, w.now, "", "", ""
	var t Task
	var err error
	if in.MessageID != "" {
		m, at, err := w.message(in.MessageID)
		switch {
		case err != nil:
			return err
		case m.Author != w.me.Slug && !w.caller.Has(tracker.Admin):
			return tracker.Errorf(tracker.CodeForbidden, "only who wrote a message puts files to it")
		}
		a.Message, t, a.Project = m.ID, at.task, at.chat.Project
	} else if t, err = w.task(in.TaskID, ""); err != nil {
		return err
	}
	if t.ID != "" {
		a.Task, a.Project = t.ID, t.Project
		if err := w.log(t.ID, "file_added", map[string]tracker.Change{"filename": {To: a.Filename}, "attachment_id": {To: a.ID}}); err != nil {
			return err
		}
	}
	w.c.Attachments = append(w.c.Attachments, *a)
	if _, err := w.r.Blob(a.Digest); errors.Is(err, ErrNotFound) {
		w.c.Blobs = append(w.c.Blobs, Blob{Digest: a.Digest, Bytes: in.Content})
	} else if err != nil {
		return err
	}
	return nil
}

// ListFiles lists files.
func (s *Seat) ListFiles(ctx context.Context, q tracker.FileQuery) (page tracker.Page[tracker.AttachmentOut], err error) {
	if err := oneRef("task_id, project_id and message_id", q.TaskID, q.ProjectID, q.MessageID); err != nil {
		return page, err
	}
	after, err := cursorOf(q.Paging)
	if err != nil {
		return page, err
	}
	err = s.view(ctx, tracker.FilesRead, func(w *work) error {
		limit := most(q.Limit)
		find, err := w.fileQuery(q)
		if err != nil {
			return err
		}
		page, find.After, find.Limit = tracker.Page[tracker.AttachmentOut]{}, after, limit+1
		for {
			all, err := w.r.Attachments(find)
			if err != nil {
				return err
			}
			if err := w.keepReadable(&page, all); err != nil {
				return err
			}
			if len(all) <= limit || len(page.Items) > limit {
				break
			}
			find.After = all[len(all)-1].ID
		}
		page = pageOf(page.Items, limit, func(a tracker.AttachmentOut) string { return a.ID })
		return nil
	})
	return page, err
}

// keepReadable adds the files that the caller may read.
func (w *work) keepReadable(page *tracker.Page[tracker.AttachmentOut], all []Attachment) error {
	for _, a := range all {
		ok, err := w.mayReadFile(a)
		if err != nil {
			return err
		}
		if ok {
			page.Items = append(page.Items, attachmentOut(a))
		}
	}
	return nil
}

func (w *work) fileQuery(q tracker.FileQuery) (find AttachmentQuery, err error) {
	switch {
	case q.TaskID != "":
		t, err := w.task(q.TaskID, "")
		return AttachmentQuery{Task: t.ID}, err
	case q.MessageID != "":
		m, _, err := w.message(q.MessageID)
		return AttachmentQuery{Messages: []string{m.ID}}, err
	}
	p, err := w.project(q.ProjectID)
	return AttachmentQuery{Project: p.ID}, err
}

// mayReadFile: what is in a chat is for those who read the chat.
func (w *work) mayReadFile(a Attachment) (bool, error) {
	if a.Task != "" || a.Message == "" {
		return true, nil
	}
	_, _, err := w.message(a.Message)
	var refused *tracker.Error
	if errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

// DownloadFile returns a file with what is in it.
func (s *Seat) DownloadFile(ctx context.Context, ref string) (out tracker.FileOut, err error) {
	err = s.view(ctx, tracker.FilesRead, func(w *work) error {
		id := strings.ToLower(strings.TrimSpace(ref))
		if !isID(id) {
			return notFound("file", ref)
		}
		all, err := w.r.Attachments(AttachmentQuery{ID: id, Limit: 1})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(a Attachment) bool { return a.ID == id })
		if i < 0 {
			return notFound("file", ref)
		}
		ok, err := w.mayReadFile(all[i])
		if err == nil && !ok {
			err = notFound("file", ref)
		}
		if err != nil {
			return err
		}
		content, err := w.r.Blob(all[i].Digest)
		out = tracker.FileOut{Filename: all[i].Filename, Content: content, AttachmentOut: attachmentOut(all[i])}
		return err
	})
	return out, err
}
