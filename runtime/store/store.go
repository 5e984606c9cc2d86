package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Options say how a database is kept. The zero value works.
type Options struct {
	// Readers is how many Views run at once; more wait. Default 4.
	Readers int
	// MaxBytes is how large the database file may become; 0 means as large as
	// the disk allows. The log beside it is not counted. A server of PostgreSQL looks
	// after that itself.
	MaxBytes int64
	// LockWait is how long a change waits for another program that holds the
	// database locked, to copy it for example, or for a server that is away. Default 5 s.
	LockWait time.Duration
	// SweepEvery is how often what has expired is removed. Default 1 minute.
	SweepEvery time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger takes what no caller can be told; nil drops it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.LockWait <= 0 {
		o.LockWait = 5 * time.Second
	}
	if o.SweepEvery <= 0 {
		o.SweepEvery = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// DB is an open database. Its methods may be called from any goroutine.
type DB struct {
	pools     []*sql.DB
	links     []*session // those to a server
	committer *committer
	readers   *readers
	sweeper   *sweeper
	lock      *flock.Flock // of a file; nil if there is none
	closing   sync.Once
	closed    error
}

// Update runs fn, and returns nil when all that it changed is on the disk. If fn
// returns an error, nothing of it is kept and Update returns that error. Changes
// of others that fail do no harm to this one, but a disk that is full, or broken,
// may fail those that were to be written together.
//
// If ctx ends while fn waits for its turn or runs, nothing is kept; later than
// that, the outcome is what counts. fn runs once, in the caller's goroutine, while
// every other change waits: it must be short and must not use the DB.
func (d *DB) Update(ctx context.Context, fn func(Tx) error) error {
	return d.committer.update(ctx, fn)
}

// View runs fn on one state of the database, that of the last change before it
// began. It must not use the DB, and changes nothing: [ErrReadOnly].
func (d *DB) View(ctx context.Context, fn func(Tx) error) error {
	return d.readers.view(ctx, fn)
}

// Close ends all work, waits for what runs, and closes the files or connections.
func (d *DB) Close() error {
	d.closing.Do(func() {
		d.stop()
		all := []error{d.readers.close(), d.committer.s.close()}
		d.closed = errors.Join(append(all, d.closeEarly())...)
	})
	return d.closed
}

// stop ends the goroutines.
func (d *DB) stop() {
	d.sweeper.close()
	d.committer.stop()
}
