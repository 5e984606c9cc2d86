package store_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
	"github.com/hutch-run/hutch/runtime/store"
)

func TestBoard(t *testing.T) {
	boardtest.Store(t, func(t *testing.T) board.Store { return openNew(t, store.Options{}) })
}

func TestBoardOnPostgres(t *testing.T) {
	boardtest.Store(t, func(t *testing.T) board.Store { return openAt(t, server.Database(t), store.Options{}) })
}

// A server that has what it takes gets an index for texts, wherever somebody has put it
// before.
func TestTextsHaveAnIndexOnAServer(t *testing.T) {
	for _, before := range []string{"select 1", "create extension pg_trgm schema public"} {
		place := server.Database(t)
		pool, err := sql.Open("pgx", place+"&sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = pool.Close() }()
		var available, indexes int
		if err := pool.QueryRowContext(t.Context(), `select count(*) from pg_available_extensions where name = 'pg_trgm'`).Scan(&available); err != nil {
			t.Fatal(err)
		}
		if available == 0 && os.Getenv("HUTCH_REQUIRE") == "all" {
			t.Fatal("the server has no pg_trgm, which comes with Debian's package postgresql")
		}
		if available == 0 {
			t.Skip("the server has no pg_trgm")
		}
		if _, err := pool.ExecContext(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		openAt(t, place, store.Options{})
		err = pool.QueryRowContext(t.Context(), `select count(*) from pg_indexes where indexname = 'board_search_text'`).Scan(&indexes)
		if err != nil || indexes != 1 {
			t.Errorf("after %s there are %d indexes for texts, %v", before, indexes, err)
		}
	}
}
