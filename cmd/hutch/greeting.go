package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
)

// How often serve says how far loading has come: a terminal's line is replaced,
// a file's would pile up.
const (
	liveEvery = 500 * time.Millisecond
	lineEvery = 10 * time.Second
)

// greet says where hutch listens, and, once the folders have been read, what
// there is and what to try. It returns at once; stop ends it.
func (a *App) greet(ctx context.Context, p program, say *voice, addr net.Addr) (stop func()) {
	base := a.base(addr)
	say.line("serving %s/mcp", base)
	for i, cfg := range a.cfg.Agents {
		path := "/agui"
		if i > 0 {
			path = "/agents/" + cfg.Name + path
		}
		say.line("serving %s%s: agent %s, %s", base, path, cfg.Name, cfg.Model)
	}
	if a.tracker != nil {
		say.line("serving %s%s: the tracker, which tells agents what happens at %s", base, trackerPath, socketURL(base))
	}
	if !isLoopback(addr) && a.certificate == nil {
		say.line("warning: tokens and calls go over the network as they are, unless a proxy with TLS stands before: set %s and %s", keyCert, keyKey)
	}
	for _, dir := range a.cfg.Tools {
		say.line("watching %s: a .wasm file put there is served, replaced or removed at once", dir)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := launch(func() error {
		if a.awaitReady(ctx, say) {
			say.line("%s", a.summary())
			say.text(a.suggestions(p, base, a.keys.Needed()))
		}
		return nil
	})
	return func() {
		cancel()
		if err := <-done; err != nil {
			say.line("warning: %s", err)
		}
	}
}

// awaitReady reports whether the folders were read before ctx ended.
func (a *App) awaitReady(ctx context.Context, say *voice) bool {
	every := lineEvery
	if isTerminal(say.w) {
		every = liveEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	defer say.done()
	for {
		select {
		case <-a.ready:
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
			say.working("%s; the first time takes a moment for each", a.Ready())
		}
	}
}

// summary counts what there is.
func (a *App) summary() string {
	byStatus := a.byStatus()
	var parts []string
	for _, s := range []tool.Status{tool.Ready, tool.Held, tool.Rejected} {
		if n := byStatus[s]; n > 0 || s == tool.Ready {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return fmt.Sprintf("modules: %s; tools: %d", strings.Join(parts, ", "), len(a.tools.List(localCaller(""))))
}

// suggestions are commands that work as they stand, with the program named as
// it was called. Where a token is needed it is in a variable.
func (a *App) suggestions(p program, base string, closed bool) string {
	here, anywhere := shellWord(p.name), shellWord(p.path())
	flags, url, header := a.cfg.flags(), base+"/mcp", ""
	if closed {
		header = ` --header "Authorization: Bearer $TOKEN"`
	}
	lines := []string{
		here + " tools list" + flags,
		here + " chat \"count the words: to be or not to be\"" + flags,
		"claude mcp add --transport http hutch " + url + header,
		"claude mcp add hutch-stdio -- " + anywhere + " mcp" + a.cfg.absolute().flags(),
		"npx @modelcontextprotocol/inspector --cli " + url + " --transport http --method tools/list" + header,
		curlAgent(base, header),
		"curl" + header + " " + base + "/metrics",
	}
	if a.cfg.Tracker.URL == "" {
		lines = slices.Insert(lines, 2, here+" tracker init"+a.cfg.stateFlag())
	}
	lines = slices.Insert(lines, 1, a.exampleCommands(here+" tools ", flags)...)
	return "\ntry:\n\n  " + strings.Join(lines, "\n  ") + "\n\n"
}

// curlAgent is a command that talks to the default agent, each time anew.
func curlAgent(base, header string) string {
	const now = `'$(date +%s)'`
	return "curl -N" + strings.ReplaceAll(header, "--header", "-H") + " -H 'Content-Type: application/json' " + base + `/agui -d '{"threadId":"curl","runId":"r` + now +
		`","messages":[{"id":"m` + now + `","role":"user","content":"count the words: to be or not to be"}]}'`
}

// path is the program's name where another folder is the current one.
func (p program) path() string {
	if abs, err := filepath.Abs(p.name); err == nil && strings.ContainsRune(p.name, filepath.Separator) {
		return abs
	}
	return p.name
}

// exampleCommands use tools that came with hutch, as far as they are there: one that
// computes, one that keeps something, and one that a person has to allow a site first.
func (a *App) exampleCommands(tools, flags string) (lines []string) {
	listed := map[string]bool{}
	for _, s := range a.tools.List(localCaller("")) {
		listed[s.Name] = true
	}
	for _, call := range []struct{ name, args string }{
		{"text_stats", `{"text":"one two three"}`},
		{"note_add", `{"title":"Tides","text":"The Moon pulls at the sea."}`},
	} {
		if listed[call.name] {
			lines = append(lines, tools+"call "+call.name+" '"+call.args+"'"+flags)
		}
	}
	if listed["fetch"] {
		lines = append(lines, tools+"grant fetch.wasm --http example.org"+flags, tools+`call fetch '{"url":"https://example.org/"}'`+flags)
	}
	return lines
}

// flags are what must be typed so that another command looks at the same
// folders; nothing if these are the defaults.
func (cfg Config) flags() string {
	var b strings.Builder
	if !cfg.followed && !slices.Equal(cfg.Tools, []string{defaultTools}) {
		for _, dir := range cfg.Tools {
			b.WriteString(" --tools " + shellWord(dir))
		}
	}
	if cfg.policyFrom != "" {
		b.WriteString(" --policy " + shellWord(cfg.Policy))
	}
	b.WriteString(cfg.stateFlag())
	return b.String()
}

// decisionFlags are flags for a command that decides about a module. Where there is
// an owner, the command asks it for the rest.
func (cfg Config) decisionFlags(owned bool) string {
	if owned {
		return cfg.stateFlag()
	}
	return cfg.flags()
}

// stateFlag is flags for a command that looks at no folder of modules.
func (cfg Config) stateFlag() string {
	if !cfg.stateNamed {
		return ""
	}
	return " --state " + shellWord(cfg.State)
}

// absolute is cfg for a command that starts in another folder.
func (cfg Config) absolute() Config {
	cfg.Tools = slices.Clone(cfg.Tools)
	for i, dir := range cfg.Tools {
		if abs, err := filepath.Abs(dir); err == nil {
			cfg.Tools[i] = abs
		}
	}
	return cfg
}
