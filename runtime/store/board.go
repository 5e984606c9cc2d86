package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/runtime/board"
)

var _ board.Store = (*DB)(nil)

// ViewBoard runs fn on one state of the board.
func (d *DB) ViewBoard(ctx context.Context, fn func(board.Reader) error) error {
	return d.View(ctx, func(tx Tx) error { return fn(boardReader{tx}) })
}

// UpdateBoard runs fn in the writer's turn and keeps the change that it returns.
func (d *DB) UpdateBoard(ctx context.Context, fn func(board.Reader) (board.Change, error)) error {
	return d.Update(ctx, func(tx Tx) error {
		c, err := fn(boardReader{tx})
		if err != nil {
			return err
		}
		return tx.ChangeBoard(c)
	})
}

// ChangeBoard keeps a change of the board.
func (x Tx) ChangeBoard(c board.Change) error {
	steps := []func(board.Change) error{x.setProjects, x.setMembers, x.setChats, x.setTasks, x.setSteps, x.addTalk, x.addEventsTo, x.setQueues, x.setAnswers, x.removeTasks}
	for _, step := range steps {
		if err := step(c); err != nil {
			return err
		}
	}
	return nil
}

// boardReader reads the board in a transaction. Its methods for tasks, talk and queues
// stand in files of their own.
type boardReader struct{ x Tx }

// The greatest number and a text behind all that are kept stand for no bound.
const (
	noLimit = math.MaxInt32
	lastOf  = "\U0010ffff"
)

// batch is how many rows are read at once of which some may not fit, and asked is how many
// ids are looked for in one statement.
const (
	batch = 256
	asked = 16
)

// oneOf are the places of so many ids from the second parameter on.
const oneOf = `($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`

// inAsked calls fn with ids by as many as one statement takes, the last repeated.
func inAsked(ids []string, fn func(chunk args) error) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for some := range slices.Chunk(ids, asked) {
		chunk := make(args, asked)
		for i := range chunk {
			chunk[i] = some[min(i, len(some)-1)]
		}
		if err := fn(chunk); err != nil {
			return err
		}
	}
	return nil
}

// limited is a limit of a query as a statement takes it.
func limited(limit int) int {
	if limit <= 0 {
		return noLimit
	}
	return limit
}

// before is a bound on ids as a statement takes it.
func before(id string) string {
	if id == "" {
		return lastOf
	}
	return id
}

// cut is at most limit of all.
func cut[T any](all []T, limit int) []T {
	return all[:min(len(all), limited(limit))]
}

// flag is a condition as the tables have it.
func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// bodies reads the bodies that a statement returns.
func bodies[T any](x Tx, query string, a args) (all []T, err error) {
	err = x.t.each(query, a, func(scan func(...any) error) error {
		var raw sql.RawBytes
		if err := scan(&raw); err != nil {
			return err
		}
		var one T
		err := json.Unmarshal(raw, &one)
		all = append(all, one)
		return err
	})
	return all, err
}

// body reads the one body that a statement returns.
func body[T any](x Tx, query string, a args) (one T, err error) {
	all, err := bodies[T](x, query, a)
	if err != nil {
		return one, err
	}
	if len(all) == 0 {
		return one, board.ErrNotFound
	}
	return all[0], nil
}

// fitting reads bodies by slug, by as many at once as query returns for $1, a slug, and
// $2, a limit, until there are as many that fit as asked for.
func fitting[T any](x Tx, query string, more args, after string, limit int, slug func(T) string, fits func(T) bool) (all []T, err error) {
	for {
		some, err := bodies[T](x, query, append(args{after, batch}, more...))
		if err != nil {
			return nil, err
		}
		for _, one := range some {
			if fits(one) {
				all = append(all, one)
			}
			after = slug(one)
		}
		if len(some) < batch || len(all) >= limited(limit) {
			return cut(all, limit), nil
		}
	}
}

func bodyText(v any) (string, error) {
	raw, err := json.Marshal(v)
	return string(raw), err
}

// setBody is exec for a statement whose last parameter is the body of v.
func (x Tx) setBody(query string, v any, a ...any) error {
	text, err := bodyText(v)
	if err != nil {
		return err
	}
	for i := range a {
		if s, ok := a[i].(string); ok {
			a[i] = words(s)
		}
	}
	_, err = x.t.exec(query, append(a, text)...)
	return err
}

func (x Tx) setProjects(c board.Change) error {
	const query = `insert into board_project (id, slug, key, archived, body) values ($1, $2, $3, $4, $5)
		on conflict (id) do update set slug = excluded.slug, key = excluded.key, archived = excluded.archived, body = excluded.body`
	for _, p := range c.Projects {
		if err := x.setBody(query, p, p.ID, p.Slug, p.Key, flag(p.Archived)); err != nil {
			return err
		}
	}
	return nil
}

func (x Tx) setMembers(c board.Change) error {
	const query = `insert into board_member (id, slug, kind, archived, online, seen, announce, changed, body)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (id) do update set slug = excluded.slug, kind = excluded.kind,
		archived = excluded.archived, online = excluded.online, seen = excluded.seen, announce = excluded.announce,
		changed = excluded.changed, body = excluded.body`
	for _, m := range c.Members {
		err := x.setBody(query, m, m.ID, m.Slug, string(m.Kind), flag(m.Archived), flag(m.Online), millis(m.Seen), flag(m.Announce), millis(m.Changed))
		if err != nil {
			return err
		}
	}
	return nil
}

func (x Tx) setChats(c board.Change) error {
	const query = `insert into board_chat (id, slug, project, archived, body) values ($1, $2, $3, $4, $5)
		on conflict (id) do update set slug = excluded.slug, project = excluded.project, archived = excluded.archived, body = excluded.body`
	for _, h := range c.Chats {
		if err := x.setBody(query, h, h.ID, h.Slug, h.Project, flag(h.Archived)); err != nil {
			return err
		}
	}
	return nil
}

// Project implements [board.Reader], as the methods below do.
func (r boardReader) Project(ref string) (board.Project, error) {
	return body[board.Project](r.x, `select body from board_project where id = $1 union all select body from board_project where slug = $1`, args{ref})
}

func (r boardReader) Projects(q board.ProjectQuery) ([]board.Project, error) {
	const (
		all   = `select body from board_project where slug > $1 order by slug limit $2`
		keyed = `select body from board_project where key = $3 and slug > $1 limit $2`
	)
	query, more := all, args(nil)
	if q.Key != "" {
		query, more = keyed, args{q.Key}
	}
	return fitting(r.x, query, more, q.After, q.Limit, func(p board.Project) string { return p.Slug },
		func(p board.Project) bool { return q.Archived || !p.Archived })
}

func (r boardReader) Member(ref string) (board.Member, error) {
	// Nearly always it is the slug, of whoever asks.
	m, err := body[board.Member](r.x, `select body from board_member where slug = $1`, args{ref})
	if errors.Is(err, board.ErrNotFound) {
		m, err = body[board.Member](r.x, `select body from board_member where id = $1`, args{ref})
	}
	return m, err
}

func (r boardReader) Members(q board.MemberQuery) ([]board.Member, error) {
	fits := func(m board.Member) bool {
		return (q.Archived || !m.Archived) && m.Slug > q.After && (q.Kind == "" || m.Kind == q.Kind) &&
			(q.Project == "" || len(m.Projects) == 0 || slices.Contains(m.Projects, q.Project)) &&
			(q.Unseen.IsZero() || m.Online && m.Seen.Before(q.Unseen)) &&
			(q.Announce.IsZero() || m.Announce && m.Changed.Before(q.Announce))
	}
	if q.Slugs != nil {
		return r.membersOf(q, fits)
	}
	const (
		all      = `select body from board_member where slug > $1 order by slug limit $2`
		kind     = `select body from board_member where kind = $3 and slug > $1 order by slug limit $2`
		unseen   = `select body from board_member where online = 1 and seen < $3 and slug > $1 order by slug limit $2`
		announce = `select body from board_member where announce = 1 and changed < $3 and slug > $1 order by slug limit $2`
	)
	query, more := all, args(nil)
	switch {
	case !q.Unseen.IsZero():
		query, more = unseen, args{millis(q.Unseen)}
	case !q.Announce.IsZero():
		query, more = announce, args{millis(q.Announce)}
	case q.Kind != "":
		query, more = kind, args{string(q.Kind)}
	}
	return fitting(r.x, query, more, q.After, q.Limit, func(m board.Member) string { return m.Slug }, fits)
}

// membersOf are those members with the slugs that fit.
func (r boardReader) membersOf(q board.MemberQuery, fits func(board.Member) bool) (all []board.Member, err error) {
	const query = `select body from board_member where slug > $1 and slug in ` + oneOf
	err = inAsked(q.Slugs, func(chunk args) error {
		some, err := bodies[board.Member](r.x, query, append(args{q.After}, chunk...))
		all = append(all, some...)
		return err
	})
	all = slices.DeleteFunc(all, func(m board.Member) bool { return !fits(m) })
	slices.SortFunc(all, func(a, b board.Member) int { return strings.Compare(a.Slug, b.Slug) })
	return cut(all, q.Limit), err
}

func (r boardReader) Chat(ref string) (board.Chat, error) {
	return body[board.Chat](r.x, `select body from board_chat where id = $1 union all select body from board_chat where slug = $1`, args{ref})
}

func (r boardReader) Chats(q board.ChatQuery) ([]board.Chat, error) {
	const (
		all     = `select body from board_chat where slug > $1 order by slug limit $2`
		project = `select body from board_chat where project = $3 and slug > $1 order by slug limit $2`
	)
	query, more := all, args(nil)
	if q.Project != "" {
		query, more = project, args{q.Project}
	}
	return fitting(r.x, query, more, q.After, q.Limit, func(c board.Chat) string { return c.Slug }, func(c board.Chat) bool {
		return (q.Archived || !c.Archived) && (q.Member == "" || len(c.Members) == 0 || slices.Contains(c.Members, q.Member))
	})
}
