package capability

import (
	"net/netip"
	"net/url"
	"slices"
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
// and path are all its own. The URL is brought into its canonical form first (see
// [ParseURL]); one that has none never matches. Whether the host's address is
// public is checked where it is resolved.
//
// A rule with paths is about a path if it lies below one of them as it is written,
// cut at the slashes that are not encoded: then it does so however a server reads
// it. A rule that denies or asks is about a path if some server could read it so.
func (r HTTPRule) Match(method string, u *url.URL) bool {
	t, refusal := targetOf(method, u)
	return refusal == nil && r.matches(t)
}

func targetOf(method string, u *url.URL) (target, *Refusal) {
	t, _, refusal := readURL(u)
	t.method = method
	return t, refusal
}

func (r HTTPRule) matches(t target) bool {
	return r.Host != "" && t.scheme == r.scheme() && slices.Contains(r.methods(), t.method) &&
		slices.Contains(r.ports(), t.port) && hostMatches(r.Host, t.host) && r.pathMatches(t.path)
}

func (r HTTPRule) pathMatches(escaped string) bool {
	switch {
	case len(r.Paths) == 0:
		return true
	case r.Approval.stricter(Allow):
		return mayBeBelow(r.Paths, escaped)
	}
	return pathsMatch(r.Paths, escaped)
}

// pathsMatch reports whether an escaped path lies below one of the prefixes. What
// stands behind a prefix may be decoded again and again without leaving it, since
// no dot segments hide there and a prefix ends on the border of a segment.
func pathsMatch(prefixes []string, escaped string) bool {
	p := segmented(escaped)
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return below(prefix, p) })
}

// mayBeBelow reports whether some server could take a path for one below a prefix:
// it may decode more than once, take a backslash for a slash and several slashes
// for one, cut parameters off, and not tell upper from lower case.
func mayBeBelow(prefixes []string, escaped string) bool {
	for range maxEncodings + 1 {
		p := loosely(escaped)
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return below(loosePrefix(prefix), p) }) {
			return true
		}
		decoded, err := url.PathUnescape(escaped)
		if err != nil || decoded == escaped {
			return false
		}
		escaped = decoded
	}
	return false
}

// loosePrefix is loosely for what parsePath returned.
func loosePrefix(prefix string) string {
	return strings.ToLower(strings.ReplaceAll(prefix, "%2F", "/"))
}

// loosely returns how the most careless server reads a path, but for its escapes.
func loosely(p string) string {
	p = strings.ToLower(p)
	var out strings.Builder
	for segment := range strings.FieldsFuncSeq(p, isSeparator) {
		name, _, _ := strings.Cut(segment, ";")
		out.WriteString("/" + name)
	}
	if out.Len() == 0 || strings.HasSuffix(p, "/") || strings.HasSuffix(p, "\\") {
		out.WriteByte('/')
	}
	return out.String()
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
