package sessiontest_test

import (
	"slices"
	"testing"

	"github.com/hutch-run/hutch/runtime/session/sessiontest"
)

func TestMemory(t *testing.T) {
	sessiontest.Store(t, func(testing.TB) sessiontest.Place {
		m := &sessiontest.Memory{}
		return sessiontest.Place{Store: m, Jobs: func() (all []string, err error) {
			for _, j := range m.Jobs() {
				all = append(all, j.Kind+" "+j.Key)
			}
			slices.SortFunc(all, sessiontest.ByKey)
			return all, nil
		}}
	})
}
