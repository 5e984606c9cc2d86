package main

import (
	"strings"
	"testing"
)

// types types a command in a terminal, and what it is answered when it asks; it must
// show these words.
func (n *newcomer) types(typed, line string, words ...string) {
	n.Helper()
	_, p := newTestConfig(n.T, nil)
	p.shipped = n.shipped
	got := atTerminal(n.T, n.cfg, p, typed, line)
	shown := got.screen + got.stdout
	for _, text := range words {
		if !strings.Contains(shown, text) {
			n.Errorf("%s: lacks %q: %s", line, text, shown)
		}
	}
}

// From nothing, a newcomer is offered fetch, is told by a refusal which command
// allows the site, and reads it in the same session as soon as that was typed in a terminal.
func TestNewcomerAllowsFetchOneSite(t *testing.T) {
	for name, start := range map[string]func(*testing.T, Config, program) (*newcomer, func()){"serve": overHTTP, "mcp": overStdio} {
		t.Run(name, func(t *testing.T) {
			base, port, closeSite := site(t)
			cfg, p := shippedConfig(t)
			n, end := start(t, cfg, p)
			defer end()
			defer closeSite()
			if !n.lists("fetch") {
				t.Fatal("fetch is not offered")
			}
			command := "hutch tools grant fetch.wasm --http http://127.0.0.1:" + port
			refused, failed := n.call("fetch", map[string]any{"url": base + "/old"})
			if !failed || !strings.HasSuffix(refused, "only a person can allow it, so tell them to run this in a terminal: "+command) {
				t.Fatalf("before anybody decided: %s", refused)
			}
			if want := `allow="` + command + " --tools " + n.cfg.Tools[0] + `"`; !strings.Contains(n.log.String(), want) {
				t.Errorf("the log does not say %s:\n%s", want, n.log)
			}
			_, told, _ := strings.Cut(refused, "in a terminal: ")
			n.types("n\n", told, "nothing was changed")
			if got, failed := n.call("fetch", map[string]any{"url": base + "/old"}); !failed || got != refused {
				t.Errorf("after a no: %s", got)
			}
			n.types("y\n", told, "asks for  http GET (whatever is granted)", "+ http GET http://127.0.0.1 port "+port, "granted fetch.wasm")
			if got, failed := n.call("fetch", map[string]any{"url": base + "/old"}); failed ||
				got != "Title: Tides\nURL: "+base+"/tides\n\n# How tides work\n\nThe [Moon]("+base+"/moon) pulls." {
				t.Errorf("granted: %s", got)
			}
			if got, failed := n.call("fetch", map[string]any{"url": base + "/gone"}); !failed || got != base+"/gone answered 404: no such page here" {
				t.Errorf("a page that is not there: %q", got)
			}
			if got, failed := n.call("fetch", map[string]any{"url": "https://example.org/"}); !failed || !strings.HasSuffix(got, "hutch tools grant fetch.wasm --http example.org") {
				t.Errorf("another site: %q", got)
			}
		})
	}
}
