package routertest_test

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/router/routertest"
)

func TestMemory(t *testing.T) {
	routertest.Store(t, func(*testing.T) router.Store { return &routertest.Memory{} })
}
