package store

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/runtime/board"
)

func (x Tx) setSteps(c board.Change) error {
	const query = `insert into board_step (id, task, position, body) values ($1, $2, $3, $4)
		on conflict (id) do update set task = excluded.task, position = excluded.position, body = excluded.body`
	for _, p := range c.Steps {
		if err := x.setBody(query, p, p.ID, p.Task, int64(p.Position)); err != nil {
			return err
		}
	}
	for _, id := range c.GoneSteps {
		if _, err := x.t.exec(`delete from board_step where id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// Steps implements [board.Reader], as the methods below do.
func (r boardReader) Steps(task string) ([]board.Step, error) {
	return bodies[board.Step](r.x, `select body from board_step where task = $1 order by position`, args{task})
}

// addTalk keeps messages, files with their content, and the log.
func (x Tx) addTalk(c board.Change) error {
	const message = `insert into board_message (id, chat, task, parent, body) values ($1, $2, $3, $4, $5)
		on conflict (id) do update set chat = excluded.chat, task = excluded.task, parent = excluded.parent, body = excluded.body`
	for _, m := range c.Messages {
		if err := x.setBody(message, m, m.ID, m.Chat, m.Task, m.Parent); err != nil {
			return err
		}
	}
	const file = `insert into board_file (id, task, message, project, digest, body) values ($1, $2, $3, $4, $5, $6)
		on conflict (id) do update set task = excluded.task, message = excluded.message, project = excluded.project,
		digest = excluded.digest, body = excluded.body`
	for _, a := range c.Attachments {
		if err := x.setBody(file, a, a.ID, a.Task, a.Message, a.Project, a.Digest); err != nil {
			return err
		}
	}
	for _, b := range c.Blobs {
		const query = `insert into board_blob (digest, bytes) values ($1, $2) on conflict (digest) do nothing`
		if _, err := x.t.exec(query, words(b.Digest), append([]byte{}, b.Bytes...)); err != nil {
			return err
		}
	}
	const activity = `insert into board_activity (id, task, body) values ($1, $2, $3)
		on conflict (id) do update set task = excluded.task, body = excluded.body`
	for _, a := range c.Activity {
		if err := x.setBody(activity, a, a.ID, a.Task); err != nil {
			return err
		}
	}
	return nil
}

func (r boardReader) Messages(q board.MessageQuery) ([]board.Message, error) {
	const (
		from = `select body from board_message where id < $1 and ($2 = '' or id = $2) and ($3 = '' or chat = $3)
			and ($4 = '' or task = $4) and ($5 = '' or parent = $5)`
		end = ` order by id desc limit $6`
	)
	query := from + end
	switch {
	case q.ID != "":
		query = from + ` and id = $2` + end
	case q.Parent != "":
		query = from + ` and parent = $5` + end
	case q.Task != "":
		query = from + ` and task = $4` + end
	case q.Chat != "":
		query = from + ` and chat = $3` + end
	}
	return bodies[board.Message](r.x, query, args{before(q.Before), q.ID, q.Chat, q.Task, q.Parent, limited(q.Limit)})
}

func (r boardReader) Attachments(q board.AttachmentQuery) (all []board.Attachment, err error) {
	const (
		from = `select body from board_file where id > $1 and ($2 = '' or id = $2) and ($3 = '' or task = $3) and ($4 = '' or project = $4)`
		end  = ` order by id limit $5`
	)
	if q.Messages != nil {
		return r.filesOf(q)
	}
	query := from + end
	switch {
	case q.ID != "":
		query = from + ` and id = $2` + end
	case q.Task != "":
		query = from + ` and task = $3` + end
	case q.Project != "":
		query = from + ` and project = $4` + end
	}
	return bodies[board.Attachment](r.x, query, args{q.After, q.ID, q.Task, q.Project, limited(q.Limit)})
}

// filesOf are the files of some messages.
func (r boardReader) filesOf(q board.AttachmentQuery) (all []board.Attachment, err error) {
	const query = `select body from board_file where id > $1 and message in ` + oneOf
	err = inAsked(q.Messages, func(chunk args) error {
		some, err := bodies[board.Attachment](r.x, query, append(args{q.After}, chunk...))
		all = append(all, some...)
		return err
	})
	all = slices.DeleteFunc(all, func(a board.Attachment) bool {
		return q.ID != "" && a.ID != q.ID || q.Task != "" && a.Task != q.Task || q.Project != "" && a.Project != q.Project
	})
	slices.SortFunc(all, func(a, b board.Attachment) int { return strings.Compare(a.ID, b.ID) })
	return cut(all, q.Limit), err
}

func (r boardReader) Blob(digest string) (content []byte, err error) {
	found, err := r.x.t.one(`select bytes from board_blob where digest = $1`, args{digest}, &content)
	if err == nil && !found {
		err = board.ErrNotFound
	}
	return content, err
}

func (r boardReader) Activity(q board.ActivityQuery) ([]board.Activity, error) {
	const query = `select body from board_activity where task = $1 and id < $2 order by id desc limit $3`
	all, err := bodies[board.Activity](r.x, query, args{q.Task, before(q.Before), limited(q.Limit)})
	for i := range all {
		if string(all[i].Changes) == "null" {
			all[i].Changes = nil
		}
	}
	return all, err
}

func (x Tx) setAnswers(c board.Change) error {
	const query = `insert into board_answer (member, key, request, at, body) values ($1, $2, $3, $4, $5)
		on conflict (member, key) do update set request = excluded.request, at = excluded.at, body = excluded.body`
	for _, a := range c.Answers {
		if _, err := x.t.exec(query, words(a.Member), words(a.Key), words(a.Request), millis(a.At), words(string(a.Body))); err != nil {
			return err
		}
	}
	if c.AnswersBefore.IsZero() {
		return nil
	}
	_, err := x.t.exec(`delete from board_answer where at < $1`, millis(c.AnswersBefore))
	return err
}

func (r boardReader) Answer(member, key string) (board.Answer, error) {
	a := board.Answer{Member: member, Key: key}
	var at int64
	var raw sql.RawBytes
	err := r.x.t.each(`select request, at, body from board_answer where member = $1 and key = $2`, args{member, key}, func(scan func(...any) error) error {
		err := scan(&a.Request, &at, &raw)
		a.At, a.Body = timeOf(at), json.RawMessage(slices.Clone(raw))
		return err
	})
	if err == nil && a.Body == nil {
		err = board.ErrNotFound
	}
	return a, err
}

// removeTasks takes tasks away with what belongs to them.
func (x Tx) removeTasks(c board.Change) error {
	for _, id := range c.GoneTasks {
		t, num, err := x.task(id)
		if err != nil {
			return err
		}
		if t.ID != id { // a key, which is no id
			continue
		}
		if err := x.setTags(id, num, tagsOf(t), nil); err != nil {
			return err
		}
		if err := x.forgetText(num); err != nil {
			return err
		}
		for _, query := range []string{`delete from board_task_body where task = $1`, `delete from board_task where num = $1`} {
			if _, err := x.t.exec(query, num); err != nil {
				return err
			}
		}
		if err := x.removeTalk(id); err != nil {
			return err
		}
	}
	return nil
}

// removeTalk takes away what belongs to a task but is not of its row.
func (x Tx) removeTalk(task string) error {
	digests := map[string]bool{}
	for _, query := range []string{
		`delete from board_file where task = $1 returning digest`,
		`delete from board_file where message in (select id from board_message where task = $1) returning digest`,
	} {
		err := x.t.each(query, args{task}, func(scan func(...any) error) error {
			var digest string
			err := scan(&digest)
			digests[digest] = true
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, query := range []string{`delete from board_message where task = $1`, `delete from board_step where task = $1`} {
		if _, err := x.t.exec(query, task); err != nil {
			return err
		}
	}
	for digest := range digests {
		const query = `delete from board_blob where digest = $1 and not exists (select 1 from board_file where digest = $1)`
		if _, err := x.t.exec(query, digest); err != nil {
			return err
		}
	}
	return nil
}
