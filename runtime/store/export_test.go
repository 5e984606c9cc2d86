package store

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Impatient has a database that is open wait no longer than that, for a server that is
// away and for a statement. Nobody may use it meanwhile.
func Impatient(d *DB, wait time.Duration) {
	for _, s := range d.links {
		s.wait, s.engine.patience = wait, wait
	}
}

// EveryStatement has the statements prepared whose cost must not grow with what others
// keep.
func EveryStatement(tx Tx) error {
	return errors.Join(everyKeptStatement(tx), everyStatement(tx), everyBoardStatement(tx), everyInboxStatement(tx))
}

// Prepared stops the writer and returns what was prepared on its connection.
func Prepared(d *DB) []string {
	d.stop()
	return slices.Sorted(maps.Keys(d.committer.s.prepared))
}
