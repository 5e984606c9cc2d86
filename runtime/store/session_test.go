package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/hutch-run/hutch/runtime/session/sessiontest"
	"github.com/hutch-run/hutch/runtime/store"
)

func TestThreads(t *testing.T) {
	sessiontest.Store(t, func(t testing.TB) sessiontest.Place { return threadsIn(openNew(t, store.Options{})) })
}

func TestThreadsOnPostgres(t *testing.T) {
	sessiontest.Store(t, func(t testing.TB) sessiontest.Place { return threadsIn(openAt(t, server.Database(t), store.Options{})) })
}

func threadsIn(db *store.DB) sessiontest.Place {
	return sessiontest.Place{Store: db, Jobs: func() (all []string, err error) {
		for _, kind := range []string{"a", "b", "c"} {
			jobs, err := db.DueJobs(context.Background(), kind, 100)
			if err != nil {
				return nil, err
			}
			for _, j := range jobs {
				all = append(all, j.Kind+" "+j.Key)
			}
		}
		slices.SortFunc(all, sessiontest.ByKey)
		return all, nil
	}}
}
