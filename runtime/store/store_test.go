package store_test

import (
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

func TestSQLite(t *testing.T) { storetest.Run(t, openNew) }
