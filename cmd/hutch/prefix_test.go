package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/dialect/dialecttest"
)

// A prefix in the policy lets two modules offer tools of one name. Whatever names
// the tool has the prefix, and the policy's own keys have not.
func TestPrefix(t *testing.T) {
	log := &transcript{}
	cfg, p := newTestConfig(t, nil)
	s := startServer(t, cfg, p, slog.New(slog.NewTextHandler(log, nil)))
	defer s.end(t)
	s.drop(t, "a.wasm", greeter("search", "of a"))
	s.awaitListed(t, "search", true)
	traps := dialecttest.Module{
		Tools: []tool.Spec{dialecttest.Spec("search"), dialecttest.Spec("hidden")}, Do: []dialecttest.Step{dialecttest.Trap()},
	}.Bytes()
	s.drop(t, "b.wasm", traps)
	s.awaitReason(t, "b.wasm", `tool "search" of b.wasm is already offered by a.wasm`)
	session, changed := s.connect(t)

	s.decide(t, "version: 1\nmodules:\n  b.wasm: {prefix: b_, tools: {hidden: {approval: deny}}}\n")
	await(t, changed)
	list, err := session.ListTools(t.Context(), nil)
	must(t, err)
	var names []string
	for _, l := range list.Tools {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "b_search search" {
		t.Errorf("listed: %s", got)
	}
	if got := callText(t, session, "search"); got != "of a" {
		t.Errorf("search: %s", got)
	}
	if got := callText(t, session, "b_search"); !strings.HasPrefix(got, `tool "b_search": trapped: `) {
		t.Errorf("b_search: %s", got)
	}
	if got := callText(t, session, "b_hidden"); !strings.Contains(got, `tool "b_hidden" is denied by the policy`) {
		t.Errorf("b_hidden: %s", got)
	}
	closeSession(t, session)
	if _, metrics := s.get(t, "/metrics"); !strings.Contains(metrics, `hutch_calls_total{status="failed",tool="b_search"} 1`) {
		t.Errorf("the metrics do not name b_search:\n%s", metrics)
	}
	if !strings.Contains(log.String(), `msg="call failed" tool=b_search`) {
		t.Errorf("the log does not name b_search:\n%s", log)
	}
}
