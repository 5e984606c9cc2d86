package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/hutch-run/hutch/runtime/router"
)

var _ router.Store = (*DB)(nil)

// AddItems keeps those items whose ids are new.
func (d *DB) AddItems(ctx context.Context, items []router.Item) (added []router.Item, err error) {
	err = d.Update(ctx, func(tx Tx) error {
		added = nil
		for _, i := range items {
			is, err := tx.addItem(&i)
			if err != nil {
				return err
			}
			if is {
				added = append(added, i)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// addItem keeps an item, unless there is one of its id.
func (x Tx) addItem(i *router.Item) (added bool, err error) {
	i.Revision = 1
	body, err := bodyText(i)
	if err != nil {
		return false, err
	}
	const query = `insert into inbox_item (id, agent, task, open, changed, revision, body) values ($1, $2, $3, $4, $5, 1, $6)
		on conflict (id) do nothing returning num`
	return x.t.returned(query, args{words(i.ID), words(i.Agent), words(i.Task), flag(i.Open()), millis(i.Changed), body}, &i.Number)
}

// SetItems replaces items, if they are as they were read.
func (d *DB) SetItems(ctx context.Context, items []router.Item) (set []router.Item, err error) {
	err = d.Update(ctx, func(tx Tx) error {
		set = nil
		for _, i := range items {
			if err := tx.setItem(&i); err != nil {
				return err
			}
			set = append(set, i)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

func (x Tx) setItem(i *router.Item) error {
	all, err := x.items(`select num, revision, body from inbox_item where id = $1`, args{i.ID}, everyItem)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return router.ErrNotFound
	case all[0].Revision != i.Revision:
		return router.ErrChanged
	}
	i.Agent, i.Event, i.Number, i.Created = all[0].Agent, all[0].Event, all[0].Number, all[0].Created
	i.Revision++
	body, err := bodyText(i)
	if err != nil {
		return err
	}
	const query = `update inbox_item set task = $2, open = $3, changed = $4, revision = $5, body = $6 where id = $1`
	_, err = x.t.exec(query, i.ID, words(i.Task), flag(i.Open()), millis(i.Changed), i.Revision, body)
	return err
}

func everyItem(router.Item) bool { return true }

// items reads those of the items that a statement returns which fit.
func (x Tx) items(query string, a args, fits func(router.Item) bool) (found []router.Item, err error) {
	err = x.t.each(query, a, func(scan func(...any) error) error {
		var raw sql.RawBytes
		var number, revision int64
		if err := scan(&number, &revision, &raw); err != nil {
			return err
		}
		var i router.Item
		if err := json.Unmarshal(raw, &i); err != nil {
			return err
		}
		i.Number, i.Revision = number, revision
		if fits(i) {
			found = append(found, i)
		}
		return nil
	})
	return found, err
}

// Items finds items.
func (d *DB) Items(ctx context.Context, q router.Query) (found []router.Item, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		found, err = tx.findItems(q)
		return err
	})
	return found, err
}

func (x Tx) findItems(q router.Query) (found []router.Item, err error) {
	fits := func(i router.Item) bool {
		return i.Number > q.After && (q.States == nil || slices.Contains(q.States, i.State)) && (!q.Open || i.Open()) && (q.Task == "" || i.Task == q.Task)
	}
	if q.IDs != nil {
		return x.itemsOf(q, fits)
	}
	last := q.After // the number to read on from
	if q.Latest {
		last = math.MaxInt64
	}
	for {
		n := 0
		some, err := x.items(itemsQuery(q), itemsArgs(q, last), func(i router.Item) bool {
			n, last = n+1, i.Number
			return fits(i)
		})
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
		if n < batch || len(found) >= limited(q.Limit) {
			return cut(found, q.Limit), nil
		}
	}
}

// itemsQuery is the statement that reads the fewest rows for a query.
func itemsQuery(q router.Query) string {
	const (
		ofAgent = `select num, revision, body from inbox_item where agent = $1 and num > $2 order by num limit $3`
		newest  = `select num, revision, body from inbox_item where agent = $1 and num < $2 order by num desc limit $3`

		open       = `select num, revision, body from inbox_item where agent = $1 and open = 1 and num > $2 order by num limit $3`
		newestOpen = `select num, revision, body from inbox_item where agent = $1 and open = 1 and num < $2 order by num desc limit $3`

		ofTask       = `select num, revision, body from inbox_item where agent = $1 and task = $4 and num > $2 order by num limit $3`
		newestOfTask = `select num, revision, body from inbox_item where agent = $1 and task = $4 and num < $2 order by num desc limit $3`
	)
	way := []string{ofAgent, newest}
	switch {
	case q.Task != "":
		way = []string{ofTask, newestOfTask}
	case onlyOpen(q):
		way = []string{open, newestOpen}
	}
	if q.Latest {
		return way[1]
	}
	return way[0]
}

// onlyOpen reports whether a query can find nothing but open items.
func onlyOpen(q router.Query) bool {
	return q.Open || q.States != nil && !slices.ContainsFunc(q.States, func(s router.State) bool { return !router.Item{State: s}.Open() })
}

func itemsArgs(q router.Query, last int64) args {
	a := args{q.Agent, last, batch}
	if q.Task != "" {
		a = append(a, q.Task)
	}
	return a
}

// itemsOf finds items by their ids.
func (x Tx) itemsOf(q router.Query, fits func(router.Item) bool) (found []router.Item, err error) {
	const query = `select num, revision, body from inbox_item where agent = $1 and id in ` + oneOf
	err = inAsked(q.IDs, func(chunk args) error {
		some, err := x.items(query, append(args{q.Agent}, chunk...), fits)
		found = append(found, some...)
		return err
	})
	slices.SortFunc(found, func(a, b router.Item) int {
		if q.Latest {
			a, b = b, a
		}
		return cmp.Compare(a.Number, b.Number)
	})
	return cut(found, q.Limit), err
}

// PruneItems removes items that have ended.
func (d *DB) PruneItems(ctx context.Context, agent string, before time.Time, keep, most int) (removed int, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		removed, err = tx.pruneItems(agent, before, keep, most)
		return err
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}

func (x Tx) pruneItems(agent string, before time.Time, keep, most int) (removed int, err error) {
	const (
		old  = `delete from inbox_item where num in (select num from inbox_item where agent = $1 and open = 0 and changed < $2 order by changed limit $3)`
		many = `delete from inbox_item where num in (select num from inbox_item where agent = $1 and open = 0 order by num desc limit $3 offset $2)`
	)
	n, err := x.t.exec(old, agent, millis(before), most)
	if err != nil {
		return 0, err
	}
	m, err := x.t.exec(many, agent, keep, most-int(n))
	return int(n + m), err
}
