package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/hutch-run/hutch/protocol/access"
)

// AddToken keeps a token, or returns [access.ErrTaken] if its name or its id is another's.
func (x Tx) AddToken(t access.Token) error {
	for _, f := range []struct{ what, text string }{{"id of a token", t.ID}, {"name of a token", t.Name}, {"principal of a token", t.Principal}} {
		if err := checkName(f.what, f.text); err != nil {
			return err
		}
	}
	if len(t.Hash) != sha256.Size {
		return fmt.Errorf("hash of a token of %d bytes, allowed are %d", len(t.Hash), sha256.Size)
	}
	scopes := strings.Join(t.Scopes, " ")
	if len(scopes) > maxName {
		return fmt.Errorf("scopes of a token of %d bytes, at most %d", len(scopes), maxName)
	}
	var expires any
	if !t.Expires.IsZero() {
		expires = millis(t.Expires)
	}
	const query = `insert into token (key, name, principal, scopes, hash, created, expires) values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing`
	n, err := x.t.exec(query, t.ID, t.Name, t.Principal, scopes, t.Hash, millis(t.Created), expires)
	if err == nil && n == 0 {
		err = access.ErrTaken
	}
	return err
}

// RevokeToken forgets the token of that name, and reports whether there was one.
func (x Tx) RevokeToken(name string) (bool, error) {
	n, err := x.t.exec(`delete from token where name = $1`, name)
	return n == 1, err
}

// Tokens returns all tokens, ordered by name.
func (x Tx) Tokens() ([]access.Token, error) {
	const query = `select key, name, principal, scopes, hash, created, coalesce(expires, 0) from token order by name`
	var all []access.Token
	err := x.t.each(query, nil, func(scan func(...any) error) error {
		var t access.Token
		var scopes string
		var created, expires int64
		err := scan(&t.ID, &t.Name, &t.Principal, &scopes, &t.Hash, &created, &expires)
		t.Scopes, t.Created = strings.Fields(scopes), timeOf(created)
		if expires != 0 {
			t.Expires = timeOf(expires)
		}
		all = append(all, t)
		return err
	})
	return all, err
}

// AddToken is [Tx.AddToken] in a change of its own.
func (d *DB) AddToken(ctx context.Context, t access.Token) error {
	return d.Update(ctx, func(tx Tx) error { return tx.AddToken(t) })
}

// RevokeToken is [Tx.RevokeToken] in a change of its own.
func (d *DB) RevokeToken(ctx context.Context, name string) (was bool, err error) {
	err = d.Update(ctx, func(tx Tx) (err error) {
		was, err = tx.RevokeToken(name)
		return err
	})
	return was && err == nil, err
}

// Tokens is [Tx.Tokens] in a view of its own.
func (d *DB) Tokens(ctx context.Context) (all []access.Token, err error) {
	err = d.View(ctx, func(tx Tx) (err error) {
		all, err = tx.Tokens()
		return err
	})
	return all, err
}
