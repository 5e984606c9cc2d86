package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// What can be wrong with a database. The text of an error that wraps one of
// these is one line for an operator, and may name the file.
var (
	// ErrClosed: the store was closed, or its writer broke.
	ErrClosed = errors.New("the store is closed")
	// ErrForeign: the file is no database, or one of another program.
	ErrForeign = errors.New("no database of hutch")
	// ErrCorrupt: the file is damaged.
	ErrCorrupt = errors.New("the database is damaged")
	// ErrNewer: a newer version of hutch has changed the tables.
	ErrNewer = errors.New("the database was written by a newer version of hutch")
	// ErrPlace: the file cannot be kept safely where it is, or as it is.
	ErrPlace = errors.New("no safe place for a database")
	// ErrFull: the disk is full, or the database as large as it may be.
	ErrFull = errors.New("no room left for the database")
	// ErrBusy: another program holds the database locked.
	ErrBusy = errors.New("the database is locked by another program")
	// ErrOwned: another process has the database open.
	ErrOwned = errors.New("another process has the database open")
	// ErrUnavailable: the server of the database does not answer, or broke off.
	ErrUnavailable = errors.New("the database server does not answer")
	// ErrUnknown: the server broke off while it was to keep a change, and cannot be asked
	// what became of it.
	ErrUnknown = errors.New("whether the change was kept is not known")
	// ErrReadOnly: a View tried to change something.
	ErrReadOnly = errors.New("a view changes nothing")
)

// classes says which sentinel a code of SQLite stands for, by its primary code.
var classes = []struct {
	code int
	is   error
}{
	{lib.SQLITE_NOTADB, ErrForeign},
	{lib.SQLITE_CORRUPT, ErrCorrupt},
	{lib.SQLITE_FULL, ErrFull},
	{lib.SQLITE_BUSY, ErrBusy},
	{lib.SQLITE_READONLY, ErrReadOnly},
}

// classify adds the sentinel that fits to an error of an engine.
func classify(err error) error {
	var found *sqlite.Error
	if !errors.As(err, &found) {
		return classifyPostgres(err)
	}
	for _, c := range classes {
		if found.Code()&0xff == c.code {
			return fmt.Errorf("%w: %w", c.is, err)
		}
	}
	return err
}

// A VersionError says that a value is not as its writer last saw it. Nothing was
// changed.
type VersionError struct {
	Found int64 // the version that is there; 0 if there is no value
}

// Error implements error.
func (e *VersionError) Error() string {
	if e.Found == 0 {
		return "there is no such value"
	}
	return fmt.Sprintf("the value has version %d by now", e.Found)
}

// CurrentVersion returns the version that is there; 0 if there is no value.
func (e *VersionError) CurrentVersion() int64 { return e.Found }

// A QuotaError says that a value does not fit into what its space may hold.
// Nothing was changed.
type QuotaError struct {
	Used, Most int64 // in bytes; Used is what the space would hold
}

// Error implements error.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("%d bytes would be kept, at most %d", e.Used, e.Most)
}

// Quota returns how many bytes the space would hold, and how many it may.
func (e *QuotaError) Quota() (used, most int64) { return e.Used, e.Most }
