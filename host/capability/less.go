package capability

import (
	"fmt"
	"slices"
	"strings"
)

// WithoutHTTP returns g without the requests to a host that what is about, and
// without the secrets that could then be sent there no more. What it leaves out,
// be it scheme, methods, ports or paths, stands for all of them. Rules that deny
// stay: without them more would be given.
func (g Grant) WithoutHTTP(what HTTPRule) (Grant, error) {
	out, taken := g, false
	out.HTTP = nil
	for _, r := range g.HTTP {
		rest, some, err := r.less(what)
		if err != nil {
			return g, err
		}
		out.HTTP, taken = append(out.HTTP, rest...), taken || some
	}
	if !taken {
		return g, fmt.Errorf("no rule lets that through: granted is %s", orNone(Grant{HTTP: g.HTTP}.Lines()))
	}
	out.Secrets = slices.DeleteFunc(slices.Clone(g.Secrets), func(s SecretRule) bool {
		return s.lost(what.Host, g.HTTP, out.HTTP)
	})
	return out, nil
}

// WithoutSecret returns g without what it says about one secret.
func (g Grant) WithoutSecret(name string) (Grant, error) {
	out := g
	out.Secrets = slices.DeleteFunc(slices.Clone(g.Secrets), func(s SecretRule) bool { return s.Name == name })
	if len(out.Secrets) == len(g.Secrets) {
		return g, fmt.Errorf("no such secret: granted is %s", orNone(Grant{Secrets: g.Secrets}.Lines()))
	}
	return out, nil
}

func orNone(lines []string) string {
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, "; ")
}

// less returns what is left of a rule, and whether something was taken: of the
// methods that stay all of it, of the others the ports that stay, of these the
// paths.
func (r HTTPRule) less(what HTTPRule) (rest []HTTPRule, taken bool, err error) {
	keep := []HTTPRule{r}
	if r.Host != what.Host || r.Approval == Deny || what.Scheme != "" && what.Scheme != r.scheme() {
		return keep, false, nil
	}
	methods, otherMethods := split(r.methods(), what.Methods)
	ports, otherPorts := split(r.ports(), what.Ports)
	inside, otherPaths, err := r.splitPaths(what.Paths)
	if len(methods) == 0 || len(ports) == 0 || !inside && err == nil {
		return keep, false, nil
	}
	if err != nil {
		return keep, false, err
	}
	if len(otherMethods) > 0 {
		left := r
		left.Methods = otherMethods
		rest = append(rest, left)
		r.Methods = methods
	}
	if len(otherPorts) > 0 {
		left := r
		left.Ports = otherPorts
		rest = append(rest, left)
		r.Ports = ports
	}
	if len(otherPaths) > 0 {
		left := r
		left.Paths = otherPaths
		rest = append(rest, left)
	}
	return rest, true, nil
}

// split tells those of all that are taken from the others; nothing takes all.
func split[T comparable](all, taking []T) (taken, others []T) {
	for _, v := range all {
		if len(taking) == 0 || slices.Contains(taking, v) {
			taken = append(taken, v)
		} else {
			others = append(others, v)
		}
	}
	return taken, others
}

// splitPaths returns the paths of a rule that do not lie below the ones that are
// taken, and whether some do. No rule says that all but a part goes.
func (r HTTPRule) splitPaths(taking []string) (inside bool, others []string, err error) {
	switch {
	case pathsCover(taking, r.Paths):
		return true, nil, nil
	case !pathsMeet(r.Paths, taking):
		return false, r.Paths, nil
	}
	for _, p := range r.Paths {
		if pathsCover(taking, []string{p}) {
			inside = true
			continue
		}
		others = append(others, p)
	}
	if len(r.Paths) == 0 || pathsMeet(others, taking) {
		return false, nil, fmt.Errorf("it is a part of what one rule lets through: take all of it: %s", r)
	}
	return inside, others, nil
}

// lost reports whether a secret to a host goes out with no request any more.
func (s SecretRule) lost(host string, before, after []HTTPRule) bool {
	sent := func(rules []HTTPRule) bool {
		return slices.ContainsFunc(rules, func(r HTTPRule) bool { return !r.Approval.stricter(Allow) && s.goesWith(r) })
	}
	carried := slices.ContainsFunc(after, s.goesWith)
	return !carried || (hostCovers(host, s.Host) || hostCovers(s.Host, host)) && sent(before) && !sent(after)
}
