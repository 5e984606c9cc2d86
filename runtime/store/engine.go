package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"time"
)

// An engine is what differs between the databases. The statements do not.
type engine struct {
	beginWrite, beginRead string
	// folder has the migrations, and table makes the table that says which were applied.
	folder, table string
	// patience is the longest that one statement is waited for; 0 is for ever.
	patience time.Duration
	// remote: the connection may break while the database lives on.
	remote bool
	// gone reports whether the connection broke; nil where it cannot.
	gone func(*sql.Conn) bool
	// hangUp ends a connection without a word about what was prepared on it; nil where
	// there is no hurry.
	hangUp func(*sql.Conn)
}

//go:embed migrations/sqlite/*.sql migrations/postgres/*.sql
var migrationFiles embed.FS

func sqliteEngine() *engine {
	return &engine{
		beginWrite: "begin immediate", beginRead: "begin",
		folder: "migrations/sqlite",
		table:  `create table if not exists migration (version integer primary key, name text not null, at integer not null) strict`,
	}
}

// The words for a group and its members that engines share.
const (
	commit    = "commit"
	rollback  = "rollback"
	savepoint = "savepoint member"
	release   = "release member"
	undo      = "rollback to member"
)

// A session is one connection and what was prepared on it. The texts are
// constants, so there are only so many.
type session struct {
	engine   *engine
	pool     *sql.DB
	conn     *sql.Conn // nil while there is none
	prepared map[string]*sql.Stmt
	// settle makes a new connection the session's; nil asks for nothing.
	settle func(context.Context, *session) error
	// wait is how long a database is waited for that does not answer.
	wait time.Duration
}

// bounded is the time that a statement has.
func (s *session) bounded() (context.Context, context.CancelFunc) {
	if s.engine.patience == 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), s.engine.patience)
}

// isGone reports whether the connection broke.
func (s *session) isGone() bool {
	return s.conn == nil || s.engine.gone != nil && s.engine.gone(s.conn)
}

// classify is [classify] with what the connection tells.
func (s *session) classify(err error) error {
	err = classify(err)
	if err != nil && !isNamed(err) && s.isGone() {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
