package store

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// applicationID marks a database as ours in its header: "htch".
const applicationID = 0x68746368

// checkMost is the largest database that is checked whole each time it is opened,
// in bytes; a larger one is if its last user did not end well.
const checkMost = 32 << 20

// ready finds out whether the file is sound, limits it, and brings its tables up to
// date.
func ready(s *session, o Options, fresh, leftover bool) error {
	if err := durable(s); err != nil {
		return err
	}
	if err := limit(s, o.MaxBytes); err != nil {
		return err
	}
	if fresh {
		if err := s.script(fmt.Sprintf("pragma application_id = %d", applicationID)); err != nil {
			return err
		}
	}
	if err := check(s, leftover); err != nil {
		return err
	}
	return migrateAll(s, o)
}

// identify tells a new database from one of ours, and refuses any other.
func identify(s *session) (fresh bool, err error) {
	var id, tables int64
	if id, err = s.number("pragma application_id"); err != nil {
		return false, err
	}
	if tables, err = s.number("select count(*) from sqlite_schema"); err != nil {
		return false, err
	}
	switch {
	case id == applicationID:
		return false, nil
	case id == 0 && tables == 0:
		return true, nil
	}
	return false, fmt.Errorf("%w: it belongs to another program: choose another file", ErrForeign)
}

// durable holds that a commit waits for the disk: SQLite keeps silent about a mode
// that it cannot have.
func durable(s *session) error {
	const full = 2
	var mode string
	err := s.each("pragma journal_mode", nil, func(scan func(...any) error) error { return scan(&mode) })
	if err != nil {
		return err
	}
	sync, err := s.number("pragma synchronous")
	if err == nil && (mode != "wal" || sync != full) {
		err = fmt.Errorf("%w: it has no log that is synced (journal mode %s, synchronous %d): choose a local folder", ErrPlace, mode, sync)
	}
	return err
}

func limit(s *session, most int64) error {
	if most <= 0 {
		return nil
	}
	page, err := s.number("pragma page_size")
	if err != nil {
		return err
	}
	return s.script(fmt.Sprintf("pragma max_page_count = %d", max(1, most/page)))
}

func check(s *session, leftover bool) error {
	size, err := s.number("select page_count * page_size from pragma_page_count, pragma_page_size")
	if err != nil || size > checkMost && !leftover {
		return err
	}
	var found string
	err = s.each("pragma quick_check(1)", nil, func(scan func(...any) error) error { return scan(&found) })
	if err == nil && found != "ok" {
		line, _, _ := strings.Cut(strings.TrimPrefix(found, "*** in database main ***\n"), "\n")
		err = fmt.Errorf("%w: %s: restore it from a copy", ErrCorrupt, line)
	}
	return err
}

// migrateAll brings the tables up to date.
func migrateAll(s *session, o Options) error {
	all, err := migrations(migrationFiles, s.engine.folder)
	if err != nil {
		return err
	}
	return migrate(s, all, o.Now().UnixMilli())
}

// A migration brings the tables from one version to the next.
type migration struct {
	version int64
	name    string
	sql     string
}

// migrations reads 0001_name.sql, 0002_name.sql and so on, without gaps.
func migrations(files fs.FS, dir string) ([]migration, error) {
	names, err := fs.Glob(files, dir+"/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []migration
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimPrefix(name, dir+"/")
		number, _, _ := strings.Cut(base, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("migration %s is not number %d", base, i+1)
		}
		all = append(all, migration{version, base, string(text)})
	}
	return all, nil
}

// migrate applies what a database lacks, each migration whole or not at all.
func migrate(s *session, all []migration, now int64) error {
	if err := s.script(s.engine.table); err != nil {
		return err
	}
	at, err := s.number("select coalesce(max(version), 0) from migration")
	if err != nil {
		return err
	}
	if at > int64(len(all)) {
		return fmt.Errorf("%w: its tables have version %d, this one knows %d: use the newer one", ErrNewer, at, len(all))
	}
	for _, m := range all[at:] {
		if err := m.apply(s, now); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

func (m migration) apply(s *session, now int64) (err error) {
	if err := s.script(s.engine.beginWrite); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.script(rollback) // the first error says why; the engine may have undone all itself
		}
	}()
	if err := s.script(m.sql); err != nil {
		return err
	}
	if _, err := s.exec("insert into migration (version, name, at) values ($1, $2, $3)", m.version, m.name, now); err != nil {
		return err
	}
	return s.script(commit)
}

// script runs statements that are not worth keeping prepared.
func (s *session) script(text string) error {
	_, err := s.conn.ExecContext(context.Background(), text)
	return err
}

// number reads the one number that a query answers with.
func (s *session) number(query string) (n int64, err error) {
	return n, s.conn.QueryRowContext(context.Background(), query).Scan(&n)
}
