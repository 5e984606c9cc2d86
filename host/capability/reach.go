package capability

import (
	"maps"
	"slices"
	"strings"
)

// reach finds what can never have an effect, looking at the whole of an entry.
func (r *reader) reach(p pair, at string, e *Entry) {
	r.secretsReach(p, at, e)
	r.configReaches(p, at, e)
	r.toolsReach(p, at, e)
	if e.Definitions != "" && e.Digest == "" {
		r.bad(lineAt(p, "definitions"), at+".definitions", "stands without a digest", "a decision is about bytes: write digest, or hutch tools approve does")
	}
}

// lineAt returns the line of a value below p, or of the last key on the way that
// there is.
func lineAt(p pair, keys ...string) int {
	for _, key := range keys {
		next := p.value.get(key)
		if next == nil {
			return p.line
		}
		p = *next
	}
	return p.line
}

// secretsReach: a secret goes out with a request, and there is none to its host.
func (r *reader) secretsReach(p pair, at string, e *Entry) {
	for _, s := range e.Grant.Secrets {
		if !slices.ContainsFunc(e.Grant.HTTP, s.goesWith) {
			r.bad(lineAt(p, "grant", kindSecrets), at+".grant.secrets", shown(s.Name)+" can never be sent",
				"no rule of http lets requests to "+s.Host+" and these paths through")
		}
	}
}

// goesWith reports whether some request may pass rule and carry the secret.
func (s SecretRule) goesWith(rule HTTPRule) bool {
	return rule.Approval != Deny && (hostCovers(rule.Host, s.Host) || hostCovers(s.Host, rule.Host)) && pathsMeet(rule.Paths, s.Paths)
}

// pathsMeet reports whether some path lies below a prefix of each.
func pathsMeet(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(p string) bool {
		return slices.ContainsFunc(b, func(q string) bool { return below(p, q) || below(q, p) })
	})
}

// configReaches: a placeholder stands for a secret that is granted. While nothing
// is granted to the module it waits.
func (r *reader) configReaches(p pair, at string, e *Entry) {
	if !e.Decided {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(e.Config)) {
		secret, ok := placeholder(e.Config[key])
		if ok && !slices.ContainsFunc(e.Grant.Secrets, func(s SecretRule) bool { return s.Name == secret }) {
			r.bad(lineAt(p, "config", key), at+".config."+key, "found "+shown(e.Config[key]),
				"the secret has to stand in grant.secrets too, with the host that may get it")
		}
	}
}

// toolsReach: a tool's grant narrows its module's, so what lies outside of that
// can never match. While nothing is granted to the module it waits.
func (r *reader) toolsReach(p pair, at string, e *Entry) {
	if !e.Decided {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.Tools)) {
		t := e.Tools[name]
		if t.Grant == nil {
			continue
		}
		line, at := lineAt(p, "tools", name, "grant"), at+".tools."+name+".grant"
		for _, kind := range e.Grant.outside(*t.Grant) {
			r.bad(line, at+"."+kind, "can never match", "it narrows the module's "+strings.Fields(kind)[0]+", which does not give it")
		}
	}
}

// outside returns the kinds of which narrow has something that g gives no part
// of.
func (g Grant) outside(narrow Grant) (out []string) {
	for _, rule := range narrow.HTTP {
		if !slices.ContainsFunc(g.HTTP, rule.meets) {
			out = append(out, kindHTTP)
		}
	}
	for _, s := range narrow.Secrets {
		if !slices.ContainsFunc(g.Secrets, func(o SecretRule) bool {
			return o.Name == s.Name && o.Host == s.Host && o.Header == s.Header && o.Query == s.Query
		}) {
			out = append(out, kindSecrets)
		}
	}
	if narrow.KV != nil && narrow.KV.Max > 0 && g.KV == nil {
		out = append(out, kindKV)
	}
	for _, kind := range listKinds() {
		for _, name := range *narrow.names(kind) {
			if len(meetNames(kind, []string{name}, *g.names(kind))) == 0 {
				out = append(out, kind)
			}
		}
	}
	for _, f := range narrow.FS {
		if !slices.ContainsFunc(g.FS, func(o FSRule) bool { return below(o.Path, f.Path) || below(f.Path, o.Path) }) {
			out = append(out, kindFS)
		}
	}
	return slices.Compact(out)
}

// meets reports whether some request passes both rules.
func (r HTTPRule) meets(other HTTPRule) bool {
	return r.scheme() == other.scheme() && (hostCovers(r.Host, other.Host) || hostCovers(other.Host, r.Host)) &&
		intersect(r.methods(), other.methods()) && intersect(r.ports(), other.ports()) && pathsMeet(r.Paths, other.Paths)
}

func intersect[T comparable](a, b []T) bool {
	return slices.ContainsFunc(a, func(v T) bool { return slices.Contains(b, v) })
}

// meetNames returns what both lists give: of two scopes the one that is limited
// to a project.
func meetNames(kind string, a, b []string) (both []string) {
	for _, x := range a {
		for _, y := range b {
			switch {
			case nameCovers(kind, x, y):
				both = append(both, y)
			case nameCovers(kind, y, x):
				both = append(both, x)
			}
		}
	}
	slices.Sort(both)
	return slices.Compact(both)
}
