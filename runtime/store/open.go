package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"
)

// Open opens the SQLite database in the file at path, makes it if there is none,
// and brings its tables up to date. The folder must exist. See the errors of this
// package for what it refuses.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	return open(ctx, path, o, networkFilesystem)
}

// open is Open with what names a network file system that a folder is on, or "".
func open(ctx context.Context, path string, o Options, network func(dir string) string) (_ *DB, err error) {
	o = o.withDefaults()
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	leftover, err := prepareFile(path, network)
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", path, err)
	}
	// A commit waits for the data and for what is needed to read it back, not for
	// the time stamps too: half the time on ext4. Not every system has it.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return nil, err
	}
	d := &DB{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the store %s: %w", path, errors.Join(classify(err), d.closeEarly()))
		}
	}()
	fresh, err := d.probe(ctx, path, o.LockWait)
	if err != nil {
		return nil, err
	}
	if err := d.lockFile(path); err != nil {
		return nil, err
	}
	writer, err := d.connect(ctx, writerURI(path, o.LockWait))
	if err != nil {
		return nil, err
	}
	if err := ready(writer, o, fresh, leftover); err != nil {
		return nil, err
	}
	if err := d.start(writer, o, func() (*session, error) { return d.connect(ctx, readerURI(path, o.LockWait)) }); err != nil {
		return nil, err
	}
	return d, nil
}

// start has a database work that is up to date; reader makes one more connection that
// reads.
func (d *DB) start(writer *session, o Options, reader func() (*session, error)) error {
	d.readers = &readers{now: o.Now, free: make(chan *session, o.Readers), shut: make(chan struct{})}
	for range o.Readers {
		s, err := reader()
		if err != nil {
			return err
		}
		d.readers.free <- s
	}
	d.committer = newCommitter(writer, o)
	go d.committer.loop()
	d.sweeper = startSweeper(o.SweepEvery, o.Logger, d.Sweep)
	return nil
}

// closeEarly closes what there is of a database that could not be opened.
func (d *DB) closeEarly() error {
	var all []error
	for _, s := range d.links {
		s.forget()
	}
	for _, pool := range d.pools {
		all = append(all, pool.Close()) // and with it the connection
	}
	if d.lock != nil {
		all = append(all, d.lock.Unlock())
	}
	return errors.Join(all...)
}

// lockFile takes the database for this process. The lock is on a file of its own: SQLite
// gives its own locks up when anybody in the process closes the database's file.
func (d *DB) lockFile(path string) error {
	whole, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	lock := flock.New(whole+"-lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: a file has one server: end the other one, or choose another file", ErrOwned)
	}
	d.lock = lock
	return nil
}

// probe looks at the file without changing it: writing begins with a change of its
// header, which another program's file must be spared.
func (d *DB) probe(ctx context.Context, path string, lockWait time.Duration) (fresh bool, err error) {
	s, err := d.connect(ctx, uri(path, lockWait, url.Values{"mode": {"ro"}}))
	if err != nil {
		return false, err
	}
	fresh, err = identify(s)
	return fresh, errors.Join(err, s.close())
}

// connect opens one connection, in a pool of its own.
func (d *DB) connect(ctx context.Context, uri string) (*session, error) {
	pool, err := sql.Open("sqlite", uri)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	d.pools = append(d.pools, pool)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{engine: sqliteEngine(), pool: pool, conn: conn, prepared: map[string]*sql.Stmt{}}, nil
}

// writerURI is how the file is written: a commit returns after the log is synced,
// on macOS through the drive's own cache too.
func writerURI(path string, lockWait time.Duration) string {
	return uri(path, lockWait, url.Values{
		"mode": {"rw"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
		"_pragma": {"fullfsync(1)", "checkpoint_fullfsync(1)", "journal_size_limit(67108864)", "cell_size_check(1)", "trusted_schema(0)"},
	})
}

func readerURI(path string, lockWait time.Duration) string {
	return uri(path, lockWait, url.Values{
		"mode": {"rw"}, "_query_only": {"1"}, "_pragma": {"cell_size_check(1)", "trusted_schema(0)"},
	})
}

func uri(path string, lockWait time.Duration, q url.Values) string {
	q.Set("_busy_timeout", strconv.FormatInt(lockWait.Milliseconds(), 10))
	q.Set("_foreign_keys", "1")
	q.Set("_defensive", "1")
	q.Set("_dqs", "0")
	q.Set("_error_rc", "1")
	slashed := "/" + strings.TrimPrefix(filepath.ToSlash(path), "/") // /C:/... on Windows
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?" + q.Encode()
}

// prepareFile refuses a place or a file that is no good, and makes the file for
// its owner alone if there is none. It reports whether a log was left beside it by
// a process that did not end well.
func prepareFile(path string, network func(dir string) string) (leftover bool, err error) {
	if kind := network(filepath.Dir(path)); kind != "" {
		return false, fmt.Errorf("%w: it is on a network file system (%s), where locks and syncs are not kept: choose a local folder", ErrPlace, kind)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, makeFile(path)
	}
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%w: it is no regular file", ErrPlace)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return false, fmt.Errorf("%w: others may use it (mode %04o): chmod 600 it", ErrPlace, mode)
	}
	log, err := os.Stat(path + "-wal")
	return err == nil && log.Size() > 0, nil
}

func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncDir(filepath.Dir(path)))
}

// syncDir makes a new file's name as durable as what will be written to it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // it has no such thing
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
