package store

import (
	"context"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// EntryOverhead is what a value counts besides its key and its bytes, so that many
// tiny ones are not free.
const EntryOverhead = 64

// AnyVersion writes or deletes a value whatever its version is.
const AnyVersion int64 = -1

// What a name of a space, a key, a writer and a value may have, in bytes. These are
// the store's own bounds; whoever lets others write sets narrower ones.
const (
	maxName  = 512
	maxValue = 16 << 20
	maxKeys  = 1000
)

// An Entry is a value that is kept in a space under a key.
type Entry struct {
	Key   string
	Value []byte
	// Version grows with each change in the space, and never repeats.
	Version int64
	// Writer says who wrote it, for an operator.
	Writer  string
	Updated time.Time
	// Expires is when it ends; zero means never.
	Expires time.Time
}

// KVGet returns the entry, or false if there is none, or none that has not expired.
func (x Tx) KVGet(space, key string) (Entry, bool, error) {
	const query = `select k.value, k.version, k.writer, k.updated, k.expires from kv k join kv_space s on s.id = k.space
		where s.name = $1 and k.key = $2 and (k.expires is null or k.expires > $3)`
	e := Entry{Key: key}
	var updated int64
	var expires *int64
	found, err := x.t.one(query, args{space, key, millis(x.t.now)}, &e.Value, &e.Version, &e.Writer, &updated, &expires)
	if err != nil || !found {
		return Entry{}, false, err
	}
	e.Updated, e.Expires = timeOf(updated), expiryOf(expires)
	return e, true, nil
}

// A KVWrite is a value to be kept.
type KVWrite struct {
	Space, Key, Writer string
	Value              []byte
	// TTL is how long it is kept; 0 means for ever.
	TTL time.Duration
	// IfVersion is the version that must be there, 0 for none at all, or
	// [AnyVersion].
	IfVersion int64
	// MaxBytes is what the space may hold, with [EntryOverhead] for each value.
	MaxBytes int64
}

func (w KVWrite) check() error {
	for _, f := range []struct{ what, text string }{{"space", w.Space}, {"key", w.Key}, {"writer", w.Writer}} {
		if err := checkName(f.what, f.text); err != nil {
			return err
		}
	}
	if len(w.Value) > maxValue {
		return fmt.Errorf("value of %d bytes, at most %d", len(w.Value), maxValue)
	}
	if w.TTL < 0 {
		return fmt.Errorf("time to live of %s, at least 0", w.TTL)
	}
	return nil
}

func checkName(what, text string) error {
	switch {
	case text == "" || len(text) > maxName:
		return fmt.Errorf("%s of %d bytes, allowed are 1 to %d", what, len(text), maxName)
	case !utf8.ValidString(text):
		return fmt.Errorf("%s that is not UTF-8", what)
	}
	for i := range len(text) {
		if text[i] == 0 {
			return fmt.Errorf("%s with a zero byte", what)
		}
	}
	return nil
}

// KVPut keeps a value and returns its version and when it expires. It fails with a
// [*VersionError] or a [*QuotaError].
func (x Tx) KVPut(w KVWrite) (version int64, expires time.Time, err error) {
	if err := w.check(); err != nil {
		return 0, time.Time{}, err
	}
	space, old, err := x.look(w.Space, w.Key)
	if err != nil {
		return 0, time.Time{}, err
	}
	if err := old.expect(w.IfVersion); err != nil {
		return 0, time.Time{}, err
	}
	size := int64(len(w.Key)+len(w.Value)) + EntryOverhead
	if err := x.fit(&space, &old, w, size); err != nil {
		return 0, time.Time{}, err
	}
	if space.id == 0 {
		if space.id, err = x.openSpace(w.Space); err != nil {
			return 0, time.Time{}, err
		}
	}
	if w.TTL > 0 {
		expires = timeOf(millis(x.t.now.Add(w.TTL)))
	}
	space.version++
	if err := x.write(space, w, size, expires); err != nil {
		return 0, time.Time{}, err
	}
	return space.version, expires, x.change(space, size-old.size)
}

// spaceRow is a space; the zero value is one that is not there yet.
type spaceRow struct{ id, version, bytes int64 }

// storedRow is what stands under a key; the zero value is nothing.
type storedRow struct {
	id, size, version int64
	expired           bool
}

// look finds a space, and what stands in it under a key.
func (x Tx) look(name, key string) (s spaceRow, r storedRow, err error) {
	const query = `select s.id, s.version, s.bytes, coalesce(k.id, 0), coalesce(k.size, 0), coalesce(k.version, 0), case when k.expires <= $3 then 1 else 0 end
		from kv_space s left join kv k on k.space = s.id and k.key = $2 where s.name = $1`
	_, err = x.t.one(query, args{name, key, millis(x.t.now)}, &s.id, &s.version, &s.bytes, &r.id, &r.size, &r.version, &r.expired)
	return s, r, err
}

func (x Tx) openSpace(name string) (id int64, err error) {
	const query = `insert into kv_space (name, version, bytes) values ($1, 0, 0) returning id`
	_, err = x.t.returned(query, args{name}, &id)
	return id, err
}

func (r storedRow) expect(version int64) error {
	found := r.version
	if r.expired {
		found = 0
	}
	if version != AnyVersion && version != found {
		return &VersionError{Found: found}
	}
	return nil
}

// fit sees that the value has room, if need be by removing what has expired in its
// space: that does not count.
func (x Tx) fit(space *spaceRow, old *storedRow, w KVWrite, size int64) error {
	if space.bytes-old.size+size <= w.MaxBytes {
		return nil
	}
	if _, err := x.sweepKV(w.Space, math.MaxInt32); err != nil {
		return err
	}
	if old.expired {
		*old = storedRow{}
	}
	const bytes = `select bytes from kv_space where id = $1`
	if _, err := x.t.one(bytes, args{space.id}, &space.bytes); err != nil {
		return err
	}
	if used := space.bytes - old.size + size; used > w.MaxBytes {
		return &QuotaError{Used: used, Most: w.MaxBytes}
	}
	return nil
}

func (x Tx) write(space spaceRow, w KVWrite, size int64, expires time.Time) error {
	const query = `insert into kv (space, key, value, size, version, writer, updated, expires) values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (space, key) do update set value = excluded.value, size = excluded.size, version = excluded.version,
		writer = excluded.writer, updated = excluded.updated, expires = excluded.expires`
	value := w.Value
	if value == nil {
		value = []byte{}
	}
	var end any
	if !expires.IsZero() {
		end = millis(expires)
	}
	_, err := x.t.exec(query, space.id, w.Key, value, size, space.version, w.Writer, millis(x.t.now), end)
	return err
}

// change counts a change in a space, and what it holds more since.
func (x Tx) change(space spaceRow, more int64) error {
	_, err := x.t.exec(`update kv_space set version = $2, bytes = bytes + $3 where id = $1`, space.id, space.version, more)
	return err
}

// KVDelete removes a value and reports whether there was one. It fails with a
// [*VersionError].
func (x Tx) KVDelete(space, key string, ifVersion int64) (deleted bool, err error) {
	in, old, err := x.look(space, key)
	if err != nil {
		return false, err
	}
	if err := old.expect(ifVersion); err != nil || old.id == 0 {
		return false, err
	}
	if _, err := x.t.exec(`delete from kv where id = $1`, old.id); err != nil {
		return false, err
	}
	return !old.expired, x.change(in, -old.size)
}

// KVKeys returns keys of the space that begin with prefix and come after the key
// after, in the order of their bytes, at most limit of them and at most 1,000.
func (x Tx) KVKeys(space, prefix, after string, limit int) ([]string, error) {
	const query = `select k.key from kv k join kv_space s on s.id = k.space
		where s.name = $1 and k.key >= $2 and ($3 = '' or k.key < $3) and k.key > $4 and (k.expires is null or k.expires > $5)
		order by k.key limit $6`
	var keys []string
	a := args{space, prefix, past(prefix), after, millis(x.t.now), max(0, min(limit, maxKeys))}
	err := x.t.each(query, a, func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		keys = append(keys, key)
		return err
	})
	return keys, err
}

// past returns the least text that is greater than all that begin with prefix; ""
// if there is none.
func past(prefix string) string {
	for prefix != "" {
		r, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		switch {
		case r == 0xd7ff: // surrogates follow: they are no characters
			return prefix + "\ue000"
		case r < utf8.MaxRune:
			return prefix + string(r+1)
		}
	}
	return ""
}

// KVUsage returns what a space holds: bytes, with [EntryOverhead] for each value,
// and values. What has expired is not counted.
func (x Tx) KVUsage(space string) (bytes, values int64, err error) {
	const query = `select cast(coalesce(sum(k.size), 0) as bigint), count(*) from kv k join kv_space s on s.id = k.space
		where s.name = $1 and (k.expires is null or k.expires > $2)`
	_, err = x.t.one(query, args{space, millis(x.t.now)}, &bytes, &values)
	return bytes, values, err
}

// KVCount returns how many values are in the spaces whose names begin with prefix,
// but for what has expired.
func (x Tx) KVCount(prefix string) (values int64, err error) {
	const query = `select count(*) from kv k join kv_space s on s.id = k.space
		where s.name >= $1 and ($2 = '' or s.name < $2) and (k.expires is null or k.expires > $3)`
	_, err = x.t.one(query, args{prefix, past(prefix), millis(x.t.now)}, &values)
	return values, err
}

// KVForget removes the spaces whose names begin with prefix, and all that is in
// them. Versions begin anew.
func (x Tx) KVForget(prefix string) error {
	const spaces = `select id from kv_space where name >= $1 and ($2 = '' or name < $2)`
	_, err := x.t.exec(`delete from kv where space in (`+spaces+`)`, prefix, past(prefix))
	if err == nil {
		_, err = x.t.exec(`delete from kv_space where id in (`+spaces+`)`, prefix, past(prefix))
	}
	return err
}

// sweepKV removes at most so many values that have expired, in one space or, if it
// is "", in all.
func (x Tx) sweepKV(space string, most int64) (removed int64, err error) {
	const query = `delete from kv where id in (
		select k.id from kv k join kv_space s on s.id = k.space where k.expires <= $1 and ($2 = '' or s.name = $2) limit $3)
		returning space, size`
	freed := map[int64]int64{}
	err = x.t.each(query, args{millis(x.t.now), space, most}, func(scan func(...any) error) error {
		var id, size int64
		if err := scan(&id, &size); err != nil {
			return err
		}
		freed[id] += size
		removed++
		return nil
	})
	for id, size := range freed {
		if err == nil {
			_, err = x.t.exec(`update kv_space set bytes = bytes - $2 where id = $1`, id, size)
		}
	}
	return removed, err
}

func millis(t time.Time) int64  { return t.UnixMilli() }
func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
func dayOf(t time.Time) int64   { return t.Unix() / int64((24 * time.Hour).Seconds()) }
func expiryOf(ms *int64) (t time.Time) {
	if ms != nil {
		t = timeOf(*ms)
	}
	return t
}

// KVGet returns a value, its version and when it expires (zero: never). Version 0
// says that there is none.
func (d *DB) KVGet(ctx context.Context, space, key string) (value []byte, version int64, expires time.Time, err error) {
	err = d.View(ctx, func(tx Tx) error {
		e, _, err := tx.KVGet(space, key)
		value, version, expires = e.Value, e.Version, e.Expires
		return err
	})
	return value, version, expires, err
}

// KVPut is [Tx.KVPut] in a change of its own. It names no type of this package, so
// that others can ask for it without importing it.
func (d *DB) KVPut(ctx context.Context, space, key, writer string, value []byte, ttl time.Duration, ifVersion, maxBytes int64) (version int64, expires time.Time, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		version, expires, err = tx.KVPut(KVWrite{
			Space: space, Key: key, Writer: writer, Value: value, TTL: ttl, IfVersion: ifVersion, MaxBytes: maxBytes,
		})
		return err
	})
	return version, expires, err
}

// KVDelete is [Tx.KVDelete] in a change of its own.
func (d *DB) KVDelete(ctx context.Context, space, key string, ifVersion int64) (deleted bool, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		deleted, err = tx.KVDelete(space, key, ifVersion)
		return err
	})
	return deleted && err == nil, err
}

// KVKeys is [Tx.KVKeys] in a view of its own.
func (d *DB) KVKeys(ctx context.Context, space, prefix, after string, limit int) (keys []string, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		keys, err = tx.KVKeys(space, prefix, after, limit)
		return err
	})
	return keys, err
}

// KVUsage is [Tx.KVUsage] in a view of its own.
func (d *DB) KVUsage(ctx context.Context, space string) (bytes, values int64, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		bytes, values, err = tx.KVUsage(space)
		return err
	})
	return bytes, values, err
}

// KVCount is [Tx.KVCount] in a view of its own.
func (d *DB) KVCount(ctx context.Context, prefix string) (values int64, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		values, err = tx.KVCount(prefix)
		return err
	})
	return values, err
}

// KVForget is [Tx.KVForget] in a change of its own.
func (d *DB) KVForget(ctx context.Context, prefix string) error {
	return d.Update(ctx, func(tx Tx) error { return tx.KVForget(prefix) })
}
