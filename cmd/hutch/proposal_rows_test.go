package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/runtime/registry"
)

// A module that asks for much cannot scroll away what matters: that stands last, and
// what is too much for a screen is summed up.
func TestQuestionsEndWithWhatMatters(t *testing.T) {
	g := capability.Grant{
		HTTP:    []capability.HTTPRule{{Host: "evil.example", Methods: []string{"POST"}, Reason: "telemetry"}},
		Secrets: []capability.SecretRule{{Name: "token", Header: "X-Key", Host: "evil.example"}},
	}
	for i := range 200 {
		g.HTTP = append(g.HTTP, capability.HTTPRule{Host: fmt.Sprintf("h%03d.example", i)})
	}
	pr := &proposal{dossier: &dossier{module: registry.Module{Name: "a.wasm"}}, action: actionGrant, grant: g}
	pr.now.asks = g
	sheet := pr.sheet()
	lines := strings.Split(strings.TrimSpace(sheet), "\n")
	if n := len(lines); n > 2*mostRights+10 {
		t.Errorf("%d lines:\n%s", n, sheet)
	}
	if last := lines[len(lines)-1]; last != "in short  201 hosts, 1 that can be written to, 1 secret" {
		t.Errorf("the last line is %q", last)
	}
	if got := strings.Join(lines[len(lines)-3:len(lines)-1], "\n"); !strings.Contains(got, "POST https://evil.example") || !strings.Contains(got, "secret token") {
		t.Errorf("nearest to the question:\n%s", got)
	}
	if !strings.Contains(sheet, "182 that matter less, see: hutch tools diff a.wasm") {
		t.Errorf("not summed up:\n%s", sheet)
	}
	asked := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"telemetry"`) })
	if asked < 0 {
		t.Errorf("the reason of what matters is not shown:\n%s", sheet)
	}
	pr.grant = capability.Grant{KV: &capability.KVRule{}}
	if s := pr.sheet(); strings.Contains(s, "in short") {
		t.Errorf("a glance is summed up:\n%s", s)
	}
}
