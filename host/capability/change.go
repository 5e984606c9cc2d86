package capability

import (
	"fmt"
	"slices"
	"strings"
)

// Closed returns what of a request says what it is about: what can be granted as
// it was asked for.
func (g Grant) Closed() Grant { return g.filter(func(open bool) bool { return !open }) }

// Open returns the kinds of which a request leaves something open, for the
// operator to name.
func (g Grant) Open() []string { return g.filter(func(open bool) bool { return open }).Kinds() }

// filter keeps the entries about which keep says so, being told whether they leave
// open what they are about.
func (g Grant) filter(keep func(open bool) bool) (out Grant) {
	out.Reasons = g.Reasons
	for _, r := range g.HTTP {
		if keep(r.open()) {
			out.HTTP = append(out.HTTP, r)
		}
	}
	for _, s := range g.Secrets {
		if keep(s.Name == "") {
			out.Secrets = append(out.Secrets, s)
		}
	}
	if g.KV != nil && keep(false) {
		out.KV = g.KV
	}
	for _, kind := range listKinds() {
		for _, name := range *g.names(kind) {
			if keep(name == anyHost) {
				list := out.names(kind)
				*list = append(*list, name)
			}
		}
	}
	for _, f := range g.FS {
		if keep(f.Path == "") {
			out.FS = append(out.FS, f)
		}
	}
	return out
}

// listKinds are the kinds that are lists of names.
func listKinds() []string { return []string{kindTracker, kindConversation, kindBridge, kindTool} }

// Only returns g with some of its kinds alone.
func (g Grant) Only(wanted ...string) (Grant, error) {
	if err := knownKinds(wanted); err != nil {
		return Grant{}, err
	}
	return g.without(slices.DeleteFunc(kinds(), func(kind string) bool { return slices.Contains(wanted, kind) })), nil
}

// Without returns g without some of its kinds; without http no secret can be sent,
// so these go together.
func (g Grant) Without(gone ...string) (Grant, error) {
	if err := knownKinds(gone); err != nil {
		return Grant{}, err
	}
	return g.without(withSecrets(gone)), nil
}

func withSecrets(gone []string) []string {
	if slices.Contains(gone, kindHTTP) {
		gone = append(slices.Clone(gone), kindSecrets)
	}
	return gone
}

// served are the kinds that something in this version of hutch stands behind. The
// others are known to the grammar.
func served() []string { return []string{kindHTTP, kindSecrets, kindKV} }

func knownKinds(named []string) error {
	for _, kind := range named {
		if !slices.Contains(kinds(), kind) {
			return fmt.Errorf("%s: no such kind of grant: there are %s", shown(kind), strings.Join(served(), ", "))
		}
	}
	return nil
}

// Plus returns g with what more gives besides. Of two rules of which one covers the
// other the wider is kept; storage and the place of a secret are as in more.
func (g Grant) Plus(more Grant) Grant {
	out := g
	out.HTTP, out.Secrets, out.FS = slices.Clone(g.HTTP), slices.Clone(g.Secrets), slices.Clone(g.FS)
	for _, r := range more.HTTP {
		out.HTTP = widened(out.HTTP, r, HTTPRule.covers, r.replaces)
	}
	for _, s := range more.Secrets {
		out.Secrets = widened(slices.DeleteFunc(out.Secrets, s.sameSecret), s, SecretRule.covers, s.covers)
	}
	if more.KV != nil {
		out.KV = more.KV
	}
	for _, kind := range listKinds() {
		list := slices.Clone(*g.names(kind))
		for _, name := range *more.names(kind) {
			covers := func(a, b string) bool { return nameCovers(kind, a, b) }
			list = widened(list, name, covers, func(old string) bool { return covers(name, old) })
		}
		*out.names(kind) = list
	}
	for _, f := range more.FS {
		out.FS = widened(out.FS, f, FSRule.covers, f.covers)
	}
	return out
}

// widened returns rules with one more in place of those that it replaces, or as
// they are if one of them covers it.
func widened[T any](rules []T, more T, covers func(T, T) bool, replaces func(T) bool) []T {
	if slices.ContainsFunc(rules, func(r T) bool { return covers(r, more) }) {
		return rules
	}
	return append(slices.DeleteFunc(rules, replaces), more)
}

// replaces reports whether a rule says all that an older one does. What is denied
// stays so, and what is asked for each time too unless the host is named again.
func (r HTTPRule) replaces(old HTTPRule) bool {
	return r.covers(old) && old.Approval != Deny && (old.Approval != Ask || old.Host == r.Host)
}

// openTo reports whether a request leaves open where to, and is about some method
// of a rule.
func (r HTTPRule) openTo(rule HTTPRule) bool {
	return r.open() && (len(r.Methods) == 0 || intersect(r.Methods, rule.methods()))
}

// Methods returns the methods with which a module that asks for g could use a rule,
// whichever the rule itself names.
func (g Grant) Methods(rule HTTPRule) []string {
	return slices.DeleteFunc(knownMethods(), func(method string) bool {
		return !slices.ContainsFunc(g.HTTP, func(q HTTPRule) bool {
			one := rule
			one.Methods = []string{method}
			return q.openTo(one) || q.meets(one)
		})
	})
}

// Unasked returns what a grant gives that a module which asks for g can never use,
// each right on a line: no grant counts without a request.
func (g Grant) Unasked(granted Grant) (never []string) {
	for _, r := range granted.HTTP {
		if !slices.ContainsFunc(g.HTTP, func(q HTTPRule) bool { return q.openTo(r) || q.meets(r) }) {
			never = append(never, r.String())
		}
	}
	for _, s := range granted.Secrets {
		if !slices.ContainsFunc(g.Secrets, func(q SecretRule) bool { return q.Name == "" || q.Name == s.Name && hostCovers(q.Host, s.Host) }) {
			never = append(never, s.String())
		}
	}
	if granted.KV != nil && g.KV == nil {
		never = append(never, granted.KV.String())
	}
	for _, kind := range listKinds() {
		for _, name := range *granted.names(kind) {
			if len(meetNames(kind, []string{name}, *g.names(kind))) == 0 {
				never = append(never, kind+" "+name)
			}
		}
	}
	for _, f := range granted.FS {
		if !slices.ContainsFunc(g.FS, func(q FSRule) bool { return q.Path == "" || below(q.Path, f.Path) || below(f.Path, q.Path) }) {
			never = append(never, "fs "+f.Path+" "+f.Mode)
		}
	}
	return never
}

// Why returns the reasons that a request gives, one for each of its Lines.
func (g Grant) Why() (reasons []string) {
	for _, r := range g.HTTP {
		reasons = append(reasons, r.Reason)
	}
	for _, s := range g.Secrets {
		reasons = append(reasons, s.Reason)
	}
	if g.KV != nil {
		reasons = append(reasons, g.KV.Reason)
	}
	for _, kind := range listKinds() {
		for _, name := range *g.names(kind) {
			reasons = append(reasons, g.Reasons[kind+" "+name])
		}
	}
	for _, f := range g.FS {
		reasons = append(reasons, f.Reason)
	}
	return reasons
}
