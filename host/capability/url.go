package capability

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hutch-run/hutch/protocol/abi"
)

// maxURLBytes is how long a URL may be as it is written.
const maxURLBytes = 8 << 10

// ParseURL returns the one form in which raw is decided about, recorded and sent.
// A relative reference is resolved against base, which may be nil.
//
// Scheme and host are in lower case, the host as [CanonicalHost] gives it, without
// the port of the scheme; there is no user and no fragment, and the path begins
// with / and has no dot segments. What is encoded stays encoded as it was written:
// a slash in a segment is common, and servers tell it from one between segments.
// Refused is what servers would read in more than one way: dot segments and
// control characters that stand behind an encoding, a backslash or a parameter.
func ParseURL(base *url.URL, raw string) (*url.URL, *Refusal) {
	if len(raw) > maxURLBytes {
		return nil, refuse(abi.Invalid, "a URL of %d bytes: at most %d are allowed", len(raw), maxURLBytes)
	}
	if !utf8.ValidString(raw) {
		return nil, refuse(abi.Invalid, "the URL %s is not UTF-8", shown(raw))
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse(abi.Invalid, "the URL %s cannot be read: write https://HOST/PATH", shown(raw))
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	return CanonicalURL(u)
}

// CanonicalURL returns the form that [ParseURL] does, of a URL that was taken apart
// already. One that is canonical comes back as an equal copy.
func CanonicalURL(u *url.URL) (*url.URL, *Refusal) {
	t, plain, refusal := readURL(u)
	if refusal != nil {
		return nil, refusal
	}
	return &url.URL{Scheme: t.scheme, Host: t.authority(), Path: plain, RawPath: t.path,
		ForceQuery: u.ForceQuery, RawQuery: escapeQuery(u.RawQuery)}, nil
}

func refuse(code abi.Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}

// A target is a request as rules see it; a URL is the same without a method.
type target struct {
	method, scheme, host string
	port                 int
	path                 string // escaped, without dot segments
}

// readURL takes a URL apart. It returns its path unescaped as well.
func readURL(u *url.URL) (t target, plain string, refusal *Refusal) {
	switch {
	case u == nil:
		return t, "", refuse(abi.Invalid, "there is no URL: write https://HOST/PATH")
	case u.Scheme != schemeHTTPS && u.Scheme != schemeHTTP:
		return t, "", refuse(abi.Denied, "scheme %s: allowed are https and, where it is granted, http", shown(u.Scheme))
	case u.User != nil:
		return t, "", refuse(abi.Denied, "a user in the URL: credentials are never written there; grant a secret instead")
	case u.Opaque != "" || u.Host == "":
		return t, "", refuse(abi.Invalid, "a URL without a host: write %s://HOST/PATH", u.Scheme)
	}
	t.scheme = u.Scheme
	if t.host, t.port, refusal = readAuthority(u); refusal != nil {
		return t, "", refusal
	}
	t.path, plain, refusal = readPath(u)
	return t, plain, refusal
}

// readAuthority returns host and port. It puts them together once more: a URL that
// was built by hand may say one thing and be dialled as another.
func readAuthority(u *url.URL) (host string, port int, refusal *Refusal) {
	name, digits := u.Hostname(), u.Port()
	if !wellFormed(u.Host, name, digits) {
		return "", 0, refuse(abi.Invalid, "the host %s cannot be read: write a name or an address, and a port behind : if need be", shown(u.Host))
	}
	host, err := CanonicalHost(name)
	if err != nil {
		return "", 0, refuse(abi.Denied, "host %s: %s", shown(name), err)
	}
	if digits == "" {
		return host, defaultPort(u.Scheme), nil
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return "", 0, refuse(abi.Invalid, "port %s: allowed are 1 to 65535, as far as they are granted", shown(digits))
	}
	return host, int(n), nil
}

// wellFormed reports whether an authority is nothing but a host and a port, which
// may be left out behind its colon.
func wellFormed(authority, host, port string) bool {
	if host == "" {
		return false
	}
	rest := authority
	if strings.Contains(host, ":") {
		rest, _ = strings.CutPrefix(rest, "[")
		host += "]"
	}
	rest, ok := strings.CutPrefix(rest, host)
	return ok && (rest == "" && port == "" || rest == ":"+port)
}

// readPath returns a path without dot segments, escaped and not.
func readPath(u *url.URL) (escaped, plain string, refusal *Refusal) {
	escaped, plain = u.EscapedPath(), u.Path
	if strings.Contains(escaped, "/.") {
		resolved := new(url.URL).ResolveReference(u) // takes dot segments out
		escaped, plain = resolved.EscapedPath(), resolved.Path
	}
	switch {
	case escaped == "":
		return "/", "/", nil
	case escaped[0] != '/':
		return "", "", refuse(abi.Invalid, "the path %s does not begin with /", shown(escaped))
	case hidesSegments(escaped, plain):
		return "", "", refuse(abi.Denied, "a path with dot segments or control characters in an encoding: write the path it stands for")
	}
	return escaped, plain, nil
}

// maxEncodings is how often a path may be encoded: more hides something.
const maxEncodings = 4

// hidesSegments reports whether a server could read another path than the rules
// do: dot segments that stand behind an encoding, a backslash or a parameter, and
// control characters.
func hidesSegments(escaped, plain string) bool {
	if !strings.ContainsAny(escaped, "%;") {
		return false
	}
	for range maxEncodings {
		if strings.ContainsFunc(plain, unicode.IsControl) {
			return true
		}
		for segment := range strings.FieldsFuncSeq(plain, isSeparator) {
			if segment, _, _ = strings.Cut(segment, ";"); segment == "." || segment == ".." {
				return true
			}
		}
		decoded, err := url.PathUnescape(plain)
		if err != nil || decoded == plain {
			return false
		}
		plain = decoded
	}
	return true
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

// segmented decodes an escaped path but for what would cut it anew: slashes and
// percent signs stay encoded, in upper case.
func segmented(escaped string) string {
	at := strings.IndexByte(escaped, '%')
	if at < 0 {
		return escaped
	}
	var out strings.Builder
	out.Grow(len(escaped))
	for ; at >= 0; at = strings.IndexByte(escaped, '%') {
		out.WriteString(escaped[:at])
		code := escaped[at:min(at+3, len(escaped))]
		switch b, err := strconv.ParseUint(strings.TrimPrefix(code, "%"), 16, 8); {
		case err != nil || len(code) < 3 || b == '/' || b == '%':
			out.WriteString(strings.ToUpper(code))
		default:
			out.WriteByte(byte(b))
		}
		escaped = escaped[at+len(code):]
	}
	out.WriteString(escaped)
	return out.String()
}

// authority is the host as a URL has it, with the port if it is not that of the
// scheme.
func (t target) authority() string {
	switch {
	case t.port != defaultPort(t.scheme):
		return net.JoinHostPort(t.host, strconv.Itoa(t.port))
	case strings.Contains(t.host, ":"):
		return "[" + t.host + "]"
	}
	return t.host
}

// where names what a rule is about, for people.
func (t target) where() string { return t.scheme + "://" + t.authority() }

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
