package store

import (
	"cmp"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/runtime/board"
)

// addEventsTo puts events into queues.
func (x Tx) addEventsTo(c board.Change) error {
	for _, e := range c.Events {
		const query = `insert into board_event (id, name, at, data) values ($1, $2, $3, $4)`
		if len(e.Places) == 0 { // nobody waits for it
			continue
		}
		if _, err := x.t.exec(query, words(e.ID), words(e.Name), millis(e.At), words(string(e.Data))); err != nil {
			return err
		}
		for _, p := range e.Places {
			if err := x.place(p, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x Tx) place(p board.Place, e board.Event) error {
	const delivery = `insert into board_delivery (member, number, event, at, tries, parked) values ($1, $2, $3, $4, 0, 0)`
	if _, err := x.t.exec(delivery, words(p.Member), p.Number, words(e.ID), millis(e.At)); err != nil {
		return err
	}
	const queue = `insert into board_queue (member, last, waiting) values ($1, $2, 1)
		on conflict (member) do update set last = excluded.last, waiting = board_queue.waiting + 1`
	_, err := x.t.exec(queue, words(p.Member), p.Number)
	return err
}

// setQueues notes what was tried and takes events from queues.
func (x Tx) setQueues(c board.Change) error {
	for _, d := range c.Tried {
		const query = `update board_delivery set tries = $3, parked = $4 where member = $1 and number = $2`
		if _, err := x.t.exec(query, d.Member, d.Number, int64(d.Tries), flag(d.Parked)); err != nil {
			return err
		}
	}
	for _, p := range c.Left {
		if err := x.leave(p); err != nil {
			return err
		}
	}
	return nil
}

// leave takes an event from a queue, and away if it is in no other.
func (x Tx) leave(p board.Place) error {
	var event string
	const query = `delete from board_delivery where member = $1 and number = $2 returning event`
	found, err := x.t.returned(query, args{p.Member, p.Number}, &event)
	if err != nil || !found {
		return err
	}
	if _, err := x.t.exec(`update board_queue set waiting = waiting - 1 where member = $1`, p.Member); err != nil {
		return err
	}
	const gone = `delete from board_event where id = $1 and not exists (select 1 from board_delivery where event = $1)`
	_, err = x.t.exec(gone, event)
	return err
}

// Queues implements [board.Reader], as the methods below do.
func (r boardReader) Queues(members []string) (map[string]board.Queue, error) {
	all := map[string]board.Queue{}
	const query = `select member, last, waiting from board_queue where last > $1 and member in ` + oneOf
	err := inAsked(members, func(chunk args) error {
		return r.x.t.each(query, append(args{0}, chunk...), func(scan func(...any) error) error {
			var member string
			var q board.Queue
			err := scan(&member, &q.Last, &q.Count)
			all[member] = q
			return err
		})
	})
	return all, err
}

// The texts of [boardReader.Deliveries]. The first parameter says which: 0 those that are
// not parked, 1 those that are, 2 any.
const (
	deliveriesWhat = `select d.member, d.number, d.tries, d.parked, e.id, e.name, e.at, e.data `
	deliveriesFrom = deliveriesWhat + `from board_delivery d cross join board_event e where e.id = d.event `
	deliveriesFit  = ` and (cast($1 as bigint) = 2 or d.parked = $1) and d.number > $2 and d.number <= $3 and (cast($4 as bigint) = 0 or d.at < $4)`
	deliveriesOf   = deliveriesFrom + deliveriesFit + ` and d.member = $5 and d.parked = $1 order by d.number limit $6`
	deliveriesAny  = deliveriesFrom + deliveriesFit + ` and d.member = $5 order by d.number limit $6`
	deliveriesAll  = deliveriesFrom + deliveriesFit + ` order by d.member, d.number limit $5`
	deliveriesIn   = deliveriesWhat + `from board_event e cross join board_delivery d where d.event = e.id ` + deliveriesFit +
		` and e.id in ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`
	deliveriesOne = deliveriesIn + ` and d.member = $21`
)

func (r boardReader) Deliveries(q board.DeliveryQuery) (all []board.Delivery, err error) {
	which, to, older := flag(q.Parked), q.UpTo, int64(0)
	if q.Any {
		which = 2
	}
	if to == 0 {
		to = 1 << 62
	}
	if !q.Older.IsZero() {
		older = millis(q.Older)
		if any, err := r.anyBefore(older); err != nil || !any {
			return nil, err
		}
	}
	a := args{which, q.After, to, older}
	switch {
	case q.IDs != nil:
		err = inAsked(q.IDs, func(chunk args) error {
			query, a := deliveriesIn, append(slices.Clone(a), chunk...)
			if q.Member != "" { // an event may be in as many queues as there are members
				query, a = deliveriesOne, append(a, q.Member)
			}
			some, err := r.deliveries(query, a)
			all = append(all, some...)
			return err
		})
		slices.SortFunc(all, func(a, b board.Delivery) int {
			return cmp.Or(strings.Compare(a.Member, b.Member), cmp.Compare(a.Number, b.Number))
		})
		return cut(all, q.Limit), err
	case q.Member == "":
		return r.deliveries(deliveriesAll, append(a, limited(q.Limit)))
	case q.Any:
		return r.deliveries(deliveriesAny, append(a, q.Member, limited(q.Limit)))
	}
	return r.deliveries(deliveriesOf, append(a, q.Member, limited(q.Limit)))
}

// anyBefore reports whether something in a queue is older, which is seldom, so that nothing
// else is looked at where it is not.
func (r boardReader) anyBefore(at int64) (bool, error) {
	var one int64
	return r.x.t.one(`select 1 from board_delivery where at < $1 limit 1`, args{at}, &one)
}

func (r boardReader) deliveries(query string, a args) (all []board.Delivery, err error) {
	err = r.x.t.each(query, a, func(scan func(...any) error) error {
		var d board.Delivery
		var parked, at int64
		var data []byte
		err := scan(&d.Member, &d.Number, &d.Tries, &parked, &d.ID, &d.Name, &at, &data)
		d.Parked, d.At, d.Data = parked == 1, timeOf(at), data
		all = append(all, d)
		return err
	})
	return all, err
}
