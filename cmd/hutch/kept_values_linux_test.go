package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
)

// Values are of a module as long as it may keep some. Another one of its name begins
// with none, and who decides reads what goes.
func TestValuesEndWithTheGrant(t *testing.T) {
	kv := tool.Requests{"kv": json.RawMessage(`[{"reason":"keeps notes"}]`)}
	s := startServe(t, nil)
	defer s.end(t)
	keeps := func(where string, want int64) {
		t.Helper()
		if got, err := s.app.db.KVCount(t.Context(), spacesOf("note.wasm")); err != nil || got != want {
			t.Errorf("%s: %d values, %v, want %d", where, got, err, want)
		}
	}
	// call counts: each one replaces the value, and says the how manieth it is.
	call := func(where, version string) {
		t.Helper()
		s.awaitListed(t, "note", true)
		if got, err := s.call(t.Context(), "note", map[string]any{}); err != nil || !strings.Contains(got, `\"version\":`+version) {
			t.Errorf("%s: %s, %v, want version %s", where, got, err, version)
		}
		keeps(where, 1)
	}
	s.drop(t, "note.wasm", noteModule("1", "Notes.", "one", kv))
	s.awaitModule(t, "note.wasm")
	s.types(t, "y\n", "hutch tools grant note.wasm").holds(t, exitOK, "a first grant", "granted note.wasm")
	call("granted", "1")
	call("granted", "2")

	s.drop(t, "note.wasm", noteModule("2", "Notes, better.", "two", kv))
	s.awaitReason(t, "note.wasm", "hutch tools approve")
	s.types(t, "y\n", "hutch tools approve note.wasm").holds(t, exitOK, "the next version", "keeps     1 value of the version before")
	call("approved", "3")

	s.types(t, "n\n", "hutch tools revoke note.wasm").holds(t, exitDenied, "no revocation", "drops     1 value that it keeps, for good")
	keeps("not revoked", 1)
	s.types(t, "y\n", "hutch tools revoke note.wasm kv").holds(t, exitOK, "revoked", "drops     1 value that it keeps, for good")
	keeps("revoked", 0)

	must(t, os.Remove(filepath.Join(s.app.cfg.Tools[0], "note.wasm")))
	s.awaitListed(t, "note", false)
	s.drop(t, "note.wasm", noteModule("1", "Something else.", "other", kv))
	s.awaitModule(t, "note.wasm")
	// What a call kept that ended after the revocation, or a policy written by hand left.
	if _, _, err := s.app.db.KVPut(t.Context(), spacesOf("note.wasm")+"local", "pw", "test", []byte("old"), 0, -1, 1000); err != nil {
		t.Fatal(err)
	}
	s.types(t, "y\n", "hutch tools grant note.wasm").holds(t, exitOK, "another module", "drops     1 value that an earlier module of this name kept, for good")
	call("another module", "1")
}

func TestApprovalsDropNoValues(t *testing.T) {
	d := decision{Action: actionApprove, Module: "a.wasm", Digest: "d", Forget: true}
	if err := d.check(); err == nil {
		t.Error("an approval that drops values was taken")
	}
}
