package store_test

import (
	"testing"

	"github.com/hutch-run/hutch/runtime/router"
	"github.com/hutch-run/hutch/runtime/router/routertest"
	"github.com/hutch-run/hutch/runtime/store"
)

func TestInbox(t *testing.T) {
	routertest.Store(t, func(t *testing.T) router.Store { return openNew(t, store.Options{}) })
}

func TestInboxOnPostgres(t *testing.T) {
	routertest.Store(t, func(t *testing.T) router.Store { return openAt(t, server.Database(t), store.Options{}) })
}
