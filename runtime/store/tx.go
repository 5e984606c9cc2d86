package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// A Tx is what the function of an Update or a View works with, until it returns.
// It is used by one goroutine.
//
// An error of the engine ends it: what follows fails with the same error, and
// Update keeps nothing, whatever the function returns. A refusal, such as a
// [*VersionError], does not.
type Tx struct{ t *transaction }

type transaction struct {
	ctx   context.Context
	s     *session
	now   time.Time
	write bool
	err   error // what ended it
}

var errEnded = errors.New("the transaction has ended")

func (t *transaction) end() {
	if t.err == nil {
		t.err = errEnded
	}
}

// ready says whether a statement may run. Statements themselves are never
// interrupted: the engine would undo the changes of everyone in the group with them.
func (t *transaction) ready() error {
	if t.err == nil {
		t.err = t.ctx.Err()
	}
	return t.err
}

func (t *transaction) fail(err error) error {
	if err != nil {
		t.err = t.s.classify(err)
		return t.err
	}
	return nil
}

// mayWrite refuses what would change something in a view, which goes on.
func (t *transaction) mayWrite() error {
	if err := t.ready(); err != nil {
		return err
	}
	if !t.write {
		return ErrReadOnly
	}
	return nil
}

// exec changes something, and returns how many rows.
func (t *transaction) exec(query string, args ...any) (int64, error) {
	if err := t.mayWrite(); err != nil {
		return 0, err
	}
	n, err := t.s.exec(query, args...)
	return n, t.fail(err)
}

// args are those of a statement, kept apart from where its columns go.
type args []any

// one reads the one row there can be into dest.
func (t *transaction) one(query string, a args, dest ...any) (found bool, err error) {
	err = t.each(query, a, func(scan func(...any) error) error {
		found = true
		return scan(dest...)
	})
	return found && err == nil, err
}

// returned changes something, and reads the one row that the statement returns.
func (t *transaction) returned(query string, a args, dest ...any) (found bool, err error) {
	if err := t.mayWrite(); err != nil {
		return false, err
	}
	return t.one(query, a, dest...)
}

// each calls row for every row, with the function that reads its columns.
func (t *transaction) each(query string, a args, row func(scan func(...any) error) error) error {
	if err := t.ready(); err != nil {
		return err
	}
	return t.fail(t.s.each(query, a, row))
}

func (s *session) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := s.prepared[query]; ok {
		return stmt, nil
	}
	if s.conn == nil {
		return nil, ErrUnavailable
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err == nil {
		s.prepared[query] = stmt
	}
	return stmt, err
}

func (s *session) exec(query string, args ...any) (int64, error) {
	ctx, done := s.bounded()
	defer done()
	stmt, err := s.statement(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, s.engine.given(args)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s *session) each(query string, args []any, row func(scan func(...any) error) error) (err error) {
	ctx, done := s.bounded()
	defer done()
	stmt, err := s.statement(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, s.engine.given(args)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *session) close() error {
	if s.conn == nil {
		return nil
	}
	if s.engine.hangUp != nil {
		s.engine.hangUp(s.conn)
		s.forget()
		return nil
	}
	var all []error
	for _, stmt := range s.prepared {
		all = append(all, stmt.Close())
	}
	return errors.Join(append(all, s.conn.Close())...)
}
