package store

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/runtime/board"
)

// A tag is a label, a watcher or a blocker of a task. All of a task stand in its row too, in
// this order of kinds, so that one pattern looks for several.
type tag struct{ kind, value string }

// The kinds of tags.
const (
	tagLabel   = "label"
	tagWatcher = "watcher"
	tagBlocker = "blocker"
)

func (t tag) String() string { return "\x01" + t.kind + ":" + t.value + "\x02" }

func tagsOf(t board.Task) (all []tag) {
	for _, k := range []struct {
		kind   string
		values []string
	}{{tagLabel, t.Labels}, {tagWatcher, t.Watchers}, {tagBlocker, t.Blockers}} {
		for _, v := range k.values {
			all = append(all, tag{k.kind, words(v)})
		}
	}
	return all
}

func (x Tx) setTasks(c board.Change) error {
	for _, t := range c.Tasks {
		if err := x.setTask(t); err != nil {
			return err
		}
	}
	return nil
}

func (x Tx) setTask(t board.Task) error {
	const query = `insert into board_task (id, key, project, number, parent, type, priority, status, assignee, creator, open, tags)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (id) do update set key = excluded.key, project = excluded.project,
		number = excluded.number, parent = excluded.parent, type = excluded.type, priority = excluded.priority, status = excluded.status,
		assignee = excluded.assignee, creator = excluded.creator, open = excluded.open, tags = excluded.tags returning num`
	old, had, err := x.task(t.ID)
	if err != nil {
		return err
	}
	tags, all := tagsOf(t), ""
	for _, one := range tags {
		all += one.String()
	}
	var num int64
	_, err = x.t.returned(query, args{
		words(t.ID), words(t.Key), words(t.Project), t.Number, words(t.Parent), words(t.Type), words(t.Priority), words(string(t.Status)),
		words(t.Assignee), words(t.Creator), int64(t.OpenBlockers), all,
	}, &num)
	if err != nil {
		return err
	}
	const whole = `insert into board_task_body (task, search, body) values ($1, $2, $3)
		on conflict (task) do update set search = excluded.search, body = excluded.body`
	search := words(t.Search)
	t.Search = "" // it stands beside the body
	stale := had == 0 || old.Search != search
	if stale && had != 0 {
		if err := x.forgetText(num); err != nil {
			return err
		}
	}
	if err := x.setBody(whole, t, num, search); err != nil {
		return err
	}
	if stale {
		if _, err := x.t.exec(`insert into board_search (rowid, search) values ($1, $2)`, num, search); err != nil {
			return err
		}
	}
	return x.setTags(t.ID, num, tagsOf(old), tags)
}

// forgetText takes the text of a task out of what is looked through, while its body is there.
func (x Tx) forgetText(num int64) error {
	_, err := x.t.exec(`delete from board_search where rowid = $1`, num)
	return err
}

// setTags keeps what has changed of a task's tags.
func (x Tx) setTags(task string, num int64, old, tags []tag) error {
	for _, t := range old {
		if slices.Contains(tags, t) {
			continue
		}
		if _, err := x.t.exec(`delete from board_tag where kind = $1 and value = $2 and task = $3`, t.kind, t.value, task); err != nil {
			return err
		}
	}
	for _, t := range tags {
		if slices.Contains(old, t) {
			continue
		}
		const query = `insert into board_tag (kind, value, task, num) values ($1, $2, $3, $4) on conflict do nothing`
		if _, err := x.t.exec(query, t.kind, t.value, words(task), num); err != nil {
			return err
		}
	}
	return nil
}

// taskColumns are what scanTask reads of a row of board_task called t.
const taskColumns = `(select search from board_task_body where task = t.num), (select body from board_task_body where task = t.num)`

func scanTask(scan func(...any) error, more ...any) (t board.Task, err error) {
	var search string
	var raw sql.RawBytes
	if err := scan(append([]any{&search, &raw}, more...)...); err != nil {
		return t, err
	}
	err = json.Unmarshal(raw, &t)
	t.Search = search
	return t, err
}

// task returns the task with that id or key and the number of its row, 0 if there is none.
func (x Tx) task(ref string) (t board.Task, num int64, err error) {
	const query = `select ` + taskColumns + `, t.num from board_task t where id = $1
		union all select ` + taskColumns + `, t.num from board_task t where key = $1`
	err = x.t.each(query, args{ref}, func(scan func(...any) error) (err error) {
		t, err = scanTask(scan, &num)
		return err
	})
	return t, num, err
}

// Task implements [board.Reader].
func (r boardReader) Task(ref string) (board.Task, error) {
	t, num, err := r.x.task(ref)
	if err == nil && num == 0 {
		err = board.ErrNotFound
	}
	return t, err
}

// taskFilters are the conditions of every list of tasks. Those that are not asked for hold;
// a way adds the one that is read from an index.
const taskFilters = `t.id < $1 and ($2 = '' or t.project = $2) and ($3 = '' or t.status = $3) and ($4 = '' or t.assignee = $4)
	and (cast($5 as bigint) = 0 or t.assignee = '') and ($6 = '' or t.type = $6) and ($7 = '' or t.priority = $7)
	and ($8 = '' or t.parent = $8) and ($9 = '' or t.creator = $9) and (cast($10 as bigint) = 0 or t.number = $10)
	and (cast($11 as bigint) = 0 or t.open = 0) and ($12 = '' or t.tags like $12 escape '\')
	and ($13 = '' or (select search from board_task_body where task = t.num) like $13 escape '\')`

// tasksBy is the text that lists the tasks for which a condition holds.
const (
	tasksFrom = `select ` + taskColumns + ` from board_task t where ` + taskFilters
	tasksEnd  = ` order by t.id desc limit $14`
	tasksIn   = `select ` + taskColumns + ` from board_task t where ` + taskFilters +
		` and t.id in ($14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29)`
	tasksTagged = `select ` + taskColumns + ` from board_tag g cross join board_task t where g.kind = $15 and g.value = $16 and g.task < $1
		and t.num = g.num and ` + taskFilters + ` order by g.task desc limit $14`
	tasksFound = `select ` + taskColumns + ` from board_search g cross join board_task t where g.search like $15
		and t.num = g.rowid and ` + taskFilters + tasksEnd
)

// countMost is how far the rows of a way are counted, and foundMost how far those are that
// have a text: more than that are sooner found in the order of the list.
const (
	countMost = 4096
	foundMost = 256
)

// A way is an index that a list of tasks may be read from.
type way struct {
	list, count string // count is "" of the last resort
	by          args
	more        bool  // list takes by too, behind its own
	most        int64 // how far it is counted; it is no way if there are more. 0 is countMost
}

// ways are all that a query allows, those first that tend to be short.
func ways(q board.TaskQuery, status string) (all []way) {
	const count = `select count(*) from (select 1 from board_task t where `
	const end = ` limit $1) as few`
	add := func(is bool, list, counted string, by ...any) {
		if is {
			all = append(all, way{list: list, count: counted, by: by})
		}
	}
	add(q.Number != 0, tasksFrom+` and t.number = $10`+tasksEnd, count+`t.number = $2`+end, q.Number)
	add(q.Parent != "", tasksFrom+` and t.parent = $8`+tasksEnd, count+`t.parent = $2`+end, q.Parent)
	for _, t := range wanted(q) {
		const counted = `select count(*) from (select 1 from board_tag where kind = $2 and value = $3` + end
		all = append(all, way{list: tasksTagged, count: counted, by: args{t.kind, t.value}, more: true})
	}
	add(q.Assignee != "" && status != "", tasksFrom+` and t.assignee = $4 and t.status = $3`+tasksEnd, count+`t.assignee = $2 and t.status = $3`+end, q.Assignee, status)
	add(q.Assignee != "" && status == "", tasksFrom+` and t.assignee = $4`+tasksEnd, count+`t.assignee = $2`+end, q.Assignee)
	add(q.Unassigned && status != "", tasksFrom+` and t.assignee = '' and t.status = $3`+tasksEnd, count+`t.assignee = '' and t.status = $2`+end, status)
	add(q.Unassigned && status == "", tasksFrom+` and t.assignee = ''`+tasksEnd, count+`t.assignee = ''`+end)
	add(q.Creator != "", tasksFrom+` and t.creator = $9`+tasksEnd, count+`t.creator = $2`+end, q.Creator)
	add(q.Project != "" && status != "", tasksFrom+` and t.project = $2 and t.status = $3`+tasksEnd, count+`t.project = $2 and t.status = $3`+end, q.Project, status)
	add(q.Project != "" && status == "", tasksFrom+` and t.project = $2`+tasksEnd, count+`t.project = $2`+end, q.Project)
	add(q.Type != "", tasksFrom+` and t.type = $6`+tasksEnd, count+`t.type = $2`+end, q.Type)
	add(q.Priority != "", tasksFrom+` and t.priority = $7`+tasksEnd, count+`t.priority = $2`+end, q.Priority)
	add(status != "", tasksFrom+` and t.status = $3`+tasksEnd, count+`t.status = $2`+end, status)
	if len(all) == 0 {
		all = append(all, way{list: tasksFrom + tasksEnd})
	}
	if rough := roughly(q.Text); rough != "" {
		const counted = `select count(*) from (select 1 from board_search where search like $2` + end
		all = append(all, way{list: tasksFound, count: counted, by: args{rough}, more: true, most: foundMost})
	}
	return all
}

// roughly is a pattern that every text with this one fits and that an index of three letters
// understands, or "" if there are not so many together. It has no escapes: what would need
// one is any letter.
func roughly(text string) string {
	any := func(r rune) bool { return strings.ContainsRune(`\%_`, r) }
	text = words(text)
	for part := range strings.FieldsFuncSeq(text, any) {
		if utf8.RuneCountInString(part) >= 3 {
			return "%" + strings.NewReplacer(`\`, "_", "%", "_").Replace(text) + "%"
		}
	}
	return ""
}

// wanted are the tags that a query asks for, in the order of a row.
func wanted(q board.TaskQuery) (all []tag) {
	t := board.Task{Labels: slices.Sorted(slices.Values(q.Labels))}
	if q.Watcher != "" {
		t.Watchers = []string{q.Watcher}
	}
	if q.Blocker != "" {
		t.Blockers = []string{q.Blocker}
	}
	return slices.Compact(tagsOf(t))
}

// shortest is the way with the fewest rows, as far as they are counted.
func (x Tx) shortest(all []way) (way, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	best, least := all[0], int64(countMost)
	for _, w := range all {
		if w.count == "" {
			continue
		}
		most := least
		if w.most > 0 {
			most = min(most, w.most)
		}
		var n int64
		if _, err := x.t.one(w.count, append(args{most}, w.by...), &n); err != nil {
			return w, err
		}
		if n < most {
			best, least = w, n
		}
		if least == 0 {
			break
		}
	}
	return best, nil
}

// Tasks implements [board.Reader]. What several statuses have is read one after the other,
// so that each comes from an index in its order.
func (r boardReader) Tasks(q board.TaskQuery) (all []board.Task, err error) {
	statuses := slices.Compact(slices.Sorted(slices.Values(q.Statuses)))
	if len(statuses) == 0 {
		statuses = []tracker.Status{""}
	}
	for _, s := range statuses {
		some, err := r.tasksWith(q, string(s))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b board.Task) int { return strings.Compare(b.ID, a.ID) })
	return cut(all, q.Limit), nil
}

// tasksWith lists tasks of one status, or of all if that is "". The database takes a label
// for another that differs in case; those are left out here, and more are asked for.
func (r boardReader) tasksWith(q board.TaskQuery, status string) (all []board.Task, err error) {
	if q.IDs != nil {
		err = inAsked(q.IDs, func(chunk args) error {
			some, err := r.tasksOf(tasksIn, append(filters(q, status, before(q.Before)), chunk...))
			all = append(all, tagged(some, q)...)
			return err
		})
		return all, err
	}
	w, err := r.x.shortest(ways(q, status))
	if err != nil {
		return nil, err
	}
	for at, left := before(q.Before), limited(q.Limit); ; {
		a := append(filters(q, status, at), left)
		if w.more {
			a = append(a, w.by...)
		}
		some, err := r.tasksOf(w.list, a)
		if err != nil {
			return nil, err
		}
		fit := tagged(slices.Clone(some), q)
		all = append(all, fit...)
		if len(some) < left || len(fit) == left {
			return all, nil
		}
		at, left = some[len(some)-1].ID, left-len(fit)
	}
}

func (r boardReader) tasksOf(query string, a args) (all []board.Task, err error) {
	err = r.x.t.each(query, a, func(scan func(...any) error) error {
		t, err := scanTask(scan)
		all = append(all, t)
		return err
	})
	return all, err
}

// tagged are those tasks that have all tags which are asked for.
func tagged(all []board.Task, q board.TaskQuery) []board.Task {
	want := wanted(q)
	return slices.DeleteFunc(all, func(t board.Task) bool {
		have := tagsOf(t)
		return slices.ContainsFunc(want, func(w tag) bool { return !slices.Contains(have, w) })
	})
}

// filters are the parameters of [taskFilters].
func filters(q board.TaskQuery, status, before string) args {
	tags := ""
	for _, t := range wanted(q) {
		tags += "%" + literal(t.String())
	}
	if tags != "" {
		tags += "%"
	}
	text := ""
	if q.Text != "" {
		text = "%" + literal(words(q.Text)) + "%"
	}
	return args{
		before, q.Project, status, q.Assignee, flag(q.Unassigned), q.Type, q.Priority, q.Parent, q.Creator, q.Number,
		flag(q.Unblocked), tags, text,
	}
}

// literal is a text as it stands in a pattern.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
