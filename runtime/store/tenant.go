package store

import (
	"context"
	"fmt"
	"time"
)

// A tenant is this process as the owner of a database on a server. What says so is a
// lock of the connection that writes: whoever has lost it writes nothing, whatever it
// believes. The number of the tenure tells one that lost it, and comes back, whether
// another was there meanwhile.
type tenant struct {
	number int64 // 0 before it has moved in
	// backend and since are the server's process of the last connection.
	backend int64
	since   string
}

// settle waits for the lock on a new connection.
func (t *tenant) settle(ctx context.Context, s *session) error {
	if t.number > 0 { // the server may not know yet that the last connection broke
		const end = `select count(pg_terminate_backend(pid)) from pg_stat_activity where pid = $1 and cast(backend_start as text) = $2`
		var ended int
		if err := s.conn.QueryRowContext(ctx, end, t.backend, t.since).Scan(&ended); err != nil {
			return err
		}
	}
	for {
		locked, err := tryLock(ctx, s)
		if err != nil {
			return err
		}
		if locked {
			break
		}
		select {
		case <-ctx.Done():
			return t.refused(s)
		case <-time.After(renewPause):
		}
	}
	const who = `select pid, cast(backend_start as text) from pg_stat_activity where pid = pg_backend_pid()`
	if err := s.conn.QueryRowContext(ctx, who).Scan(&t.backend, &t.since); err != nil {
		return err
	}
	return t.stays(ctx, s)
}

// tryLock asks for the lock. It has a moment of its own: a connection that breaks at the
// end of ctx could not say who has it.
func tryLock(ctx context.Context, s *session) (locked bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectMost)
	defer cancel()
	err = s.conn.QueryRowContext(ctx, `select pg_try_advisory_lock($1)`, int64(applicationID)).Scan(&locked)
	return locked, err
}

// stays refuses to go on if another was there meanwhile.
func (t *tenant) stays(ctx context.Context, s *session) error {
	if t.number == 0 {
		return nil
	}
	var number int64
	if err := s.conn.QueryRowContext(ctx, `select number from tenure`).Scan(&number); err != nil {
		return err
	}
	if number != t.number {
		return fmt.Errorf("%w: it was taken while the connection was broken: start this one again", ErrOwned)
	}
	return nil
}

// refused says who has the lock. One who had it is told that it is not there yet: the
// other may be what is left of its own connection.
func (t *tenant) refused(s *session) error {
	ctx, cancel := context.WithTimeout(context.Background(), connectMost)
	defer cancel()
	const holder = `select a.pid, coalesce(host(a.client_addr), 'its own machine') from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'advisory' and l.granted and l.objid = $1 and l.database = (select oid from pg_database where datname = current_database()) limit 1`
	who := ""
	var pid int64
	var from string
	if err := s.conn.QueryRowContext(ctx, holder, int64(applicationID)).Scan(&pid, &from); err == nil {
		who = fmt.Sprintf(" (the server's process %d, for a client on %s)", pid, from)
	}
	if t.number > 0 {
		return fmt.Errorf("%w: another connection has the database%s", ErrUnavailable, who)
	}
	return fmt.Errorf("%w%s: a database has one server: end the other one, or choose another database", ErrOwned, who)
}

// moveIn begins a tenure.
func (t *tenant) moveIn(ctx context.Context, s *session) error {
	return s.conn.QueryRowContext(ctx, `update tenure set number = number + 1 returning number`).Scan(&t.number)
}
