package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// schema holds all our tables, so that they meet no others in the database.
const schema = "hutch"

// Patience with a server, which may stop in the middle of an answer.
const (
	statementMost = 30 * time.Second
	connectMost   = 5 * time.Second
	hangUpMost    = time.Second
)

// leastServer is the oldest PostgreSQL that is used, as it numbers itself.
const leastServer = 130000

func postgresEngine() *engine {
	return &engine{
		beginWrite: "begin isolation level read committed", beginRead: "begin isolation level repeatable read read only",
		folder:   "migrations/postgres",
		table:    `create table if not exists migration (version bigint primary key, name text not null, at bigint not null)`,
		patience: statementMost, remote: true, gone: goneFromServer, hangUp: hangUp,
	}
}

// driverConn returns the driver's own connection, nil if it broke.
func driverConn(conn *sql.Conn) (found *pgx.Conn) {
	_ = conn.Raw(func(c any) error { // an error says that there is none
		if own, ok := c.(*stdlib.Conn); ok {
			found = own.Conn()
		}
		return nil
	})
	return found
}

func goneFromServer(conn *sql.Conn) bool {
	own := driverConn(conn)
	return own == nil || own.IsClosed()
}

func hangUp(conn *sql.Conn) {
	if own := driverConn(conn); own != nil {
		ctx, cancel := context.WithTimeout(context.Background(), hangUpMost)
		defer cancel()
		_ = own.Close(ctx) // whatever the server says to it
	}
}

// OpenPostgres opens a database of a PostgreSQL server, and brings its tables up to
// date: they are in a schema "hutch", which is made if there is none. The database
// belongs to this process until it is closed. [Options.MaxBytes] does not apply.
//
// A connection that breaks is made anew. What was not begun by then is done on the new
// one; of a change that was about to be kept, the server is asked what became of it.
func OpenPostgres(ctx context.Context, p Postgres, o Options) (_ *DB, err error) {
	o = o.withDefaults()
	config, err := p.config(o)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	d := &DB{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("open the store %s: %w", p.Place(), flat{classify(err)}), d.closeEarly())
		}
	}()
	engine := postgresEngine()
	connect := func() (*session, error) {
		s := d.sessionOf(engine, config, p.Password, o)
		return s, s.renew(ctx)
	}
	writer := d.sessionOf(engine, config, p.Password, o)
	owner := &tenant{}
	writer.settle = owner.settle
	if err := writer.renew(ctx); err != nil {
		return nil, err
	}
	if err := fit(ctx, writer); err != nil {
		return nil, err
	}
	if err := migrateAll(writer, o); err != nil {
		return nil, err
	}
	if err := owner.moveIn(ctx, writer); err != nil {
		return nil, err
	}
	if err := d.start(writer, o, connect); err != nil {
		return nil, err
	}
	return d, nil
}

// sessionOf is a session that has no connection yet.
func (d *DB) sessionOf(e *engine, config *pgx.ConnConfig, password func() (string, error), o Options) *session {
	pool := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) (err error) {
		if password != nil { // each time, so that a new one counts
			c.Password, err = password()
		}
		return err
	}))
	pool.SetMaxOpenConns(1)
	d.pools = append(d.pools, pool)
	s := &session{engine: e, pool: pool, prepared: map[string]*sql.Stmt{}, wait: o.LockWait}
	d.links = append(d.links, s)
	return s
}

// serverSettings are those that decide whether a server is used.
type serverSettings struct {
	version         int // as it numbers itself
	encoding, fsync string
	fixed           bool // nobody may change anything
}

// check refuses a server that would lose or spoil what it said it has.
func (v serverSettings) check() error {
	switch {
	case v.version < leastServer:
		return fmt.Errorf("%w: the server is PostgreSQL %d, the oldest allowed is %d", ErrPlace, v.version/10000, leastServer/10000)
	case v.encoding != "UTF8":
		return fmt.Errorf("%w: its encoding is %.20s: choose a database with UTF8", ErrPlace, v.encoding)
	case v.fsync != "on":
		return fmt.Errorf("%w: the server does not wait for its disk (fsync is %.10s): switch it on", ErrPlace, v.fsync)
	case v.fixed:
		return fmt.Errorf("%w: the server lets nobody change anything, as a standby does: choose the primary", ErrPlace)
	}
	return nil
}

// fit refuses a server that is no good, and a schema that is somebody else's; it makes
// one if there is none.
func fit(ctx context.Context, s *session) error {
	var v serverSettings
	const about = `select cast(current_setting('server_version_num') as bigint), current_setting('server_encoding'), current_setting('fsync'),
		pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on'`
	if err := s.conn.QueryRowContext(ctx, about).Scan(&v.version, &v.encoding, &v.fsync, &v.fixed); err != nil {
		return err
	}
	if err := v.check(); err != nil {
		return err
	}
	var there, ours bool
	var tables int
	const look = `select exists (select 1 from pg_namespace where nspname = $1),
		exists (select 1 from pg_tables where schemaname = $1 and tablename = 'migration'), (select count(*) from pg_tables where schemaname = $1)`
	if err := s.conn.QueryRowContext(ctx, look, schema).Scan(&there, &ours, &tables); err != nil {
		return err
	}
	switch {
	case !there:
		return s.script("create schema " + schema)
	case tables > 0 && !ours:
		return fmt.Errorf("%w: the schema %q belongs to another program: choose another database", ErrForeign, schema)
	}
	return nil
}

// states says which sentinel a code of PostgreSQL stands for (its manual, appendix A):
// a whole code, or the two characters of a class.
func states() map[string]error {
	return map[string]error{
		"53100": ErrFull, "55P03": ErrBusy, "25006": ErrReadOnly, "XX001": ErrCorrupt, "XX002": ErrCorrupt,
		"57P01": ErrUnavailable, "57P02": ErrUnavailable, "57P03": ErrUnavailable, "57P05": ErrUnavailable, "53300": ErrUnavailable, "08": ErrUnavailable,
	}
}

func classifyPostgres(err error) error {
	var found *pgconn.PgError
	if !errors.As(err, &found) || isNamed(err) {
		return err
	}
	all := states()
	is, ok := all[found.Code]
	if !ok && len(found.Code) == 5 {
		is, ok = all[found.Code[:2]]
	}
	if !ok {
		return err
	}
	return fmt.Errorf("%w: %w", is, err)
}

// isNamed reports whether an error says already what it stands for.
func isNamed(err error) bool {
	return slices.ContainsFunc([]error{ErrClosed, ErrForeign, ErrCorrupt, ErrNewer, ErrPlace, ErrFull, ErrBusy, ErrReadOnly, ErrOwned, ErrUnavailable, ErrUnknown},
		func(is error) bool { return errors.Is(err, is) })
}

// unavailable says of an error that there is no connection, unless the server refuses us
// for good: a wrong password, or a database that is not there.
func unavailable(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return classifyPostgres(err)
	}
	var dial *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &dial) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// flat is an error on one line.
type flat struct{ error }

func (f flat) Error() string { return strings.Join(strings.Fields(f.error.Error()), " ") }

// Unwrap returns the error as it was.
func (f flat) Unwrap() error { return f.error }

func runtimeParams(o Options) map[string]string {
	return map[string]string{
		"application_name": "hutch", "client_encoding": "UTF8", "search_path": schema,
		// A commit waits for the disk, and what waits for a lock gives up.
		"synchronous_commit": "on", "lock_timeout": strconv.FormatInt(o.LockWait.Milliseconds(), 10),
		// A process that is gone with its machine holds the database half a minute.
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
		// Statements are small, and compiling one takes longer than running it.
		"jit": "off",
	}
}
