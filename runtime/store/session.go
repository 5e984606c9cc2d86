package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hutch-run/hutch/protocol/event"
	threads "github.com/hutch-run/hutch/runtime/session"
)

var _ threads.Store = (*DB)(nil)

// maxRows is how many rows of threads one question is answered with.
const maxRows = 1000

func rows(limit int) int { return max(0, min(limit, maxRows)) }

func noThread(ref threads.Ref) error {
	return fmt.Errorf("thread %.60q: %w", ref.ID, threads.ErrNotFound)
}

// threadColumns are what scanThread reads.
const threadColumns = `owner, name, agent, title, head, messages, bytes, event_bytes, created, updated, waiting`

func scanThread(scan func(...any) error, more ...any) (t threads.Thread, err error) {
	var created, updated int64
	var waiting string
	into := []any{&t.Owner, &t.ID, &t.Agent, &t.Title, &t.Head, &t.Messages, &t.Bytes, &t.EventBytes, &created, &updated, &waiting}
	if err := scan(append(into, more...)...); err != nil {
		return t, err
	}
	t.Created, t.Updated = timeOf(created), timeOf(updated)
	return t, json.Unmarshal([]byte(waiting), &t.Waiting)
}

// threadRow is a thread; the zero value is one that is not there.
type threadRow struct {
	threads.Thread
	id, last int64
}

func (x Tx) thread(ref threads.Ref) (r threadRow, err error) {
	const query = `select ` + threadColumns + `, id, last, coalesce((select body from thread_state where thread = thread.id), '')
		from thread where owner = $1 and name = $2`
	var state []byte
	err = x.t.each(query, args{ref.Owner, ref.ID}, func(scan func(...any) error) (err error) {
		r.Thread, err = scanThread(scan, &r.id, &r.last, &state)
		return err
	})
	if len(state) > 0 {
		r.State = state
	}
	return r, err
}

// Thread returns a thread, or the sentinel for one that is not there.
func (x Tx) Thread(ref threads.Ref) (threads.Thread, error) {
	r, err := x.thread(ref)
	if err == nil && r.id == 0 {
		err = noThread(ref)
	}
	return r.Thread, err
}

// The texts of [Tx.Threads]: each reads an index in its order.
const (
	behind       = ` and (cast($2 as bigint) = 0 or updated < $3 or updated = $3 and id < $2) order by updated desc, id desc limit $4`
	threadsOfAll = `select ` + threadColumns + ` from thread where name is not null and $1 = $1` + behind
	threadsOf    = `select ` + threadColumns + ` from thread where name is not null and owner = $1` + behind
	threadsNamed = `select ` + threadColumns + ` from thread where name = $1` + behind
)

// Threads returns threads without their states, those used last first, at most 1,000.
func (x Tx) Threads(q threads.ThreadQuery) (all []threads.Thread, err error) {
	if q.Owner != "" && q.ID != "" {
		r, err := x.thread(threads.Ref{Owner: q.Owner, ID: q.ID})
		if r.State = nil; r.id != 0 && q.Limit > 0 {
			all = append(all, r.Thread)
		}
		return all, err
	}
	var before int64
	if q.Before.ID != "" {
		r, err := x.thread(q.Before.Ref)
		if err != nil {
			return nil, err
		}
		before = max(1, r.id) // of one that is gone: those that were used earlier
	}
	query, of := threadsOfAll, ""
	switch {
	case q.Owner != "":
		query, of = threadsOf, q.Owner
	case q.ID != "":
		query, of = threadsNamed, q.ID
	}
	a := args{of, before, millis(q.Before.Updated), rows(q.Limit)}
	err = x.t.each(query, a, func(scan func(...any) error) error {
		t, err := scanThread(scan)
		all = append(all, t)
		return err
	})
	return all, err
}

// The texts of [Tx.ThreadMessages].
const (
	ofThread      = `thread = (select id from thread where owner = $1 and name = $2)`
	messagesAfter = `select number, size, body from thread_message where ` + ofThread + ` and number > $3 order by number limit $4`
	messagesLast  = `select number, size, body from thread_message where ` + ofThread + ` and number < $3 order by number desc limit $4`
)

// ThreadMessages returns messages in their order, at most 1,000.
func (x Tx) ThreadMessages(ref threads.Ref, q threads.MessageQuery) (all []threads.Stored, err error) {
	query, number := messagesAfter, q.After
	if q.Last {
		query, number = messagesLast, q.Before
		if number == 0 {
			number = 1 << 62
		}
	}
	var one threads.Stored
	var body sql.RawBytes
	var bytes int64
	into, full := []any{&one.Number, &one.Bytes, &body}, false
	all = make([]threads.Stored, 0, min(rows(q.Limit), 256))
	err = x.t.each(query, args{ref.Owner, ref.ID, number, rows(q.Limit)}, func(scan func(...any) error) error {
		if full {
			return nil
		}
		if err := scan(into...); err != nil {
			return err
		}
		if bytes += one.Bytes; q.Last && q.MaxBytes > 0 && bytes > q.MaxBytes && len(all) > 0 {
			full = true
			return nil
		}
		if err := one.Read(body); err != nil {
			return err
		}
		all = append(all, one)
		return nil
	})
	if q.Last {
		slices.Reverse(all)
	}
	return all, err
}

// ThreadKnows returns the numbers of those messages of the thread that have one of the
// ids.
func (x Tx) ThreadKnows(ref threads.Ref, ids []string) (map[string]int64, error) {
	r, err := x.thread(ref)
	if err != nil || r.id == 0 {
		return nil, err
	}
	known := map[string]int64{}
	for _, id := range ids {
		var number int64
		found, err := x.t.one(`select number from thread_message where thread = $1 and name = $2`, args{r.id, id}, &number)
		if err != nil {
			return nil, err
		}
		if found {
			known[id] = number
		}
	}
	return known, nil
}

// ThreadEvents returns events in their order, at most 1,000.
func (x Tx) ThreadEvents(ref threads.Ref, q threads.EventQuery) (all []threads.Kept, err error) {
	const query = `select number, run, body from thread_event where ` + ofThread + ` and number > $3 and number <= $4 order by number limit $5`
	to := q.UpTo
	if to == 0 {
		to = 1 << 62
	}
	err = x.t.each(query, args{ref.Owner, ref.ID, q.After, to, rows(q.Limit)}, func(scan func(...any) error) error {
		var e threads.Kept
		var body []byte
		err := scan(&e.Number, &e.Run, &body)
		e.Body = body
		all = append(all, e)
		return err
	})
	return all, err
}

// runColumns are what scanRun reads.
const runColumns = `name, parent, cause, agent, status, digest, code, message, usage, first, last, created, started, ended`

func scanRun(scan func(...any) error, more ...any) (r threads.Record, err error) {
	var created int64
	var started, ended *int64
	var usage string
	into := []any{&r.ID, &r.Parent, &r.Trigger, &r.Agent, &r.Status, &r.Digest, &r.Code, &r.Message, &usage, &r.First, &r.Last, &created, &started, &ended}
	if err := scan(append(into, more...)...); err != nil {
		return r, err
	}
	r.Created, r.Started, r.Ended = timeOf(created), expiryOf(started), expiryOf(ended)
	return r, json.Unmarshal([]byte(usage), &r.Usage)
}

// ThreadRuns returns runs, those submitted last first: the one of that id, or, if it is
// "", at most limit and at most 1,000.
func (x Tx) ThreadRuns(ref threads.Ref, id string, limit int) (all []threads.Record, err error) {
	const (
		one  = `select ` + runColumns + ` from thread_run where ` + ofThread + ` and name = $3 limit $4`
		many = `select ` + runColumns + ` from thread_run where ` + ofThread + ` and $3 = '' order by id desc limit $4`
	)
	query := many
	if id != "" {
		query = one
	}
	err = x.t.each(query, args{ref.Owner, ref.ID, id, rows(limit)}, func(scan func(...any) error) error {
		r, err := scanRun(scan)
		all = append(all, r)
		return err
	})
	return all, err
}

// UnfinishedRuns returns runs that have not ended, in the order of their submission, at
// most 1,000.
func (x Tx) UnfinishedRuns(limit int) (all []threads.Unfinished, err error) {
	const query = `select r.name, r.parent, r.cause, r.agent, r.status, r.digest, r.code, r.message, r.usage, r.first, r.last,
		r.created, r.started, r.ended, t.owner, t.name, t.head
		from thread_run r join thread t on t.id = r.thread where r.ended is null and t.name is not null order by r.id limit $1`
	err = x.t.each(query, args{rows(limit)}, func(scan func(...any) error) error {
		var u threads.Unfinished
		rec, err := scanRun(scan, &u.Owner, &u.Ref.ID, &u.Head)
		u.Record = rec
		all = append(all, u)
		return err
	})
	return all, err
}

// CommitThread makes a change and keeps the jobs that it causes.
func (x Tx) CommitThread(c threads.Change, jobs ...event.Job) (done threads.Committed, err error) {
	r, err := x.opened(c)
	if err != nil {
		return done, err
	}
	if err := x.removed(&r, c); err != nil {
		return done, err
	}
	if done.Numbers, err = x.addMessages(&r, c); err != nil {
		return done, err
	}
	if err := x.addEvents(&r, c); err != nil {
		return done, err
	}
	if err := x.setRuns(r.id, c); err != nil {
		return done, err
	}
	if err := x.closeThread(&r, c); err != nil {
		return done, err
	}
	if c.Head == 0 && c.MostThreads > 0 {
		if done.Gone, err = x.makeRoom(r.id, c); err != nil {
			return done, err
		}
	}
	done.Thread = r.Thread
	return done, x.addJobs(jobs)
}

// opened finds the thread that is to be changed, or makes it.
func (x Tx) opened(c threads.Change) (threadRow, error) {
	r, err := x.thread(c.Ref)
	if err != nil {
		return r, err
	}
	if (r.id == 0) != (c.Head == 0) || r.Head != c.Head {
		return r, threads.ErrConflict
	}
	if r.id != 0 {
		return r, nil
	}
	for _, f := range []struct{ what, text string }{{"owner", c.Owner}, {"thread", c.ID}} {
		if err := checkName(f.what, f.text); err != nil {
			return r, err
		}
	}
	const query = `insert into thread (owner, name, agent, title, head, last, messages, bytes, event_bytes, created, updated, waiting)
		values ($1, $2, $3, '', 0, 0, 0, 0, 0, $4, $4, '{}') returning id`
	r.Thread = threads.Thread{Ref: c.Ref, Agent: words(c.Agent), Created: timeOf(millis(c.At)), Updated: timeOf(millis(c.At))}
	_, err = x.t.returned(query, args{c.Owner, c.ID, r.Agent, millis(c.At)}, &r.id)
	return r, err
}

// removed removes what the change drops and trims.
func (x Tx) removed(r *threadRow, c threads.Change) error {
	if c.DropFrom > 0 {
		n, bytes, err := x.remove(`delete from thread_message where thread = $1 and number >= $2 returning size`, r.id, c.DropFrom)
		if err != nil {
			return err
		}
		r.Messages, r.Bytes = r.Messages-n, r.Bytes-bytes
	}
	if c.TrimTo > 0 {
		n, bytes, err := x.remove(`delete from thread_message where thread = $1 and number < $2 returning size`, r.id, c.TrimTo)
		if err != nil {
			return err
		}
		r.Messages, r.Bytes = r.Messages-n, r.Bytes-bytes
	}
	if c.TrimEventsTo > 0 {
		_, bytes, err := x.remove(`delete from thread_event where thread = $1 and number < $2 returning size`, r.id, c.TrimEventsTo)
		if err != nil {
			return err
		}
		r.EventBytes -= bytes
	}
	return nil
}

// remove runs a statement that removes rows and returns their sizes.
func (x Tx) remove(query string, a ...any) (n, bytes int64, err error) {
	if err := x.t.mayWrite(); err != nil {
		return 0, 0, err
	}
	err = x.t.each(query, a, func(scan func(...any) error) error {
		var size int64
		err := scan(&size)
		n, bytes = n+1, bytes+size
		return err
	})
	return n, bytes, err
}

func (x Tx) addMessages(r *threadRow, c threads.Change) (numbers []int64, err error) {
	const query = `insert into thread_message (thread, number, name, size, body) values ($1, $2, $3, $4, $5) on conflict (thread, name) do nothing`
	for _, m := range c.Messages {
		if err := checkName("id of a message", m.ID); err != nil {
			return nil, err
		}
		body, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		size := int64(len(body)) + threads.ItemOverhead
		n, err := x.t.exec(query, r.id, r.last+1, m.ID, size, string(body))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fmt.Errorf("%w: there is a message %.60q", threads.ErrInvalid, m.ID)
		}
		r.last++
		r.Messages++
		r.Bytes += size
		numbers = append(numbers, r.last)
	}
	return numbers, nil
}

func (x Tx) addEvents(r *threadRow, c threads.Change) error {
	const query = `insert into thread_event (thread, number, run, size, body) values ($1, $2, $3, $4, $5)`
	for i, e := range c.Events {
		body := words(string(e.Body))
		size := int64(len(body)) + threads.ItemOverhead
		if _, err := x.t.exec(query, r.id, c.Head+int64(i)+1, e.Run, size, body); err != nil {
			return err
		}
		r.EventBytes += size
	}
	return nil
}

func (x Tx) setRuns(thread int64, c threads.Change) error {
	const (
		insert = `insert into thread_run (thread, name, parent, cause, agent, status, digest, code, message, usage, first, last, created, started, ended, kept)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 1) on conflict (thread, name) do nothing`
		update = `update thread_run set parent = $3, cause = $4, agent = $5, status = $6, digest = $7, code = $8, message = $9, usage = $10,
			first = $11, last = $12, created = $13, started = $14, ended = $15 where thread = $1 and name = $2`
	)
	for _, r := range c.New {
		if err := checkName("id of a run", r.ID); err != nil {
			return err
		}
		if n, err := x.setRun(insert, thread, r); err != nil || n == 0 {
			return orElse(err, threads.ErrDuplicateRun)
		}
	}
	for _, r := range c.Runs {
		if n, err := x.setRun(update, thread, r); err != nil || n == 0 {
			return orElse(err, fmt.Errorf("run %.60q: %w", r.ID, threads.ErrNotFound))
		}
	}
	return nil
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func (x Tx) setRun(query string, thread int64, r threads.Record) (int64, error) {
	usage, err := json.Marshal(r.Usage)
	if err != nil {
		return 0, err
	}
	return x.t.exec(query, thread, r.ID, words(r.Parent), words(string(r.Trigger)), words(r.Agent), string(r.Status), words(r.Digest), words(r.Code), words(r.Message),
		string(usage), r.First, r.Last, millis(r.Created), momentOf(r.Started), momentOf(r.Ended))
}

// momentOf is a time as it is kept: nothing if it is zero.
func momentOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

// closeThread keeps what the change made of the thread itself.
func (x Tx) closeThread(r *threadRow, c threads.Change) error {
	if r.Title == "" {
		r.Title = words(c.Title)
	}
	if c.Advances() {
		r.Updated = timeOf(millis(c.At))
	}
	if c.Waiting != nil {
		r.Waiting = *c.Waiting
	}
	waiting, err := json.Marshal(r.Waiting)
	if err != nil {
		return err
	}
	r.Head = c.NextHead()
	const query = `update thread set title = $2, head = $3, last = $4, messages = $5, bytes = $6, event_bytes = $7, updated = $8, waiting = $9 where id = $1`
	if _, err := x.t.exec(query, r.id, r.Title, r.Head, r.last, r.Messages, r.Bytes, r.EventBytes, millis(r.Updated), string(waiting)); err != nil {
		return err
	}
	if c.State == nil {
		return nil
	}
	r.State = []byte(words(string(c.State)))
	const state = `insert into thread_state (thread, body) values ($1, $2) on conflict (thread) do update set body = excluded.body`
	_, err = x.t.exec(state, r.id, string(r.State))
	return err
}

// makeRoom removes the owner's threads beyond so many, those first that were used least
// lately.
func (x Tx) makeRoom(made int64, c threads.Change) (gone []threads.Ref, err error) {
	var count int64
	if _, err := x.t.one(`select count(*) from thread where name is not null and owner = $1`, args{c.Owner}, &count); err != nil {
		return nil, err
	}
	const least = `update thread set name = null where id in (
		select t.id from thread t where t.name is not null and t.owner = $1 and t.id <> $2
		and not exists (select 1 from thread_run r where r.thread = t.id and r.ended is null)
		order by t.updated, t.id limit $3)`
	const names = `select t.name from thread t where t.name is not null and t.owner = $1 and t.id <> $2
		and not exists (select 1 from thread_run r where r.thread = t.id and r.ended is null)
		order by t.updated, t.id limit $3`
	over := max(0, count-int64(c.MostThreads))
	if over == 0 {
		return nil, nil
	}
	err = x.t.each(names, args{c.Owner, made, over}, func(scan func(...any) error) error {
		ref := threads.Ref{Owner: c.Owner}
		err := scan(&ref.ID)
		gone = append(gone, ref)
		return err
	})
	if err == nil {
		_, err = x.t.exec(least, c.Owner, made, over)
	}
	return gone, err
}

// DeleteThread removes a thread. What it held goes later, in small changes.
func (x Tx) DeleteThread(ref threads.Ref, jobs ...event.Job) error {
	n, err := x.t.exec(`update thread set name = null where owner = $1 and name = $2`, ref.Owner, ref.ID)
	if err == nil && n == 0 {
		err = noThread(ref)
	}
	if err != nil {
		return err
	}
	return x.addJobs(jobs)
}

// SweepThreads removes some of what is too old, and of what was deleted.
func (x Tx) SweepThreads(before threads.Ages, limit int) (removed int64, gone []threads.Ref, err error) {
	const old = `update thread set name = null where id in (
		select t.id from thread t where t.name is not null and t.updated < $1
		and not exists (select 1 from thread_run r where r.thread = t.id and r.ended is null) order by t.updated limit $2)`
	const names = `select t.owner, t.name from thread t where t.name is not null and t.updated < $1
		and not exists (select 1 from thread_run r where r.thread = t.id and r.ended is null) order by t.updated limit $2`
	err = x.t.each(names, args{age(before.Threads), limit}, func(scan func(...any) error) error {
		var ref threads.Ref
		err := scan(&ref.Owner, &ref.ID)
		gone = append(gone, ref)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	if removed, err = x.t.exec(old, age(before.Threads), limit); err != nil {
		return 0, nil, err
	}
	for _, step := range []func(int64) (int64, error){
		func(most int64) (int64, error) { return x.sweepEvents(age(before.Events), most) },
		func(most int64) (int64, error) {
			const query = `delete from thread_run where id in (select id from thread_run where kept = 0 and ended < $1 order by ended limit $2)`
			return x.t.exec(query, age(before.Threads), most)
		},
		x.sweepGone,
	} {
		n, err := step(int64(limit) - removed)
		if removed += n; err != nil {
			return 0, nil, err
		}
	}
	return removed, gone, nil
}

// age is the time before which something is too old; never if it is zero.
func age(t time.Time) int64 {
	if t.IsZero() {
		return -1 << 62
	}
	return millis(t)
}

// sweepEvents removes events of runs that ended before, at most so many.
func (x Tx) sweepEvents(before, most int64) (removed int64, err error) {
	for removed < most {
		var run, thread int64
		var name string
		const next = `select id, thread, name from thread_run where kept = 1 and ended < $1 order by ended limit 1`
		found, err := x.t.one(next, args{before}, &run, &thread, &name)
		if err != nil || !found {
			return removed, err
		}
		const events = `delete from thread_event where id in (select id from thread_event where thread = $1 and run = $2 limit $3) returning size`
		n, bytes, err := x.remove(events, thread, name, most-removed)
		if err != nil {
			return removed, err
		}
		if _, err := x.t.exec(`update thread set event_bytes = event_bytes - $2 where id = $1`, thread, bytes); err != nil {
			return removed, err
		}
		if removed += n; removed < most {
			if _, err := x.t.exec(`update thread_run set kept = 0 where id = $1`, run); err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// sweepGone removes what is left of threads that were deleted, at most so many rows.
func (x Tx) sweepGone(most int64) (removed int64, err error) {
	for removed < most {
		var thread int64
		found, err := x.t.one(`select id from thread where name is null limit 1`, nil, &thread)
		if err != nil || !found {
			return removed, err
		}
		for _, query := range []string{
			`delete from thread_message where id in (select id from thread_message where thread = $1 limit $2)`,
			`delete from thread_event where id in (select id from thread_event where thread = $1 limit $2)`,
			`delete from thread_run where id in (select id from thread_run where thread = $1 limit $2)`,
		} {
			n, err := x.t.exec(query, thread, most-removed)
			if removed += n; err != nil || removed >= most {
				return removed, err
			}
		}
		for _, query := range []string{`delete from thread_state where thread = $1`, `delete from thread where id = $1`} {
			if _, err := x.t.exec(query, thread); err != nil {
				return removed, err
			}
		}
		removed++
	}
	return removed, nil
}
