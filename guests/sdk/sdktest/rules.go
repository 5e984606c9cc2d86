package sdktest

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

// matches reports whether a host that granted h as it is would let a request
// through; what leaves its host open, as if all were granted.
func matches(h sdk.HTTP, method string, u *url.URL) bool {
	if h.Host == "" {
		return len(h.Methods) == 0 || slices.Contains(h.Methods, method)
	}
	scheme, methods, ports := h.Scheme, h.Methods, h.Ports
	if scheme == "" {
		scheme = "https"
	}
	if len(methods) == 0 {
		methods = []string{"GET", "HEAD"}
	}
	if len(ports) == 0 {
		ports = []int{defaultPort(scheme)}
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		port = defaultPort(u.Scheme)
	}
	return u.Scheme == scheme && slices.Contains(methods, method) && slices.Contains(ports, port) &&
		hostMatches(h.Host, u.Hostname()) && pathMatches(h.Paths, u.Path)
}

func defaultPort(scheme string) int {
	if scheme == "http" {
		return 80
	}
	return 443
}

func hostMatches(pattern, host string) bool {
	host = strings.ToLower(host)
	if suffix, wild := strings.CutPrefix(pattern, "*."); wild {
		label, rest, _ := strings.Cut(host, ".")
		return label != "" && rest == suffix
	}
	return pattern == "*" || strings.ToLower(pattern) == host
}

// pathMatches holds a path to prefixes, on the borders of segments.
func pathMatches(prefixes []string, p string) bool {
	p = path.Clean("/" + p)
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(prefix string) bool {
		prefix = strings.TrimSuffix(prefix, "/")
		return p == prefix || strings.HasPrefix(p, prefix+"/")
	})
}

// bytesOf reads a size as a policy writes it; what it cannot read is the default.
func bytesOf(text string, def int64) int64 {
	for unit, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			if count, err := strconv.ParseInt(digits, 10, 32); err == nil {
				return count * n
			}
		}
	}
	if count, err := strconv.ParseInt(strings.TrimSuffix(text, "B"), 10, 64); err == nil {
		return count
	}
	return def
}
