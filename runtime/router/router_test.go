package router_test

import (
	"testing"
	"testing/synctest"

	"github.com/hutch-run/hutch/runtime/router"
)

func TestS0_045_AnAssignedTaskBecomesATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, nil)
		d.accept(assigned("e1", d.task("t1", nil)))
		d.want("items", d.items(), "task.assigned t1 done")
		d.want("runs", d.ran(), "t1")
		if got := d.turns[0]; got.Thread != "task:t1" || got.Title != "T1 title of t1" || got.RunID == "" || got.Item.State != router.Running {
			t.Errorf("the turn is %+v", got)
		}
	})
}
