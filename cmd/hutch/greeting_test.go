package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// What serve suggests can be typed as it stands: it names the program as it was
// called, and the folders if they are not the default ones.
func TestSuggestions(t *testing.T) {
	app := newTestApp(t, func(cfg *Config) { cfg.Tools = []string{filepath.Join(cfg.Tools[0], "my tools")} })
	defer func() { must(t, app.Close()) }()
	for _, name := range []string{"text_stats", "note_add", "fetch"} {
		must(t, writeAtomic(filepath.Join(app.cfg.Tools[0], name+".wasm"), greeter(name, "")))
	}
	must(t, app.Load(t.Context()))
	here, err := filepath.Abs("bin/hutch")
	must(t, err)
	for _, c := range []struct {
		name  string
		named bool // --state
		want  string
	}{
		{"bin/hutch", false, `
try:

  bin/hutch tools list --tools 'TOOLS'
  bin/hutch tools call text_stats '{"text":"one two three"}' --tools 'TOOLS'
  bin/hutch tools call note_add '{"title":"Tides","text":"The Moon pulls at the sea."}' --tools 'TOOLS'
  bin/hutch tools grant fetch.wasm --http example.org --tools 'TOOLS'
  bin/hutch tools call fetch '{"url":"https://example.org/"}' --tools 'TOOLS'
  bin/hutch chat "count the words: to be or not to be" --tools 'TOOLS'
  bin/hutch tracker init
  claude mcp add --transport http hutch http://127.0.0.1:1/mcp
  claude mcp add hutch-stdio -- HERE mcp --tools 'TOOLS'
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:1/mcp --transport http --method tools/list
  curl -N -H 'Content-Type: application/json' http://127.0.0.1:1/agui -d '{"threadId":"curl","runId":"r'$(date +%s)'","messages":[{"id":"m'$(date +%s)'","role":"user","content":"count the words: to be or not to be"}]}'
  curl http://127.0.0.1:1/metrics

`},
		{"hutch", true, `
try:

  hutch tools list --tools 'TOOLS' --state STATE
  hutch tools call text_stats '{"text":"one two three"}' --tools 'TOOLS' --state STATE
  hutch tools call note_add '{"title":"Tides","text":"The Moon pulls at the sea."}' --tools 'TOOLS' --state STATE
  hutch tools grant fetch.wasm --http example.org --tools 'TOOLS' --state STATE
  hutch tools call fetch '{"url":"https://example.org/"}' --tools 'TOOLS' --state STATE
  hutch chat "count the words: to be or not to be" --tools 'TOOLS' --state STATE
  hutch tracker init --state STATE
  claude mcp add --transport http hutch http://127.0.0.1:1/mcp
  claude mcp add hutch-stdio -- hutch mcp --tools 'TOOLS' --state STATE
  npx @modelcontextprotocol/inspector --cli http://127.0.0.1:1/mcp --transport http --method tools/list
  curl -N -H 'Content-Type: application/json' http://127.0.0.1:1/agui -d '{"threadId":"curl","runId":"r'$(date +%s)'","messages":[{"id":"m'$(date +%s)'","role":"user","content":"count the words: to be or not to be"}]}'
  curl http://127.0.0.1:1/metrics

`},
	} {
		app.cfg.stateNamed = c.named
		want := strings.NewReplacer("TOOLS", app.cfg.Tools[0], "STATE", app.cfg.State, "HERE", here).Replace(c.want)
		if got := app.suggestions(program{name: c.name}, "http://127.0.0.1:1", false); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// Without the shipped tools nothing is suggested that would not be there, and
// without flags none are.
func TestSuggestionsByDefault(t *testing.T) {
	app := newTestApp(t, func(cfg *Config) { cfg.Tools = []string{defaultTools} })
	defer func() { must(t, app.Close()) }()
	got := app.suggestions(program{name: "hutch"}, "http://127.0.0.1:1", false)
	if !strings.Contains(got, "\n  hutch tools list\n  hutch chat \"count the words: to be or not to be\"\n  hutch tracker init\n  claude mcp add --transport") || strings.Contains(got, "TOKEN") {
		t.Errorf("got %s", got)
	}
	got = app.suggestions(program{name: "hutch"}, "https://hutch.example.org", true)
	for _, want := range []string{
		`claude mcp add --transport http hutch https://hutch.example.org/mcp --header "Authorization: Bearer $TOKEN"`,
		`curl --header "Authorization: Bearer $TOKEN" https://hutch.example.org/metrics`,
	} {
		if !strings.Contains(got, "\n  "+want+"\n") {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}
