package cmd_test

import (
	"os"
	"path/filepath"
	"testing"
)

// What docs/agents.md says to type works, beside a server with its policy.
func TestAgentsDocument(t *testing.T) {
	p := newProgram(t)
	p.decide(t, agents)
	p.serve(t)
	keepsPromises(t, p, agents)
}

// decide writes the policy of a document to where serve looks for it.
func (p program) decide(t *testing.T, document string) {
	t.Helper()
	state := filepath.Join(p.dir, ".local", "state", "hutch")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocksOf(t, document) {
		if b.mark != "policy" {
			continue
		}
		if err := os.WriteFile(filepath.Join(state, "policy.yaml"), []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s has no policy", document)
}
