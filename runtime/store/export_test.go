package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// OpenImpatient is [OpenPostgres] with less patience for a statement.
func OpenImpatient(ctx context.Context, p Postgres, o Options, patience time.Duration) (*DB, error) {
	e := postgresEngine()
	e.patience = patience
	return openPostgres(ctx, p, o, e)
}

// EveryStatement has the statements prepared whose cost must not grow with what others
// keep.
func EveryStatement(tx Tx) error { return errors.Join(everyKeptStatement(tx), everyStatement(tx)) }

// Prepared stops the writer and returns what was prepared on its connection.
func Prepared(d *DB) []string {
	d.stop()
	return slices.Sorted(maps.Keys(d.committer.s.prepared))
}
