package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/runtime/store"
	"github.com/hutch-run/hutch/runtime/store/storetest"
)

func openNew(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "hutch.db"), o)
}

// open opens a database wherever it is: in a file, or on a server.
func open(ctx context.Context, place string, o store.Options) (*store.DB, error) {
	if strings.HasPrefix(place, "postgres:") {
		return store.OpenPostgres(ctx, store.Postgres{URL: place}, o)
	}
	return store.Open(ctx, place, o)
}

func openAt(t testing.TB, place string, o store.Options) *store.DB {
	t.Helper()
	db, err := open(t.Context(), place, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// everywhere runs a test on each engine, with a place for a database.
func everywhere(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("SQLite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "hutch.db")) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, server.Database(t)) })
}

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Place {
		path := filepath.Join(t.TempDir(), "hutch.db")
		return storetest.Place{
			Open: func(ctx context.Context, o store.Options) (*store.DB, error) { return store.Open(ctx, path, o) },
			Execute: func(ctx context.Context, text string) error {
				db, err := sql.Open("sqlite", path)
				if err != nil {
					return err
				}
				_, err = db.ExecContext(ctx, text)
				return errors.Join(err, db.Close())
			},
			Damage: func() error {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					return err
				}
				const page = 4096
				_, err = f.WriteAt(bytes.Repeat([]byte("garbage "), 20*page/8), 3*page)
				return errors.Join(err, f.Close())
			},
		}
	})
}

// server is the server of this run of the tests, started when a test first asks for it.
var server storetest.Server

func TestPostgres(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Place {
		address := server.Database(t)
		return storetest.Place{
			Open:    func(ctx context.Context, o store.Options) (*store.DB, error) { return open(ctx, address, o) },
			Execute: func(ctx context.Context, text string) error { return storetest.ExecutePostgres(ctx, address, text) },
		}
	})
}
