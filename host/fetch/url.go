package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hutch-run/hutch/host/capability"
	"github.com/hutch-run/hutch/protocol/abi"
)

const (
	maxURLBytes    = 8 << 10
	maxHostBytes   = 512 // as written; encoding a long one in other scripts takes quadratic time
	maxMethodBytes = 16
	maxShown       = 100 // bytes of what a stranger wrote, in an error
)

// deny, invalid and the like make the refusals of this package.
func deny(format string, args ...any) *Refused {
	return &Refused{Code: abi.Denied, Text: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *Refused {
	return &Refused{Code: abi.Invalid, Text: fmt.Sprintf(format, args...)}
}

func overLimit(format string, args ...any) *Refused {
	return &Refused{Code: abi.Limit, Text: fmt.Sprintf(format, args...)}
}

// shown quotes what a stranger wrote so that it can stand in an error.
func shown(s string) string { return fmt.Sprintf("%+q", abi.Cut(s, maxShown)) }

func checkMethod(method string) (string, *Refused) {
	method = strings.ToUpper(method)
	switch {
	case method == "":
		return "GET", nil
	case method == "CONNECT" || method == "TRACE" || method == "TRACK":
		return "", deny("method %s: opens a tunnel or echoes what was sent, and is never allowed", method)
	case len(method) > maxMethodBytes || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		return "", invalid("method %s: allowed are up to %d letters", shown(method), maxMethodBytes)
	}
	return method, nil
}

// parseURL returns the one form in which raw is decided about and sent. A
// relative reference is resolved against base, which may be nil.
func parseURL(base *url.URL, raw string) (*url.URL, *Refused) {
	if len(raw) > maxURLBytes {
		return nil, invalid("a URL of %d bytes: at most %d are allowed", len(raw), maxURLBytes)
	}
	if !utf8.ValidString(raw) {
		return nil, invalid("the URL %s is not UTF-8", shown(raw))
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &Refused{Code: abi.Invalid, Text: "the URL " + shown(raw) + " cannot be read", Err: err}
	}
	if base == nil {
		base = new(url.URL)
	}
	u = base.ResolveReference(u) // also removes dot segments
	if refused := checkParts(u); refused != nil {
		return nil, refused
	}
	return canonical(u)
}

func checkParts(u *url.URL) *Refused {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return deny("scheme %s: allowed are https and, where it is granted, http", shown(u.Scheme))
	case u.User != nil:
		return deny("a user in the URL: credentials are never written there; grant a secret instead")
	case u.Opaque != "" || u.Hostname() == "":
		return invalid("a URL without a host: write %s://HOST/PATH", u.Scheme)
	case !utf8.ValidString(u.Host): // behind an encoding
		return invalid("the host %s is not UTF-8", shown(u.Host))
	case len(u.Host) > maxHostBytes:
		return invalid("a host of %d bytes: at most %d are allowed", len(u.Host), maxHostBytes)
	case hidesSegments(u.Path):
		return deny("a path with dot segments or control characters in an encoding: write the path it stands for")
	}
	return nil
}

// hidesSegments reports whether a server could read another path than the rules
// did: dot segments that stand behind an encoding, a backslash or a parameter, and
// control characters. What is encoded more than four times over hides something.
func hidesSegments(path string) bool {
	for range 4 {
		if strings.ContainsFunc(path, unicode.IsControl) {
			return true
		}
		for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if segment, _, _ = strings.Cut(segment, ";"); segment == "." || segment == ".." {
				return true
			}
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return false
		}
		path = decoded
	}
	return true
}

// canonical brings host, port, path and query into one form, and drops the fragment.
func canonical(u *url.URL) (*url.URL, *Refused) {
	host, err := capability.CanonicalHost(u.Hostname())
	if err != nil {
		return nil, &Refused{Code: abi.Denied, Text: abi.OneLine(err.Error(), 2*maxShown), Err: err}
	}
	port, refused := canonicalPort(u)
	if refused != nil {
		return nil, refused
	}
	out := &url.URL{Scheme: u.Scheme, Host: joinHost(host, port), Path: u.Path, RawPath: u.EscapedPath(),
		ForceQuery: u.ForceQuery, RawQuery: escapeQuery(u.RawQuery)}
	if out.Path == "" {
		out.Path, out.RawPath = "/", "/"
	}
	return out, nil
}

// canonicalPort returns the port, or "" if it is that of the scheme.
func canonicalPort(u *url.URL) (string, *Refused) {
	if u.Port() == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || n == 0 {
		return "", invalid("port %s: allowed are 1 to 65535, as far as they are granted", shown(u.Port()))
	}
	if int(n) == defaultPort(u.Scheme) {
		return "", nil
	}
	return strconv.FormatUint(n, 10), nil
}

func defaultPort(scheme string) int {
	if scheme == "http" {
		return 80
	}
	return 443
}

func joinHost(host, port string) string {
	switch addr, err := netip.ParseAddr(host); {
	case port != "":
		return net.JoinHostPort(host, port)
	case err == nil && addr.Is6():
		return "[" + host + "]"
	}
	return host
}

// escapeQuery encodes what would end the request line or is no character of a URL.
func escapeQuery(query string) string {
	const unsafe = " \"<>\\^`{|}"
	clean := func(b byte) bool { return b > ' ' && b < 0x7f && strings.IndexByte(unsafe, b) < 0 }
	dirty := 0
	for i := range len(query) {
		if !clean(query[i]) {
			dirty++
		}
	}
	if dirty == 0 {
		return query
	}
	var out strings.Builder
	out.Grow(len(query) + 2*dirty)
	for i := range len(query) {
		if clean(query[i]) {
			out.WriteByte(query[i])
		} else {
			fmt.Fprintf(&out, "%%%02X", query[i])
		}
	}
	return out.String()
}

// sameOrigin compares two canonical URLs.
func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
