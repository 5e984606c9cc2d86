package store

import (
	"context"
	"time"
)

// A Pin says which version of a module was accepted.
type Pin struct {
	Module      string
	Digest      string
	Definitions string
	// Rank orders the versions of a module as they were first accepted, from 1 on.
	// One of a lower rank than the pinned one is a downgrade.
	Rank int64
	// At is when it was last pinned.
	At time.Time
}

// SetPin makes digest the version of the module that is pinned, and returns its
// rank: one more than any before, or the one it had if it was pinned before.
func (x Tx) SetPin(module, digest, definitions string) (rank int64, err error) {
	for _, f := range []struct{ what, text string }{{"module", module}, {"digest", digest}, {"definitions", definitions}} {
		if err := checkName(f.what, f.text); err != nil {
			return 0, err
		}
	}
	if err := x.Unpin(module); err != nil {
		return 0, err
	}
	const query = `insert into pin (module, digest, definitions, rank, live, at)
		values ($1, $2, $3, (select coalesce(max(rank), 0) + 1 from pin where module = $1), 1, $4)
		on conflict (module, digest) do update set definitions = excluded.definitions, live = 1, at = excluded.at
		returning rank`
	_, err = x.t.returned(query, args{module, digest, definitions, millis(x.t.now)}, &rank)
	return rank, err
}

// Unpin leaves the module without a pinned version. The ranks are remembered.
func (x Tx) Unpin(module string) error {
	_, err := x.t.exec(`update pin set live = 0 where module = $1 and live = 1`, module)
	return err
}

// Pins returns what is pinned, ordered by the modules' names: of the one module, or
// of all if it is "".
func (x Tx) Pins(module string) ([]Pin, error) {
	const query = `select module, digest, definitions, rank, at from pin where live = 1 and ($1 = '' or module = $1) order by module`
	var all []Pin
	err := x.t.each(query, args{module}, func(scan func(...any) error) error {
		var p Pin
		var at int64
		err := scan(&p.Module, &p.Digest, &p.Definitions, &p.Rank, &at)
		p.At = timeOf(at)
		all = append(all, p)
		return err
	})
	return all, err
}

// PinRank returns the rank of a version that is or was pinned, 0 if it never was.
func (x Tx) PinRank(module, digest string) (rank int64, err error) {
	_, err = x.t.one(`select rank from pin where module = $1 and digest = $2`, args{module, digest}, &rank)
	return rank, err
}

// SetPin is [Tx.SetPin] in a change of its own.
func (d *DB) SetPin(ctx context.Context, module, digest, definitions string) (rank int64, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		rank, err = tx.SetPin(module, digest, definitions)
		return err
	})
	return rank, err
}

// Unpin is [Tx.Unpin] in a change of its own.
func (d *DB) Unpin(ctx context.Context, module string) error {
	return d.Update(ctx, func(tx Tx) error { return tx.Unpin(module) })
}

// Pins returns what is pinned of all modules, as [Tx.Pins] does.
func (d *DB) Pins(ctx context.Context) (all []Pin, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.Pins("")
		return err
	})
	return all, err
}

// Pin returns what is pinned of one module; its rank is 0 if nothing is.
func (d *DB) Pin(ctx context.Context, module string) (digest, definitions string, rank int64, err error) {
	err = d.View(ctx, func(tx Tx) error {
		pins, err := tx.Pins(module)
		for _, p := range pins {
			digest, definitions, rank = p.Digest, p.Definitions, p.Rank
		}
		return err
	})
	return digest, definitions, rank, err
}

// PinRank is [Tx.PinRank] in a view of its own.
func (d *DB) PinRank(ctx context.Context, module, digest string) (rank int64, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		rank, err = tx.PinRank(module, digest)
		return err
	})
	return rank, err
}
