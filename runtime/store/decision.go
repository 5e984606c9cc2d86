package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A Decision is what somebody decided about a module, once and for all: another
// one may follow, none is changed.
type Decision struct {
	// ID orders decisions; the store gives it.
	ID int64
	// At is when; the store says so.
	At  time.Time
	Who string
	// Action is one of "grant", "revoke" and "approve".
	Action string
	Module string
	// Digest and Definitions are the version that it was made for: both empty if none
	// was named, and Definitions alone if the bytes were.
	Digest, Definitions string
	// Grant is what the module has been granted from then on, as JSON.
	Grant json.RawMessage
}

// maxGrant is the longest grant that is kept, in bytes.
const maxGrant = 1 << 20

func (d Decision) check() error {
	if actions := []string{"grant", "revoke", "approve"}; !slices.Contains(actions, d.Action) {
		return fmt.Errorf("action %q, allowed are %v", d.Action, actions)
	}
	for _, f := range []struct{ what, text string }{
		{"who", d.Who}, {"module", d.Module}, {"digest", d.Digest}, {"definitions", d.Definitions},
	} {
		if f.text == "" && (f.what == "digest" || f.what == "definitions") {
			continue
		}
		if err := checkName(f.what, f.text); err != nil {
			return err
		}
	}
	if len(d.Grant) > maxGrant {
		return fmt.Errorf("grant of %d bytes, at most %d", len(d.Grant), maxGrant)
	}
	if !json.Valid(d.Grant) {
		return fmt.Errorf("grant that is not JSON")
	}
	return nil
}

// Decide adds a decision to the history and returns its number. Its ID and At are
// not looked at.
func (x Tx) Decide(d Decision) (id int64, err error) {
	if err := d.check(); err != nil {
		return 0, err
	}
	const query = `insert into decision (at, who, action, module, digest, definitions, granted)
		values ($1, $2, $3, $4, $5, $6, $7) returning id`
	_, err = x.t.returned(query, args{millis(x.t.now), d.Who, d.Action, d.Module, d.Digest, d.Definitions, words(string(d.Grant))}, &id)
	return id, err
}

// maxDecisions is how many decisions one question is answered with.
const maxDecisions = 1000

// Decisions returns the decisions about a module, or about all if it is "", newest
// first: those before the one with the number before (0: from the newest), at most
// limit of them and at most 1,000.
func (x Tx) Decisions(module string, before int64, limit int) ([]Decision, error) {
	const query = `select id, at, who, action, module, digest, definitions, granted from decision
		where ($1 = '' or module = $1) and (cast($2 as bigint) = 0 or id < $2) order by id desc limit $3`
	var all []Decision
	err := x.t.each(query, args{module, before, max(0, min(limit, maxDecisions))}, func(scan func(...any) error) error {
		var d Decision
		var at int64
		var grant string
		err := scan(&d.ID, &at, &d.Who, &d.Action, &d.Module, &d.Digest, &d.Definitions, &grant)
		d.At, d.Grant = timeOf(at), json.RawMessage(grant)
		all = append(all, d)
		return err
	})
	return all, err
}

// Decide is [Tx.Decide] in a change of its own. It names no type of this package,
// so that others can ask for it without importing it.
func (d *DB) Decide(ctx context.Context, who, action, module, digest, definitions, grant string) (id int64, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		id, err = tx.Decide(Decision{
			Who: who, Action: action, Module: module, Digest: digest, Definitions: definitions, Grant: json.RawMessage(grant),
		})
		return err
	})
	return id, err
}

// Decisions is [Tx.Decisions] in a view of its own.
func (d *DB) Decisions(ctx context.Context, module string, before int64, limit int) (all []Decision, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.Decisions(module, before, limit)
		return err
	})
	return all, err
}
