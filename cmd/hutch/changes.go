package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/protocol/abi"
	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/runtime/registry"
)

// logChanges says which modules came, were replaced and went since it last did.
// What cannot be used the registry warns of itself.
func (a *App) logChanges() {
	a.loggedMu.Lock()
	defer a.loggedMu.Unlock()
	before, after := a.logged, a.modules.Modules()
	a.logged = after
	a.letGo(before, after)
	key := func(m registry.Module) string { return m.Source + "\x00" + m.Name }
	was := map[string]registry.Module{}
	for _, m := range before {
		if m.Serving != "" {
			was[key(m)] = m
		}
	}
	for _, m := range after {
		old, served := was[key(m)]
		if m.Serving == "" {
			continue
		}
		delete(was, key(m))
		switch {
		case !served:
			a.log.Info("module added", "module", m.Name, "folder", m.Source, "version", versionOf(m), "tools", toolNames(m), "status", string(m.Status))
		case old.Serving != m.Serving:
			a.log.Info("module replaced", "module", m.Name, "folder", m.Source, "from", versionOf(old), "to", versionOf(m), "tools", toolNames(m), "status", string(m.Status))
		}
	}
	there := map[string]bool{}
	for _, m := range after {
		there[key(m)] = true
	}
	for _, m := range before { // in their order
		_, served := was[key(m)]
		switch {
		case served:
			a.log.Info("module removed", "module", m.Name, "folder", m.Source, "version", versionOf(m), "tools", toolNames(m))
		case !there[key(m)]: // nothing of it served, so there are no tools to name
			a.log.Info("module removed", "module", m.Name, "folder", m.Source, "status", string(m.Status))
		}
	}
}

// letGo drops what is kept for versions that serve no more, or may not any more:
// connections, and the last lines of their log.
func (a *App) letGo(before, after []registry.Module) {
	serving := map[string]registry.Module{}
	for _, m := range after {
		if m.Serving != "" {
			serving[m.Name] = m
		}
	}
	for _, old := range before {
		now := serving[old.Name]
		if old.Serving != "" && (now.Serving != old.Serving || old.Status == tool.Ready && now.Status != tool.Ready) {
			a.logs.Forget(old.Name)
			a.client.Forget(old.Name)
		}
	}
}

// versionOf is a module's own version, if it has one, and its digest's start.
func versionOf(m registry.Module) string {
	return strings.TrimSpace(fmt.Sprintf("%s %.12s", abi.Cut(m.Version, 40), m.Serving))
}

// toolNames names a few tools.
func toolNames(m registry.Module) string {
	const most = 5
	var names []string
	for _, t := range m.Tools[:min(len(m.Tools), most)] {
		names = append(names, t.Published.Name)
	}
	if more := len(m.Tools) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// warnOfAbsent warns of tools that an agent is to have and that no module has, held ones
// included: nothing else tells a name that is mistyped from one whose module comes later.
func (a *App) warnOfAbsent(modules []registry.Module) {
	var there []string
	for _, m := range modules {
		for _, t := range m.Tools {
			there = append(there, t.Published.Name)
		}
	}
	for _, cfg := range a.cfg.Agents {
		for _, pattern := range cfg.Tools {
			if slices.ContainsFunc(there, func(name string) bool { return covers(pattern, name) }) {
				continue
			}
			about := []any{"agent", cfg.Name, "tools", pattern}
			if like := nearest(there, pattern, 2); like != "" {
				about = append(about, "like", like)
			}
			a.log.Warn("an agent is to have tools that no module has", about...)
		}
	}
}
