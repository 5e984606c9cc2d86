package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hutch-run/hutch/runtime/store"
)

// made returns the path of a database that holds a few hundred values and was
// closed.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hutch.db")
	db := openAt(t, path, store.Options{})
	err := db.Update(t.Context(), func(tx store.Tx) error {
		for i := range 300 {
			w := store.KVWrite{
				Space: "space", Key: fmt.Sprint(i), Writer: "test", Value: bytes.Repeat([]byte{'v'}, 500),
				IfVersion: store.AnyVersion, MaxBytes: 1 << 30,
			}
			if _, _, err := tx.KVPut(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// edit runs SQL on a database as another program would.
func edit(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), text)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(with, at)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// fresh returns the path of a file with that content.
func fresh(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hutch.db")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each refusal is one line, and leaves the file as it was.
func TestRefusedFiles(t *testing.T) {
	const page = 4096
	for _, c := range []struct {
		name string
		path func(t *testing.T) string
		is   error
		says string
	}{
		{"text", func(t *testing.T) string { return fresh(t, strings.Repeat("no database at all\n", 1000)) }, store.ErrForeign, "no database of hutch"},
		{"short text", func(t *testing.T) string { return fresh(t, "short") }, store.ErrForeign, "no database of hutch"},
		{"another program's", func(t *testing.T) string {
			path := fresh(t, "")
			edit(t, path, "create table t (a)")
			return path
		}, store.ErrForeign, "it belongs to another program"},
		{"another program's id", func(t *testing.T) string {
			path := fresh(t, "")
			edit(t, path, "pragma application_id = 77; create table t (a)")
			return path
		}, store.ErrForeign, "it belongs to another program"},
		{"header overwritten", func(t *testing.T) string {
			path := made(t)
			overwrite(t, path, 0, make([]byte, 16))
			return path
		}, store.ErrForeign, "no database of hutch"},
		{"pages overwritten", func(t *testing.T) string {
			path := made(t)
			overwrite(t, path, 3*page, bytes.Repeat([]byte("garbage "), 20*page/8))
			return path
		}, store.ErrCorrupt, "the database is damaged"},
		{"cut short", func(t *testing.T) string {
			path := made(t)
			if err := os.Truncate(path, 20*page); err != nil {
				t.Fatal(err)
			}
			return path
		}, store.ErrCorrupt, "the database is damaged"},
		{"an index that lacks rows", func(t *testing.T) string {
			path := made(t)
			edit(t, path, `pragma writable_schema = on; update sqlite_schema set sql = replace(sql, 'version integer', 'version text') where name = 'kv'`)
			return path
		}, store.ErrCorrupt, "the database is damaged"},
		{"newer", func(t *testing.T) string {
			path := made(t)
			edit(t, path, "insert into migration values (99, 'later', 0)")
			return path
		}, store.ErrNewer, "its tables have version 99, this one knows "},
		{"a folder", func(t *testing.T) string { return t.TempDir() }, store.ErrPlace, "no regular file"},
		{"no folder", func(t *testing.T) string { return filepath.Join(t.TempDir(), "a", "hutch.db") }, os.ErrNotExist, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.path(t)
			before, _ := os.ReadFile(path)
			db, err := store.Open(t.Context(), path, store.Options{})
			if err == nil {
				t.Fatal(db.Close(), "opened")
			}
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("got %v", err)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			t.Log(err)
		})
	}
}

func TestFileIsForItsOwner(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode there")
	}
	path := made(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("made with mode %v, %v", info.Mode(), err)
	}
	db := openAt(t, path, store.Options{})
	if info, err := os.Stat(path + "-wal"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log made with mode %v, %v", info.Mode(), err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := store.Open(t.Context(), path, store.Options{})
		if want := fmt.Sprintf("others may use it (mode %04o): chmod 600 it", mode); !errors.Is(err, store.ErrPlace) || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// A path is a name, not part of an address.
func TestPathsOfAllKinds(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"plain.db", "a?mode=memory", "b#c", "d%20e", "f g", "ä", "file:h", "i&_pragma=synchronous(0)"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(name, name)
		db, err := store.Open(t.Context(), path, store.Options{})
		if err == nil {
			err = errors.Join(db.Unpin(t.Context(), "a"), db.Close())
		}
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestReopen(t *testing.T) {
	path := made(t)
	db := openAt(t, path, store.Options{})
	if _, values, err := db.KVUsage(t.Context(), "space"); err != nil || values != 300 {
		t.Errorf("%d values, %v", values, err)
	}
}

// A log that is cut short or damaged loses what comes behind, and nothing else; the
// database stays sound.
func TestDamagedLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "hutch.db")
	db := openAt(t, path, store.Options{})
	for i := range 20 {
		if _, _, err := db.KVPut(t.Context(), "space", fmt.Sprintf("%02d", i), "test", []byte("v"), 0, store.AnyVersion, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(t.TempDir(), "hutch.db")
	for _, suffix := range []string{"", "-wal"} { // as a power cut leaves them
		content, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix != "" {
			binary.BigEndian.PutUint64(content[len(content)-3*4096:], 0xdeadbeefdeadbeef)
		}
		if err := os.WriteFile(copied+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	damaged := openAt(t, copied, store.Options{})
	keys, err := damaged.KVKeys(t.Context(), "space", "", "", 100)
	if err != nil || len(keys) == 0 || len(keys) >= 20 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	if _, values, err := damaged.KVUsage(t.Context(), "space"); err != nil || int(values) != len(keys) {
		t.Errorf("%d values, %v", values, err)
	}
}

// A database at its limit refuses what would grow it, says so, and goes on.
func TestFull(t *testing.T) {
	db := openNew(t, store.Options{MaxBytes: 1 << 20})
	var full error
	kept := 0
	for full == nil {
		_, _, full = db.KVPut(t.Context(), "space", fmt.Sprint(kept), "test", make([]byte, 4096), 0, store.AnyVersion, 1<<30)
		if full == nil {
			kept++
		}
		if kept > 256 {
			t.Fatal("it has no limit")
		}
	}
	if !errors.Is(full, store.ErrFull) || kept < 30 {
		t.Errorf("after %d values: %v", kept, full)
	}
	holdsAll := func() {
		t.Helper()
		if _, values, err := db.KVUsage(t.Context(), "space"); err != nil || int(values) != kept {
			t.Errorf("%d values, %v, want %d", values, err, kept)
		}
	}
	holdsAll()
	// Whoever goes on after such an error writes outside of the transaction that
	// SQLite undid: nothing of it may stay.
	err := db.Update(t.Context(), func(tx store.Tx) error {
		big := store.KVWrite{Space: "space", Key: "big", Writer: "test", Value: make([]byte, 1<<20), IfVersion: store.AnyVersion, MaxBytes: 1 << 30}
		_, _, first := tx.KVPut(big)
		_, err := tx.SetPin("a.wasm", "digest", "definitions")
		if !errors.Is(first, store.ErrFull) || !errors.Is(err, store.ErrFull) {
			t.Errorf("got %v, then %v", first, err)
		}
		return nil
	})
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("swallowed: %v", err)
	}
	if _, _, rank, err := db.Pin(t.Context(), "a.wasm"); err != nil || rank != 0 {
		t.Errorf("rank %d, %v", rank, err)
	}
	if deleted, err := db.KVDelete(t.Context(), "space", "0", store.AnyVersion); err != nil || !deleted {
		t.Errorf("nothing can be deleted: %v", err)
	}
	kept--
	holdsAll()
	if _, _, err := db.KVPut(t.Context(), "space", "small", "test", nil, 0, store.AnyVersion, 1<<30); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}

// lock holds the database locked as another program would, until it is unlocked.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "begin immediate"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(conn.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Another program that holds the lock is waited for, and named in the end.
func TestLockedByAnother(t *testing.T) {
	path := made(t)
	db := openAt(t, path, store.Options{LockWait: 50 * time.Millisecond})
	unlock := lock(t, path)
	if err := db.Unpin(t.Context(), "a.wasm"); !errors.Is(err, store.ErrBusy) {
		t.Errorf("locked: %v", err)
	}
	if _, _, _, err := db.KVGet(t.Context(), "space", "0"); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
	unlock()
	if err := db.Unpin(t.Context(), "a.wasm"); err != nil {
		t.Error(err)
	}
}

// Who no longer waits for the lock is not waited for either.
func TestCancelledWhileLocked(t *testing.T) {
	path := made(t)
	db := openAt(t, path, store.Options{LockWait: 20 * time.Second})
	unlock := lock(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := db.Update(ctx, func(store.Tx) error { t.Error("ran"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	unlock()
	if err := db.Unpin(t.Context(), "a.wasm"); err != nil {
		t.Error(err)
	}
}

// What has expired goes by itself.
func TestSweeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hutch.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if _, _, err := db.KVPut(t.Context(), "space", fmt.Sprint(i), "test", nil, time.Second, store.AnyVersion, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, err := db.Sweep(t.Context()); err != nil || n != 0 {
			t.Errorf("%d were left, %v", n, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// History is only added to, whatever runs on the connection.
func TestHistoryIsKept(t *testing.T) {
	path := made(t)
	db := openAt(t, path, store.Options{})
	if _, err := db.Decide(t.Context(), "alice", "grant", "a.wasm", "digest", "definitions", "{}"); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for _, text := range []string{"update decision set who = 'bob'", "delete from decision", "insert or replace into decision select id, at, 'bob', action, module, digest, definitions, granted from decision"} {
		if _, err := other.ExecContext(t.Context(), text); err == nil {
			t.Errorf("%s: done", text)
		}
	}
	if all, err := db.Decisions(t.Context(), "", 0, 10); err != nil || len(all) != 1 || all[0].Who != "alice" {
		t.Errorf("%+v, %v", all, err)
	}
}
