package store

import (
	"context"
	"fmt"
)

// Use is what was done by a subject, such as a tool, on one day (UTC).
type Use struct{ Calls, Bytes int64 }

// maxUse bounds what is counted at once and what a quota may be, so that no sum
// leaves 64 bits.
const maxUse = 1 << 50

// Count adds to what the subject used today unless that would be more than most,
// whose zero fields are no limit. It returns what was used: with what was added,
// or, if ok is false, as it was, with nothing added.
func (x Tx) Count(subject string, add, most Use) (used Use, ok bool, err error) {
	if err := checkName("subject", subject); err != nil {
		return used, false, err
	}
	for _, n := range []int64{add.Calls, add.Bytes, most.Calls, most.Bytes} {
		if n < 0 || n > maxUse {
			return used, false, fmt.Errorf("count of %d, allowed are 0 to %d", n, int64(maxUse))
		}
	}
	if used, err = x.Used(subject); err != nil {
		return used, false, err
	}
	sum := Use{used.Calls + add.Calls, used.Bytes + add.Bytes}
	if over(sum.Calls, most.Calls) || over(sum.Bytes, most.Bytes) {
		return used, false, nil
	}
	const query = `insert into counter (subject, day, calls, bytes) values ($1, $2, $3, $4)
		on conflict (subject, day) do update set calls = counter.calls + excluded.calls, bytes = counter.bytes + excluded.bytes
		returning calls, bytes`
	ok, err = x.t.returned(query, args{subject, dayOf(x.t.now), add.Calls, add.Bytes}, &used.Calls, &used.Bytes)
	return used, ok, err
}

func over(used, most int64) bool { return most > 0 && used > most }

// Used returns what the subject used today.
func (x Tx) Used(subject string) (used Use, err error) {
	const query = `select calls, bytes from counter where subject = $1 and day = $2`
	_, err = x.t.one(query, args{subject, dayOf(x.t.now)}, &used.Calls, &used.Bytes)
	return used, err
}

// Count is [Tx.Count] in a change of its own. It names no type of this package, so
// that others can ask for it without importing it.
func (d *DB) Count(ctx context.Context, subject string, calls, bytes, maxCalls, maxBytes int64) (usedCalls, usedBytes int64, ok bool, err error) {
	var used Use
	err = d.Update(ctx, func(tx Tx) (err error) {
		used, ok, err = tx.Count(subject, Use{calls, bytes}, Use{maxCalls, maxBytes})
		return err
	})
	return used.Calls, used.Bytes, ok && err == nil, err
}

// Used is [Tx.Used] in a view of its own.
func (d *DB) Used(ctx context.Context, subject string) (calls, bytes int64, err error) {
	var used Use
	err = d.View(ctx, func(tx Tx) (err error) {
		used, err = tx.Used(subject)
		return err
	})
	return used.Calls, used.Bytes, err
}
