package capability

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Schemes and methods that a rule may name.
const (
	schemeHTTPS = "https"
	schemeHTTP  = "http"
)

func knownMethods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

// scheme, methods and ports are what a rule means where it says nothing.
func (r HTTPRule) scheme() string {
	if r.Scheme == "" {
		return schemeHTTPS
	}
	return r.Scheme
}

func (r HTTPRule) methods() []string {
	if len(r.Methods) == 0 {
		return []string{"GET", "HEAD"}
	}
	return r.Methods
}

func (r HTTPRule) ports() []int {
	if len(r.Ports) == 0 {
		return []int{defaultPort(r.scheme())}
	}
	return r.Ports
}

func defaultPort(scheme string) int {
	switch scheme {
	case schemeHTTPS:
		return 443
	case schemeHTTP:
		return 80
	}
	return 0
}

// open reports whether a request does not say which host it is about.
func (r HTTPRule) open() bool { return r.Host == "" }

// asksFor reports whether a request is about t: what leaves its host open is about
// every one, with its own methods if it has some.
func (r HTTPRule) asksFor(t target) bool {
	if r.open() {
		return len(r.Methods) == 0 || slices.Contains(r.Methods, t.method)
	}
	return r.matches(t)
}

// Match reports whether the rule is about a request: scheme, host, port, method
// and path are all its own. A URL with user information never matches, nor does
// one whose host has no canonical form. Whether the host's address is public is
// checked where it is resolved.
func (r HTTPRule) Match(method string, u *url.URL) bool {
	t, ok := targetOf(method, u)
	return ok && r.matches(t)
}

// A target is a request as rules see it.
type target struct {
	method, scheme, host string
	port                 int
	path                 string
}

// targetOf reads a URL. It takes Host apart once more: a URL that was built by
// hand may say one thing and be dialled as another.
func targetOf(method string, u *url.URL) (t target, ok bool) {
	if u == nil || u.User != nil || u.Opaque != "" || u.Host == "" {
		return t, false
	}
	host, port := u.Hostname(), u.Port()
	written := host
	if strings.Contains(host, ":") {
		written = "[" + host + "]"
	}
	if port != "" {
		written += ":" + port
	}
	if written != u.Host {
		return t, false
	}
	t = target{method: method, scheme: u.Scheme, port: defaultPort(u.Scheme), path: u.EscapedPath()}
	var err error
	if t.host, err = CanonicalHost(host); err != nil {
		return t, false
	}
	if port != "" {
		t.port, err = parsePort(port)
	}
	return t, err == nil && t.port != 0
}

func (r HTTPRule) matches(t target) bool {
	return r.Host != "" && t.scheme == r.scheme() && slices.Contains(r.methods(), t.method) &&
		slices.Contains(r.ports(), t.port) && hostMatches(r.Host, t.host) && pathsMatch(r.Paths, t.path)
}

// pathsMatch reports whether an escaped path lies below one of the prefixes, both
// as it is written and after cleaning, so that it does so for a server that cleans
// and for one that does not.
func pathsMatch(prefixes []string, escaped string) bool {
	if len(prefixes) == 0 {
		return true
	}
	plain, err := url.PathUnescape(escaped)
	if err != nil || ambiguousPath(escaped, plain) {
		return false
	}
	if plain == "" {
		plain = "/"
	}
	cleaned := path.Clean(plain)
	if strings.HasSuffix(plain, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return below(prefix, plain) && below(prefix, cleaned)
	})
}

// ambiguousPath reports whether servers read a path differently: separators or
// percent signs that are escaped, backslashes, dots with parameters.
func ambiguousPath(escaped, plain string) bool {
	lower := strings.ToLower(escaped)
	for _, s := range []string{"%2f", "%5c", "%25", "\\", "%00"} {
		if strings.Contains(lower, s) {
			return true
		}
	}
	for segment := range strings.SplitSeq(plain, "/") {
		if name, _, ok := strings.Cut(segment, ";"); ok && (name == "." || name == "..") {
			return true
		}
	}
	return false
}

// below reports whether p is prefix or lies below it, on a border of segments.
func below(prefix, p string) bool {
	rest, ok := strings.CutPrefix(p, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}

// pathsCover reports whether every path of others lies below one of prefixes.
func pathsCover(prefixes, others []string) bool {
	if len(prefixes) == 0 {
		return true
	}
	return len(others) > 0 && !slices.ContainsFunc(others, func(other string) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return below(prefix, other) })
	})
}

// covers reports whether every request that other lets through r does too, with
// sizes, rates and addresses that are no narrower.
func (r HTTPRule) covers(other HTTPRule) bool {
	return r.about(other) && atLeast(r.MaxRequest, other.MaxRequest) && atLeast(r.MaxResponse, other.MaxResponse) &&
		r.Rate.perDay() >= other.Rate.perDay() && prefixesCover(r, other) && !r.Approval.stricter(other.Approval)
}

// about reports whether every request that other matches r matches too.
func (r HTTPRule) about(other HTTPRule) bool {
	switch {
	case r.open() && len(r.Methods) == 0:
		return true
	case r.open() && other.open():
		return len(other.Methods) > 0 && contains(r.Methods, other.Methods)
	case r.open():
		return contains(r.Methods, other.methods())
	case other.open():
		return false
	}
	return r.scheme() == other.scheme() && hostCovers(r.Host, other.Host) && contains(r.methods(), other.methods()) &&
		contains(r.ports(), other.ports()) && pathsCover(r.Paths, other.Paths)
}

func contains[T comparable](all, some []T) bool {
	return !slices.ContainsFunc(some, func(v T) bool { return !slices.Contains(all, v) })
}

// atLeast compares two bounds of which 0 is the default, which neither is known
// to be above nor below the other.
func atLeast(bound, other int64) bool { return bound == other || other != 0 && bound >= other }

func prefixesCover(r, other HTTPRule) bool {
	for _, p := range other.AllowPrivate {
		if !slices.ContainsFunc(r.AllowPrivate, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }) {
			return false
		}
	}
	return true
}

func (a Approval) stricter(than Approval) bool { return a.rank() > than.rank() }

func (a Approval) rank() int { return slices.Index([]Approval{Ask, Deny}, a) }

// where names what a rule is about, for people.
func (t target) where() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.port != defaultPort(t.scheme) {
		host += ":" + strconv.Itoa(t.port)
	}
	return t.scheme + "://" + host
}
