package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// renewPause is how long a server is left alone that did not answer.
const renewPause = 50 * time.Millisecond

// begin begins a transaction, on a new connection if the old one broke: nothing is lost
// by that yet.
func (s *session) begin(ctx context.Context, how string) error {
	_, err := s.exec(how)
	if err == nil || !s.isGone() || !s.engine.remote {
		return err
	}
	if err := s.renew(ctx); err != nil {
		return err
	}
	_, err = s.exec(how)
	return err
}

// renew has the session go on with a new connection, and waits for a server that is
// away.
func (s *session) renew(ctx context.Context) error {
	s.forget()
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	var told error // that the time was over says less than what was in the way before
	for {
		err := s.join(ctx)
		if err == nil {
			return nil
		}
		s.forget()
		if !errors.Is(err, ErrUnavailable) {
			return err
		}
		if told == nil || ctx.Err() == nil {
			told = err
		}
		select {
		case <-ctx.Done():
			return told
		case <-time.After(renewPause):
		}
	}
}

// join makes a connection and settles it.
func (s *session) join(ctx context.Context) (err error) {
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		return unavailable(err)
	}
	if s.settle == nil {
		return nil
	}
	if err := s.settle(ctx, s); err != nil {
		return s.classify(err)
	}
	return nil
}

// forget gives up the connection, and what was prepared on it.
func (s *session) forget() {
	if s.conn == nil {
		return
	}
	if s.engine.hangUp != nil {
		s.engine.hangUp(s.conn)
	}
	for _, stmt := range s.prepared {
		_ = stmt.Close() // its connection is gone
	}
	clear(s.prepared)
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // so that the pool makes a new one
	_ = s.conn.Close()
	s.conn = nil
}

// begin begins a group. A writer that another process took the database from writes
// nothing more.
func (c *committer) begin() error {
	if c.lost != nil {
		return c.lost
	}
	err := c.s.begin(context.Background(), c.s.engine.beginWrite)
	return c.notice(err)
}

// notice remembers that the database is another's by now.
func (c *committer) notice(err error) error {
	if errors.Is(err, ErrOwned) && c.lost == nil {
		c.lost = err
		c.logger.Error("the database is another process's by now: this one writes nothing more", "error", err)
	}
	return err
}

// commit keeps the group. If the connection breaks over it, the server is asked on a new
// one what became of it.
func (c *committer) commit() error {
	if !c.s.engine.remote {
		_, err := c.s.exec(commit)
		return err
	}
	var id int64
	err := c.s.each(`select txid_current()`, nil, func(scan func(...any) error) error { return scan(&id) })
	if err != nil {
		return err
	}
	if _, err = c.s.exec(commit); err == nil || !c.s.isGone() {
		return err
	}
	return c.outcome(id, c.s.classify(err))
}

// outcome returns nil if a transaction was kept whose commit was answered by cause. The
// new connection has the lock of the database, so the old one has ended, one way or the
// other.
func (c *committer) outcome(id int64, cause error) error {
	if err := c.notice(c.s.renew(context.Background())); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	var status sql.NullString
	err := c.s.each(`select txid_status($1)`, args{id}, func(scan func(...any) error) error { return scan(&status) })
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case status.String == "committed":
		return nil
	case status.String == "aborted":
		return cause
	}
	return fmt.Errorf("%w: %w", ErrUnknown, cause)
}
