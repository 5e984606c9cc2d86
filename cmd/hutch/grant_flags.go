package main

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/host/capability"
)

// methodsSpec is what stands before the host of --http, in whatever case.
var methodsSpec = regexp.MustCompile(`^([A-Za-z]+(?:,[A-Za-z]+)*):([^/0-9].*|[0-9]+[^/0-9].*)$`)

// parseHTTPSpec reads [METHOD,..:][scheme://]HOST[:PORT][/PATH]. What is left out is
// left out of the rule.
func parseHTTPSpec(spec string) (r capability.HTTPRule, err error) {
	rest := spec
	if m := methodsSpec.FindStringSubmatch(spec); m != nil {
		r.Methods, rest = strings.Split(strings.ToUpper(m[1]), ","), m[2]
	}
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		rest = after
		r.Scheme = strings.ToLower(scheme)
	}
	authority, path, _ := strings.Cut(rest, "/")
	if path != "" {
		r.Paths = []string{"/" + path}
	}
	host, port, err := splitPort(authority)
	if err != nil {
		return r, err
	}
	if port != 0 {
		r.Ports = []int{port}
	}
	r.Host, err = canonicalPattern(host)
	return r, err
}

// splitPort takes a port from behind a host; 0 is none.
func splitPort(authority string) (host string, port int, err error) {
	i := strings.LastIndex(authority, ":")
	if strings.HasSuffix(authority, "]") || i < 0 {
		return authority, 0, nil
	}
	if strings.Contains(authority[:i], ":") && !strings.HasSuffix(authority[:i], "]") {
		return "", 0, errors.New("an IPv6 address stands in brackets")
	}
	port, err = strconv.Atoi(authority[i+1:])
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("port %s: allowed are 1 to 65535", quoted(authority[i+1:]))
	}
	return authority[:i], port, nil
}

func canonicalPattern(host string) (string, error) {
	suffix, wild := strings.CutPrefix(host, "*.")
	if host == "*" || host == "" && !wild {
		return host, nil
	}
	name, err := capability.CanonicalHost(suffix)
	if wild {
		name = "*." + name
	}
	return name, err
}

// httpRule is the rule that --http means. An address of a network of one's own that
// is written out is meant, so it is allowed as well.
func httpRule(spec string) (capability.HTTPRule, error) {
	r, err := namedHost(spec)
	if err != nil {
		return r, err
	}
	if r.Scheme == "https" { // what goes without saying is not written
		r.Scheme = ""
	}
	if slices.Equal(r.Ports, []int{map[string]int{"": 443, "http": 80}[r.Scheme]}) {
		r.Ports = nil
	}
	reached, err := reachableRule(r)
	if err != nil {
		return r, asFlag(flagHTTP, spec, err)
	}
	return reached, nil
}

// namedHost reads the value of --http.
func namedHost(spec string) (capability.HTTPRule, error) {
	r, err := parseHTTPSpec(spec)
	if err == nil && r.Host == "" {
		err = errors.New("names no host")
	}
	if err != nil {
		return r, asFlag(flagHTTP, spec, err)
	}
	return r, nil
}

// reachableRule is a rule as a policy may have it: with the address that is not
// public, if the host is one.
func reachableRule(r capability.HTTPRule) (capability.HTTPRule, error) {
	err := checkGrant(capability.Grant{HTTP: []capability.HTTPRule{r}})
	if err == nil {
		return r, nil
	}
	private := r
	if addr, bad := netip.ParseAddr(r.Host); bad == nil {
		private.AllowPrivate = []netip.Prefix{netip.PrefixFrom(addr, addr.BitLen())}
	} else if r.Host == "localhost" {
		private.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
	}
	if private.AllowPrivate == nil {
		return r, err
	}
	return private, checkGrant(capability.Grant{HTTP: []capability.HTTPRule{private}})
}

// checkGrant says what is wrong with a grant, as a policy file would.
func checkGrant(g capability.Grant) error {
	_, err := capability.Parse("flags", []byte(capability.Render("x"+moduleSuffix, capability.Binding{}, g)))
	return err
}

// secretRule is the rule that --secret NAME[@HOST] means: as the module asks for
// the secret, or else as APIs mostly want one, in Authorization.
func secretRule(spec string, asks, granted capability.Grant) (capability.SecretRule, error) {
	name, host, named := strings.Cut(spec, "@")
	for _, s := range asks.Secrets {
		if s.Name == name && (!named || s.Host == host) {
			return s, nil
		}
	}
	if !named {
		hosts := hostsOf(granted)
		if len(hosts) != 1 {
			return capability.SecretRule{}, asFlag(flagSecret, spec, errors.New("write NAME@HOST, with the host that may get it"))
		}
		host = hosts[0]
	}
	r := capability.SecretRule{Name: name, Header: "Authorization", Prefix: "Bearer ", Host: host}
	g := capability.Grant{HTTP: []capability.HTTPRule{{Host: "*"}}, Secrets: []capability.SecretRule{r}}
	if len(granted.HTTP) > 0 {
		g.HTTP = granted.HTTP
	}
	if err := checkGrant(g); err != nil {
		return r, asFlag(flagSecret, spec, err)
	}
	return r, nil
}

// hostsOf are the single hosts that a grant lets requests through to.
func hostsOf(g capability.Grant) (hosts []string) {
	for _, r := range g.HTTP {
		if !strings.HasPrefix(r.Host, "*") && r.Approval != capability.Deny {
			hosts = append(hosts, r.Host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// setPairs are the KEY=VALUE of --set.
func setPairs(specs []string) (map[string]string, error) {
	set := map[string]string{}
	for _, spec := range specs {
		key, value, ok := strings.Cut(spec, "=")
		if !ok || key == "" {
			return nil, usagef("--%s %s: write KEY=VALUE", flagSet, quoted(spec))
		}
		set[key] = value
	}
	return set, nil
}
