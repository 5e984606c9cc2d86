package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func openTest(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestNetworkFilesystemIsRefused(t *testing.T) {
	for _, kind := range []string{"nfs", "smb"} {
		path := filepath.Join(t.TempDir(), "hutch.db")
		_, err := open(t.Context(), path, Options{}, func(dir string) string {
			if dir != filepath.Dir(path) {
				t.Errorf("asked about %s", dir)
			}
			return kind
		})
		if !errors.Is(err, ErrPlace) || !strings.Contains(err.Error(), "("+kind+")") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A commit that does not wait for the disk is none.
func TestDurability(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hutch.db")
	db := openTest(t, path)
	defer func() { _ = db.Close() }()
	if err := durable(db.committer.s); err != nil {
		t.Error(err)
	}
	for _, spoil := range []string{"pragma synchronous = normal", "pragma synchronous = off"} {
		if err := db.committer.s.script(spoil); err != nil {
			t.Fatal(err)
		}
		if err := durable(db.committer.s); !errors.Is(err, ErrPlace) {
			t.Errorf("%s: %v", spoil, err)
		}
	}
	other := &DB{}
	defer func() { _ = other.closeEarly() }()
	s, err := other.connect(t.Context(), "file:"+filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ready(s, Options{}.withDefaults(), true, false); !errors.Is(err, ErrPlace) {
		t.Errorf("no log: %v", err)
	}
}

// A reader's connection changes nothing, even if a statement gets that far.
func TestReadersCannotWrite(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	err := db.View(t.Context(), func(tx Tx) error {
		tx.t.write = true
		return tx.Unpin("a.wasm")
	})
	if !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v", err)
	}
}

// group has a first change take as long as it says, with more waiting behind it,
// and returns how many of these were committed together with it.
func group(t *testing.T, path string, takes time.Duration, more int) int64 {
	var together atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		db := openTest(t, path)
		results := make(chan error)
		inside := make(chan struct{})
		go func() {
			results <- db.Update(t.Context(), func(tx Tx) error {
				close(inside)
				time.Sleep(takes + time.Millisecond) // by then the others wait
				_, err := tx.SetPin("first", "digest", "definitions")
				return err
			})
		}()
		<-inside
		for range more {
			go func() {
				results <- db.Update(t.Context(), func(Tx) error {
					_, _, rank, err := db.Pin(t.Context(), "first")
					if rank == 0 { // seen from outside it is not there yet
						together.Add(1)
					}
					return err
				})
			}()
		}
		for range more + 1 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return together.Load()
}

func TestGroupsAreBounded(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		more  int
		want  int64
	}{
		{0, 100, 100},
		{0, groupMost - 1, groupMost - 1},
		{0, groupMost + 50, groupMost - 1},
		{groupTime, 100, 0},
	} {
		path := filepath.Join(t.TempDir(), "hutch.db")
		if got := group(t, path, c.takes, c.more); got != c.want {
			t.Errorf("first took %s, %d waited: %d were committed with it, want %d", c.takes, c.more, got, c.want)
		}
	}
}

// A writer that breaks is told to all who wait, and to all who come.
func TestWriterPanics(t *testing.T) {
	var logged atomic.Int64
	c := newCommitter(nil, Options{Logger: slog.New(counting{&logged})}.withDefaults())
	go c.loop()
	for range 3 {
		if err := c.update(t.Context(), func(Tx) error { t.Error("ran"); return nil }); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
	}
	if logged.Load() != 1 {
		t.Errorf("logged %d times", logged.Load())
	}
	c.stop()
}

type counting struct{ records *atomic.Int64 }

func (c counting) Enabled(context.Context, slog.Level) bool      { return true }
func (c counting) Handle(_ context.Context, _ slog.Record) error { c.records.Add(1); return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler            { return c }
func (c counting) WithGroup(string) slog.Handler                 { return c }

// A sweeper whose sweep panics ends, and Close does not wait for it in vain.
func TestSweeperPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged atomic.Int64
		s := startSweeper(time.Second, slog.New(counting{&logged}), func(context.Context) (int64, error) { panic("sweep") })
		time.Sleep(3 * time.Second)
		s.close()
		if logged.Load() != 1 {
			t.Errorf("logged %d times", logged.Load())
		}
	})
}

func TestSweeperGoesOnAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged, swept atomic.Int64
		s := startSweeper(time.Second, slog.New(counting{&logged}), func(context.Context) (int64, error) {
			swept.Add(1)
			return 0, errors.New("own")
		})
		time.Sleep(3500 * time.Millisecond)
		s.close()
		if swept.Load() != 3 || logged.Load() != 3 {
			t.Errorf("swept %d times, logged %d", swept.Load(), logged.Load())
		}
	})
}

// versions makes migrations of these texts.
func versions(t *testing.T, texts ...string) []migration {
	t.Helper()
	files := fstest.MapFS{}
	for i, text := range texts {
		files[fmt.Sprintf("m/%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	all, err := migrations(files, "m")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestMigrations(t *testing.T) {
	db := &DB{}
	s, err := db.connect(t.Context(), "file:"+filepath.Join(t.TempDir(), "hutch.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(s.close(), db.closeEarly()); err != nil {
			t.Error(err)
		}
	}()
	one, two := "create table a (n); insert into a values (1)", "create table b (n); insert into a values (2)"
	for i, c := range []struct {
		all         []migration
		wantErr     string
		wantVersion int64
		wantRows    int64
	}{
		{versions(t, one), "", 1, 1},
		{versions(t, one), "", 1, 1},
		{versions(t, one, two, "create table c (n); insert into nothing values (1)"), "migration 0003_step.sql", 2, 2},
		{versions(t, one), "version 2, this one knows 1", 2, 2},
		{versions(t, one, two, "create table c (n); insert into a values (3)"), "", 3, 3}, // nothing was left of the failed one
	} {
		err := migrate(s, c.all, 0)
		if c.wantErr == "" && err != nil || c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)) {
			t.Errorf("%d: %v, want %q", i, err, c.wantErr)
		}
		version, err1 := s.number("select max(version) from migration")
		rows, err2 := s.number("select count(*) from a")
		if err := errors.Join(err1, err2); err != nil || version != c.wantVersion || rows != c.wantRows {
			t.Errorf("%d: version %d, %d rows, %v, want %d, %d", i, version, rows, err, c.wantVersion, c.wantRows)
		}
	}
}

func TestMigrationsHaveNoGaps(t *testing.T) {
	for _, names := range [][]string{{"m/0002_b.sql"}, {"m/0001_a.sql", "m/0003_c.sql"}, {"m/0001_a.sql", "m/0001_b.sql"}, {"m/a.sql"}} {
		files := fstest.MapFS{}
		for _, name := range names {
			files[name] = &fstest.MapFile{}
		}
		if all, err := migrations(files, "m"); err == nil {
			t.Errorf("%v: %v", names, all)
		}
	}
}

// Every row that a change reads is read from an index, not by looking at all rows:
// a full scan of what others keep is what a quota cannot bound.
func TestStatementsUseIndexes(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	if err := db.Update(t.Context(), everyKeptStatement); err != nil {
		t.Fatal(err)
	}
	db.stop()
	checked := 0
	for query := range db.committer.s.prepared {
		if !strings.Contains(query, " ") || strings.HasPrefix(query, "pragma") || strings.Contains(query, "insert into migration") {
			continue
		}
		for _, step := range planOf(t, db.committer.s, query) {
			checked++
			if strings.HasPrefix(step, "SCAN") && step != "SCAN CONSTANT ROW" {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d steps were looked at", checked)
	}
}

// everyKeptStatement has every statement prepared about what a quota bounds.
func everyKeptStatement(tx Tx) error {
	_, _, err1 := tx.KVPut(benchWrite(0, 0))
	_, _, err2 := tx.KVPut(KVWrite{Space: "full", Key: "k", Writer: "w", IfVersion: AnyVersion})
	_, _, err3 := tx.KVGet("space", "0/0")
	_, err4 := tx.KVKeys("space", "0", "", 10)
	_, err5 := tx.KVDelete("space", "0/0", AnyVersion)
	_, err6 := tx.SetPin("a", "b", "c")
	_, err7 := tx.PinRank("a", "b")
	_, _, err8 := tx.Count("a", Use{Calls: 1}, Use{})
	_, err9 := tx.sweep(1)
	if quota := (*QuotaError)(nil); !errors.As(err2, &quota) {
		err2 = fmt.Errorf("no quota: %w", err2)
	} else {
		err2 = nil
	}
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9)
}

func planOf(t *testing.T, s *session, query string) (steps []string) {
	t.Helper()
	if strings.HasPrefix(query, "begin") || strings.HasPrefix(query, "release") || strings.HasPrefix(query, "savepoint") || strings.HasPrefix(query, "rollback") {
		return nil
	}
	rows, err := s.conn.QueryContext(t.Context(), "explain query plan "+query, nil, nil, nil, nil, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(query, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int64
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, detail)
	}
	return steps
}

// What a large value is followed by is read without reading the value, and a table
// without rowid would spill it: both show in the size of the file.
func TestLargeValuesTakeTheirSize(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	const values, size = 2000, 1100
	err := db.Update(t.Context(), func(tx Tx) error {
		for i := range values {
			w := benchWrite(0, i)
			w.Key, w.Value = fmt.Sprint(i), make([]byte, size)
			if _, _, err := tx.KVPut(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	db.stop()
	pages, err := db.committer.s.number("select page_count from pragma_page_count")
	if most := int64(values * size * 3 / 2); err != nil || pages*4096 > most {
		t.Errorf("%d bytes of values take %d, at most %d, %v", values*size, pages*4096, most, err)
	}
}
