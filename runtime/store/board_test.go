package store_test

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
	"github.com/hutch-run/hutch/runtime/store"
)

func TestBoard(t *testing.T) {
	boardtest.Store(t, func(t *testing.T) board.Store { return openNew(t, store.Options{}) })
}

func TestBoardOnPostgres(t *testing.T) {
	boardtest.Store(t, func(t *testing.T) board.Store { return openAt(t, database(t), store.Options{}) })
}
