package store

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hutch-run/hutch/runtime/router"
)

// everyInboxStatement has every statement about inboxes prepared.
func everyInboxStatement(tx Tx) error {
	i := router.Item{ID: "a", Agent: "agent", Task: "task", State: router.Accepted, Changed: time.UnixMilli(1)}
	_, err := tx.addItem(&i)
	err = errors.Join(err, tx.setItem(&i))
	for _, q := range []router.Query{{}, {Open: true}, {Task: "task"}, {IDs: []string{"a"}}} {
		for _, q.Latest = range []bool{false, true} {
			q.Agent = "agent"
			_, failed := tx.findItems(q)
			err = errors.Join(err, failed)
		}
	}
	_, failed := tx.pruneItems("agent", time.UnixMilli(1), 1, 1)
	return errors.Join(err, failed)
}

// Whatever is asked of an inbox, and whatever changes it, reads an index, in its order.
func TestInboxStatementsUseIndexes(t *testing.T) {
	db := openTest(t, filepath.Join(t.TempDir(), "hutch.db"))
	defer func() { _ = db.Close() }()
	if err := db.Update(t.Context(), everyInboxStatement); err != nil {
		t.Fatal(err)
	}
	db.stop()
	checked := 0
	for query := range db.committer.s.prepared {
		if !strings.Contains(query, "inbox_item") {
			continue
		}
		for _, step := range threadPlan(t, db.committer.s, query) {
			checked++
			if strings.HasPrefix(step, "SCAN") || strings.Contains(step, "USE TEMP B-TREE") {
				t.Errorf("%s: %s", query, step)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d steps were looked at", checked)
	}
}
