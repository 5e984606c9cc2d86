package boardtest_test

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/board"
	"github.com/hutch-run/hutch/runtime/board/boardtest"
)

func TestMemory(t *testing.T) {
	boardtest.Store(t, func(*testing.T) board.Store { return &boardtest.Memory{} })
}
