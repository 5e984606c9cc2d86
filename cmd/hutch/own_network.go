package main

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
)

// ownNetwork says which rules that are new in a grant lead to this machine or to a
// network of one's own, or perhaps would.
func ownNetwork(had, now capability.Grant) (notes []string) {
	old := had.Lines()
	for _, r := range now.HTTP {
		if slices.Contains(old, r.String()) || r.Approval == capability.Deny {
			continue
		}
		switch {
		case len(r.AllowPrivate) > 0:
			notes = append(notes, r.Host+whereTo(r.AllowPrivate))
		case ownName(r.Host):
			notes = append(notes, r.Host+" looks like a name of your own network, whose addresses are refused unless the policy file names them. "+
				"Its rule there, with the right address: "+privateLine(r))
		}
	}
	return notes
}

// whereTo says whose addresses are allowed.
func whereTo(allowed []netip.Prefix) string {
	here := func(p netip.Prefix) bool { return p.Addr().IsLoopback() }
	switch {
	case !slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return !here(p) }):
		return " is this machine: the module reaches what listens here and is not meant for others"
	case slices.ContainsFunc(allowed, here):
		return " is this machine, or leads into your own network: the module reaches what is not meant for others"
	}
	return " leads into your own network: the module reaches what is not meant for others"
}

// ownName reports whether a name is one that only a network of one's own knows.
func ownName(host string) bool {
	name := strings.TrimPrefix(host, "*.")
	if _, err := netip.ParseAddr(name); err == nil || name == "*" {
		return false
	}
	return !strings.Contains(name, ".") || slices.ContainsFunc([]string{".local", ".lan", ".home", ".home.arpa", ".internal", ".intranet", ".corp", ".private"},
		func(end string) bool { return strings.HasSuffix(name, end) })
}

// privateLine is a rule as the policy file has it that allows an address of a
// network of one's own.
func privateLine(r capability.HTTPRule) string {
	r.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("192.168.1.7/32")}
	text := capability.Render("x"+moduleSuffix, capability.Binding{}, capability.Grant{HTTP: []capability.HTTPRule{r}})
	return strings.TrimSpace(text[strings.LastIndex(text, "- "):])
}
