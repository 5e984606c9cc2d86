package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hutch-run/hutch/runtime/store"
	"github.com/hutch-run/hutch/runtime/store/storetest"
)

func openNew(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "hutch.db"), o)
}

func openAt(t testing.TB, path string, o store.Options) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path, o)
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
